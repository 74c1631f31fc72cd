/* url.h: parses a runtime's address: "unix:///path" or "http://host[:port]". */
#ifndef AGX_CLIENT_URL_H
#define AGX_CLIENT_URL_H

#include "base/error.h"

#include <stdint.h>

struct agx_url {
    char *path;      /* owned; of a Unix socket, or NULL */
    char *host;      /* owned; name or address without brackets, or NULL */
    char *port;      /* owned; decimal, with `host` */
    char *authority; /* owned; the value of the Host header */
};

/* -AGX_UNIMPLEMENTED for https, -AGX_INVALID_ARGUMENT for other text. */
int agx_url_parse(const char *text, struct agx_url *ret, struct agx_error **err) AGX_MUST_CHECK;
void agx_url_done(struct agx_url *u);

#endif
