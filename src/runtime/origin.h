/*
 * origin.h: the Host header of a request and the Origin that a browser sends with it (RFC 6454):
 * who is asked, and whose page asks. Without I/O: no name is resolved.
 *
 * Strict: what is not clearly one host, with or without a port, is refused. A reader that guesses
 * can be made to guess otherwise than the browser did.
 */
#ifndef AGX_RUNTIME_ORIGIN_H
#define AGX_RUNTIME_ORIGIN_H

#include "base/str.h"

enum { AGX_HOST_MAX = 253 }; /* the longest name in DNS */

/* "host", "host:port" or "[address]:port". The host is a view of what was read. */
struct agx_authority {
    struct agx_str host; /* without brackets */
    bool is_ipv6;
    bool has_port;
    uint16_t port;
};

/* A host is an IPv6 address in brackets, or letters, digits, '-', '_' and '.'. False otherwise;
 * *ret is as it was. */
bool agx_authority_parse(struct agx_str text, struct agx_authority *ret);

/* "localhost" or an address of the loopback: 127.0.0.0/8 in its four decimal parts, ::1, or the
 * former mapped into IPv6. */
bool agx_authority_is_loopback(const struct agx_authority *a);

/* The same host; ports do not matter. Names in any case, IPv6 addresses in any of their forms. */
bool agx_authority_eq_host(const struct agx_authority *a, const struct agx_authority *b);

struct agx_origin {
    bool is_null;          /* "null": a page that has none, such as a file or a sandboxed frame */
    struct agx_str scheme; /* both are views of what was read */
    struct agx_authority at;
};

/* "scheme://host", "scheme://host:port" or "null", with nothing behind it. */
bool agx_origin_parse(struct agx_str text, struct agx_origin *ret);

/* A port that is not said is that of http or https, or none. No origin is equal to "null" but
 * itself. */
bool agx_origin_eq(const struct agx_origin *a, const struct agx_origin *b);

/* Is this the origin of the pages of the server that was asked? A Host without a port has that of
 * the origin's scheme, http or https: a proxy may stand in front that speaks TLS. */
bool agx_origin_is_own(const struct agx_origin *origin, const struct agx_authority *host);

#endif
