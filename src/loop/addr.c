#include "loop/addr.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/un.h>

#include "base/banned.h"

static void format_unix(const struct agx_addr *a, char *out, size_t size)
{
    const struct sockaddr_un *un = (const struct sockaddr_un *)(const void *)&a->sa;
    size_t max = a->len > offsetof(struct sockaddr_un, sun_path)
                     ? a->len - offsetof(struct sockaddr_un, sun_path)
                     : 0;

    /* A client's socket has no name; an abstract name begins with NUL. */
    if (max == 0 || un->sun_path[0] == '\0')
        (void)snprintf(out, size, "unix");
    else
        (void)snprintf(out, size, "%.*s", (int)strnlen(un->sun_path, max), un->sun_path);
}

char *agx_addr_format(const struct agx_addr *a, char *out, size_t size)
{
    const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)&a->sa;
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)&a->sa;
    char ip[INET6_ADDRSTRLEN] = "";

    switch (a->sa.ss_family) {
    case AF_INET:
        (void)inet_ntop(AF_INET, &in->sin_addr, ip, sizeof(ip));
        (void)snprintf(out, size, "%s:%u", ip, agx_addr_port(a));
        break;
    case AF_INET6:
        (void)inet_ntop(AF_INET6, &in6->sin6_addr, ip, sizeof(ip));
        (void)snprintf(out, size, "[%s]:%u", ip, agx_addr_port(a));
        break;
    default:
        format_unix(a, out, size);
    }
    return out;
}

uint16_t agx_addr_port(const struct agx_addr *a)
{
    if (a->sa.ss_family == AF_INET)
        return ntohs(((const struct sockaddr_in *)(const void *)&a->sa)->sin_port);
    if (a->sa.ss_family == AF_INET6)
        return ntohs(((const struct sockaddr_in6 *)(const void *)&a->sa)->sin6_port);
    return 0;
}
