/* auth.h: a registry's credentials in the engine's format. */
#ifndef AGX_BACKEND_DOCKER_API_AUTH_H
#define AGX_BACKEND_DOCKER_API_AUTH_H

#include "image/credentials.h"

/* The value of X-Registry-Auth, owned: JSON in URL-safe base64. NULL when it would be too long, or
 * without memory. */
char *agx_docker_auth(const struct agx_credentials *c);

#endif
