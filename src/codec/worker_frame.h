/*
 * worker_frame.h: parses the frames from agentix-server to a worker in one pass, for workers of
 * every language. The client's values (args, kwargs, item) stay raw msgpack.
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
    const char *bad; /* why this frame cannot be executed, or NULL; id may be known even then */

    /* call */
    enum agx_remote_kind kind, shape; /* the kind, if the frame has no `shape` */
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
 * -AGX_INVALID_ARGUMENT or -AGX_RESOURCE_EXHAUSTED: the frame is not a msgpack map; *ret has the
 * fields before the fault. A map with invalid fields succeeds, with `bad` set.
 */
int agx_worker_frame_parse(struct agx_str frame, struct agx_worker_frame *ret,
                           struct agx_error **err) AGX_MUST_CHECK;

#endif
