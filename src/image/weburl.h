/*
 * weburl.h: addresses of the web as registries name them, in redirects and as the realm of tokens.
 * What they name is asked with our address and maybe our secrets, so little is taken: http and
 * https, printable ASCII, no user in it. No I/O.
 */
#ifndef AGX_IMAGE_WEBURL_H
#define AGX_IMAGE_WEBURL_H

#include "base/buf.h"

/* Borrowed from the text. */
struct agx_weburl {
    bool is_tls;
    struct agx_str server; /* host, with its port where one is named */
    struct agx_str host;   /* without; an address of IPv6 in brackets */
    struct agx_str rest;   /* path and query; maybe empty */
};

/* False for text that is no such address. */
bool agx_weburl_parse(struct agx_weburl *u, struct agx_str text);

/* The host's own machine: "localhost", 127.x.x.x, [::1]. */
bool agx_weburl_is_loopback(struct agx_str host);

/* What `location` means in an answer of `from`, owned; NULL: no address that we take. */
char *agx_weburl_resolve(const struct agx_weburl *from, struct agx_str location);

/* Appends `value` as it may stand in a query or form. */
int agx_weburl_escape(struct agx_buf *out, struct agx_str value) AGX_MUST_CHECK;

#endif
