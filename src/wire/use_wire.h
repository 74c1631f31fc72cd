/*
 * use_wire.h: the resource usage after the sandbox in agentix.v1.GetSandboxResponse. The rules of
 * reply.h and view.h apply here too.
 */
#ifndef AGX_WIRE_USE_WIRE_H
#define AGX_WIRE_USE_WIRE_H

#include "base/buf.h"
#include "core/use.h"

/* Each appends a part of the answer, after agx_reply_sandbox(): usage of the sandbox itself, of a
 * companion, and why usage is unknown. */
int agx_reply_use(struct agx_buf *out, const struct agx_use *use) AGX_MUST_CHECK;
int agx_reply_companion_use(struct agx_buf *out, const char *name,
                            const struct agx_use *use) AGX_MUST_CHECK;
int agx_reply_use_error(struct agx_buf *out, const char *message) AGX_MUST_CHECK;

struct agx_companion_use {
    char *name;
    struct agx_use use;
};

struct agx_use_view {
    struct agx_use use; /* nothing is known if it was absent */
    struct agx_companion_use *companions;
    size_t companions_len;
    char *error; /* NULL: none */
};

/* Decodes the usage of a GetSandboxResponse; agx_sandbox_view_decode() decodes the sandbox. */
int agx_use_view_decode(struct agx_use_view *v, struct agx_str bytes,
                        struct agx_error **err) AGX_MUST_CHECK;
void agx_use_view_done(struct agx_use_view *v);

#endif
