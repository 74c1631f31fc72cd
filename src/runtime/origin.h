/*
 * origin.h: the Host header of a request and its Origin (RFC 6454): the server that is addressed,
 * and the page that sends the request. Without I/O: no name is resolved.
 *
 * Strict: anything that is not clearly one host, with an optional port, is refused. A lenient
 * parser could be made to read it differently than the browser did.
 */
#ifndef AGX_RUNTIME_ORIGIN_H
#define AGX_RUNTIME_ORIGIN_H

#include "base/str.h"

enum { AGX_HOST_MAX = 253 }; /* the longest name in DNS */

/* "host", "host:port" or "[address]:port". The host is a view of the input. */
struct agx_authority {
    struct agx_str host; /* without brackets */
    bool is_ipv6;
    bool has_port;
    uint16_t port;
};

/* A host is an IPv6 address in brackets, or letters, digits, '-', '_' and '.'. Otherwise false, and
 * *ret is unchanged. */
bool agx_authority_parse(struct agx_str text, struct agx_authority *ret);

/* "localhost" or a loopback address: 127.0.0.0/8 in four decimal parts, ::1, or the former mapped
 * into IPv6. */
bool agx_authority_is_loopback(const struct agx_authority *a);

/* The same host, ignoring ports, the case of names, and the notation of IPv6 addresses. */
bool agx_authority_eq_host(const struct agx_authority *a, const struct agx_authority *b);

struct agx_origin {
    bool is_null;          /* "null": a page without an origin, such as a file */
    struct agx_str scheme; /* both are views of the input */
    struct agx_authority at;
};

/* "scheme://host", "scheme://host:port" or "null", with nothing after it. */
bool agx_origin_parse(struct agx_str text, struct agx_origin *ret);

/* A missing port is the default port of http or https, or none. "null" is equal only to itself. */
bool agx_origin_eq(const struct agx_origin *a, const struct agx_origin *b);

/* Is this the origin of the addressed server's own pages? A Host without a port has the default
 * port of the origin's scheme, http or https, because a proxy with TLS may be in front. */
bool agx_origin_is_own(const struct agx_origin *origin, const struct agx_authority *host);

#endif
