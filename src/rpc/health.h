/*
 * health.h: the service grpc.health.v1.Health, whose answers the program sets.
 */
#ifndef AGX_RPC_HEALTH_H
#define AGX_RPC_HEALTH_H

#include "base/error.h"
#include "base/str.h"

struct agx_rpc_health;
struct agx_rpc_server;

/* Registers the service; the whole server ("") is serving from the start. Free it when the server
 * has stopped. */
int agx_rpc_health_new(struct agx_rpc_server *s, struct agx_rpc_health **ret_health,
                       struct agx_error **err) AGX_MUST_CHECK;

/* Sets the status of a service (full name), or with "" of the server. Notifies watchers. */
int agx_rpc_health_set(struct agx_rpc_health *h, struct agx_str service, bool serving,
                       struct agx_error **err) AGX_MUST_CHECK;

/* Returns NULL and accepts it. */
struct agx_rpc_health *agx_rpc_health_free(struct agx_rpc_health *h);

#endif
