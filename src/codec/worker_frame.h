/*
 * worker_frame.h: what agentix-server says to a worker, taken apart in one pass, for workers of
 * every language. The values of the client (args, kwargs, item) stay raw msgpack.
 * docs/design/runtime-protocol.md, section 4.
 */
#ifndef AGX_CODEC_WORKER_FRAME_H
#define AGX_CODEC_WORKER_FRAME_H

#include "base/error.h"
#include "base/str.h"
#include "codec/remote_call.h"

enum agx_worker_frame_type {
    AGX_WF_UNKNOWN, /* to be ignored */
    AGX_WF_CALL,
    AGX_WF_BIDI_IN,
    AGX_WF_BIDI_END_IN,
    AGX_WF_CREDIT,
    AGX_WF_CANCEL,
    AGX_WF_SHUTDOWN,
};

/* Every view is borrowed from the frame. An absent field is empty or 0. */
struct agx_worker_frame {
    enum agx_worker_frame_type type;
    uint64_t id;     /* the server counts from 1 */
    const char *bad; /* why this frame cannot be obeyed, or NULL; id may be known all the same */

    /* call */
    enum agx_remote_kind kind, shape; /* without a `shape` it is the kind */
    unsigned flags;                   /* AGX_RECV_* */
    uint64_t max;
    struct agx_str callable;     /* the payload's bytes, or the text of the target */
    struct agx_str callable_raw; /* the same as msgpack */
    bool by_target;
    struct agx_str display_name;
    struct agx_str call_id;      /* the client's name for it */
    struct agx_str args, kwargs; /* raw: an array and a map; empty when absent or nil */
    bool has_timeout;
    uint64_t timeout_ms;

    struct agx_str item; /* bidi_in; raw */
    uint64_t n, bytes;   /* credit */
    uint64_t grace_ms;   /* shutdown */
};

/*
 * -AGX_INVALID_ARGUMENT or -AGX_RESOURCE_EXHAUSTED: this is no msgpack map; *ret has what was read
 * before the fault. A map whose fields make no sense succeeds, with `bad` set.
 */
int agx_worker_frame_parse(struct agx_str frame, struct agx_worker_frame *ret,
                           struct agx_error **err) AGX_MUST_CHECK;

#endif
