/*
 * remote_call.h: the names of the remote call: kinds, events and lanes that server, worker and
 * clients share. docs/design/runtime-protocol.md explains them.
 */
#ifndef AGX_CODEC_REMOTE_CALL_H
#define AGX_CODEC_REMOTE_CALL_H

#include "base/str.h"

enum agx_remote_kind {
    AGX_REMOTE_UNARY,
    AGX_REMOTE_STREAM,
    AGX_REMOTE_BIDI,
};

enum agx_remote_event {
    /* From the client. The first three are in the order of the kinds. */
    AGX_EV_UNARY,
    AGX_EV_STREAM,
    AGX_EV_BIDI_START,
    AGX_EV_BIDI_IN,
    AGX_EV_BIDI_END_IN,
    AGX_EV_CANCEL,
    AGX_EV_CREDIT, /* in both directions */
    AGX_EV_ACK,
    AGX_EV_RESUME,
    /* From the server. */
    AGX_EV_UNARY_RESULT,
    AGX_EV_UNARY_ERROR,
    AGX_EV_STREAM_ITEM,
    AGX_EV_STREAM_END,
    AGX_EV_STREAM_ERROR,
    AGX_EV_BIDI_OUT,
    AGX_EV_BIDI_END,
    AGX_EV_BIDI_ERROR,
    AGX_EV_RESUME_DONE,
    AGX_EV_COUNT,
};

/* The socket of the worker by which a frame goes. */
enum agx_remote_lane {
    AGX_LANE_LOOP,
    AGX_LANE_THREAD,
    AGX_LANE_COUNT,
};

/* Flags of a call frame: what its receiver accepts. */
#define AGX_RECV_INT_KEYS 1u
#define AGX_RECV_BYTE_DTYPES 2u

struct agx_str agx_remote_event_name(enum agx_remote_event ev);
bool agx_remote_event_find(struct agx_str name, enum agx_remote_event *ret);

/* "unary", "stream", "bidi". */
struct agx_str agx_remote_kind_name(enum agx_remote_kind kind);
bool agx_remote_kind_find(struct agx_str name, enum agx_remote_kind *ret);

/* The event of a value (result or item), of the normal end, and of the failure of a call of that
 * kind. */
enum agx_remote_event agx_remote_value_event(enum agx_remote_kind kind);
enum agx_remote_event agx_remote_end_event(enum agx_remote_kind kind); /* not for unary */
enum agx_remote_event agx_remote_error_event(enum agx_remote_kind kind);

#endif
