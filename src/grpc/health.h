/*
 * health.h: the service grpc.health.v1.Health, whose answers the program sets.
 */
#ifndef AGX_GRPC_HEALTH_H
#define AGX_GRPC_HEALTH_H

#include "base/error.h"
#include "base/str.h"

struct agx_grpc_health;
struct agx_grpc_server;

/* Registers the service; the whole server ("") is serving from the start. Free it when the server
 * has stopped. */
int agx_grpc_health_new(struct agx_grpc_server *s, struct agx_grpc_health **ret_health,
                        struct agx_error **err) AGX_MUST_CHECK;

/* Sets the status of a service (full name), or with "" of the server. Notifies watchers. */
int agx_grpc_health_set(struct agx_grpc_health *h, struct agx_str service, bool serving,
                        struct agx_error **err) AGX_MUST_CHECK;

/* Returns NULL and accepts it. */
struct agx_grpc_health *agx_grpc_health_free(struct agx_grpc_health *h);

#endif
