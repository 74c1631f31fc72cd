/*
 * usage_wire.h: the resource usage after the sandbox in agentix.v1.GetSandboxResponse. The rules of
 * reply.h and view.h apply here too.
 */
#ifndef AGX_WIRE_USAGE_WIRE_H
#define AGX_WIRE_USAGE_WIRE_H

#include "base/buf.h"
#include "core/resource_usage.h"

/* Each appends a part of the answer, after agx_reply_sandbox(): usage of the sandbox itself, of a
 * companion, and why usage is unknown. */
int agx_reply_usage(struct agx_buf *out, const struct agx_resource_usage *use) AGX_MUST_CHECK;
int agx_reply_companion_usage(struct agx_buf *out, const char *name,
                              const struct agx_resource_usage *use) AGX_MUST_CHECK;
int agx_reply_usage_error(struct agx_buf *out, const char *message) AGX_MUST_CHECK;

struct agx_companion_usage {
    char *name;
    struct agx_resource_usage use;
};

struct agx_usage_view {
    struct agx_resource_usage use; /* nothing is known if it was absent */
    struct agx_companion_usage *companions;
    size_t companions_len;
    char *error; /* NULL: none */
};

/* Decodes the usage of a GetSandboxResponse; agx_sandbox_view_decode() decodes the sandbox. */
int agx_usage_view_decode(struct agx_usage_view *v, struct agx_str bytes,
                          struct agx_error **err) AGX_MUST_CHECK;
void agx_usage_view_done(struct agx_usage_view *v);

#endif
