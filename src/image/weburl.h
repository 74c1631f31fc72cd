/*
 * weburl.h: web addresses that registries name, in redirects and as the token server. Requests to
 * them carry our address and maybe our secrets, so little is accepted: http and https, printable
 * ASCII, no user. No I/O.
 */
#ifndef AGX_IMAGE_WEBURL_H
#define AGX_IMAGE_WEBURL_H

#include "base/buf.h"

/* Borrowed from the text. */
struct agx_weburl {
    bool is_tls;
    struct agx_str server; /* host, with its port if given */
    struct agx_str host;   /* without port; an IPv6 address in brackets */
    struct agx_str rest;   /* path and query; may be empty */
};

/* False for any other text. */
bool agx_weburl_parse(struct agx_weburl *u, struct agx_str text);

/* The local machine: "localhost", 127.x.x.x, [::1]. */
bool agx_weburl_is_loopback(struct agx_str host);

/* Resolves `location` relative to `from`, owned; NULL: not an address that we accept. */
char *agx_weburl_resolve(const struct agx_weburl *from, struct agx_str location);

/* Appends `value` escaped for a query or form. */
int agx_weburl_escape(struct agx_buf *out, struct agx_str value) AGX_MUST_CHECK;

#endif
