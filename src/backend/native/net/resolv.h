/*
 * resolv.h: /etc/resolv.conf of a sandbox: the name servers that it may use.
 *
 *     agx_resolv_read(&host, err);                   blocks: files and netlink
 *     agx_resolv_write(&host, network, egress, out);
 *
 * The host's servers, where a sandbox can reach them. It cannot reach those on a loopback address
 * (systemd-resolved, dnsmasq) or on another address of the host: then it gets the servers that
 * systemd-resolved uses itself, and where there are none, a forwarder inside (forward.h) that asks
 * from the host.
 */
#ifndef AGX_BACKEND_NATIVE_NET_RESOLV_H
#define AGX_BACKEND_NATIVE_NET_RESOLV_H

#include "backend/native/net/nsset.h"
#include "base/buf.h"
#include "core/text.h"

/* Where the forwarder listens inside a sandbox. */
#define AGX_RESOLV_INSIDE "127.0.0.11"

struct agx_resolv {
    struct agx_words servers; /* IPv4, directly reachable from a sandbox */
    struct agx_words lines;   /* `search`, `domain` and `options`, unchanged */
    char upstream[64]; /* server that a forwarder asks; "": none is needed, or there is none */
};

int agx_resolv_read(struct agx_resolv *r, struct agx_error **err) AGX_MUST_CHECK;

/* The same from the text of two files; the second fills in what the first lacks. `own` are
 * addresses of the host. Also for tests. */
int agx_resolv_parse(struct agx_resolv *r, struct agx_str text, struct agx_str second,
                     const struct agx_words *own, struct agx_error **err) AGX_MUST_CHECK;

/* The servers in the file whose address is the host's own. Also for tests. */
int agx_resolv_own(struct agx_str text, struct agx_words *own,
                   struct agx_error **err) AGX_MUST_CHECK;

/* Does a sandbox of that network need a forwarder for names? */
bool agx_resolv_needs_forward(const struct agx_resolv *r, enum agx_nsset_network network);

/* Appends the file. With AGX_NSSET_CLOSED only the servers that are on its list, with port 53. */
int agx_resolv_write(const struct agx_resolv *r, enum agx_nsset_network network,
                     const struct agx_words *egress, struct agx_buf *out) AGX_MUST_CHECK;

void agx_resolv_done(struct agx_resolv *r);

#endif
