/* auth.h: a registry's credentials as an engine wants them. */
#ifndef AGX_BACKEND_DOCKER_AUTH_H
#define AGX_BACKEND_DOCKER_AUTH_H

#include "image/credentials.h"

/* The value of X-Registry-Auth, owned: JSON as base64 of URLs. NULL when it would be too long, or
 * when there is no memory. */
char *agx_docker_auth(const struct agx_credentials *c);

#endif
