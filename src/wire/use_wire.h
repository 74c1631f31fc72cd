/*
 * use_wire.h: what a sandbox uses, behind the sandbox in agentix.v1.GetSandboxResponse. The rules
 * of reply.h and view.h hold here too.
 */
#ifndef AGX_WIRE_USE_WIRE_H
#define AGX_WIRE_USE_WIRE_H

#include "base/buf.h"
#include "core/use.h"

/* Each appends its part of the answer, behind agx_reply_sandbox(): of the sandbox itself, of one
 * more companion, and why nothing is known. */
int agx_reply_use(struct agx_buf *out, const struct agx_use *use) AGX_MUST_CHECK;
int agx_reply_companion_use(struct agx_buf *out, const char *name,
                            const struct agx_use *use) AGX_MUST_CHECK;
int agx_reply_use_error(struct agx_buf *out, const char *message) AGX_MUST_CHECK;

struct agx_companion_use {
    char *name;
    struct agx_use use;
};

struct agx_use_view {
    struct agx_use use; /* nothing is known where it was absent */
    struct agx_companion_use *companions;
    size_t companions_len;
    char *error; /* NULL: none */
};

/* The use in a GetSandboxResponse; the sandbox is agx_sandbox_view_decode()'s. */
int agx_use_view_decode(struct agx_use_view *v, struct agx_str bytes,
                        struct agx_error **err) AGX_MUST_CHECK;
void agx_use_view_done(struct agx_use_view *v);

#endif
