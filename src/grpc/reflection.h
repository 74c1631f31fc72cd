/*
 * reflection.h: the service ServerReflection, v1 and v1alpha, by which grpcurl and others query the
 * server's services and messages.
 */
#ifndef AGX_GRPC_REFLECTION_H
#define AGX_GRPC_REFLECTION_H

#include "base/error.h"
#include "base/str.h"

struct agx_grpc_reflection;
struct agx_grpc_server;

/* Registers the services; they describe themselves and grpc.health.v1. Free it when the server has
 * stopped. */
int agx_grpc_reflection_new(struct agx_grpc_server *s, struct agx_grpc_reflection **ret_reflection,
                            struct agx_error **err) AGX_MUST_CHECK;

/* Adds the files of a serialized FileDescriptorSet (protoc --descriptor_set_out with
 * --include_imports), and lists their services. `set` must outlive the object. */
int agx_grpc_reflection_add(struct agx_grpc_reflection *r, struct agx_str set,
                            struct agx_error **err) AGX_MUST_CHECK;

/* Returns NULL and accepts it. */
struct agx_grpc_reflection *agx_grpc_reflection_free(struct agx_grpc_reflection *r);

#endif
