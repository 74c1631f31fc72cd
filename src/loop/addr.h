/* addr.h: the address of a stream socket, ours or the peer's: IPv4, IPv6 or Unix. */
#ifndef AGX_LOOP_ADDR_H
#define AGX_LOOP_ADDR_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct agx_addr {
    struct sockaddr_storage sa;
    socklen_t len;
};

/* "127.0.0.1:80", "[::1]:80", a Unix socket's path or "unix"; cut at `size`. Returns `out`. */
char *agx_addr_format(const struct agx_addr *a, char *out, size_t size);

/* The TCP port; 0 for Unix sockets. */
uint16_t agx_addr_port(const struct agx_addr *a);

#endif
