/* remote_call.c: names of the remote call. */
#include "codec/remote_call.h"

#include "base/banned.h"
#include "base/macros.h"

#include <assert.h>

#define NAME(lit)                                                                                  \
    {                                                                                              \
        lit, sizeof(lit) - 1                                                                       \
    }

static const struct agx_str event_names[AGX_EV_COUNT] = {
    [AGX_EV_UNARY] = NAME("unary"),
    [AGX_EV_STREAM] = NAME("stream"),
    [AGX_EV_BIDI_START] = NAME("bidi:start"),
    [AGX_EV_BIDI_IN] = NAME("bidi:in"),
    [AGX_EV_BIDI_END_IN] = NAME("bidi:end_in"),
    [AGX_EV_CANCEL] = NAME("cancel"),
    [AGX_EV_CREDIT] = NAME("credit"),
    [AGX_EV_ACK] = NAME("ack"),
    [AGX_EV_RESUME] = NAME("resume"),
    [AGX_EV_UNARY_RESULT] = NAME("unary:result"),
    [AGX_EV_UNARY_ERROR] = NAME("unary:error"),
    [AGX_EV_STREAM_ITEM] = NAME("stream:item"),
    [AGX_EV_STREAM_END] = NAME("stream:end"),
    [AGX_EV_STREAM_ERROR] = NAME("stream:error"),
    [AGX_EV_BIDI_OUT] = NAME("bidi:out"),
    [AGX_EV_BIDI_END] = NAME("bidi:end"),
    [AGX_EV_BIDI_ERROR] = NAME("bidi:error"),
    [AGX_EV_RESUME_DONE] = NAME("resume:done"),
};

static const struct {
    struct agx_str name;
    enum agx_remote_event value, end, error;
} kinds[] = {
    [AGX_REMOTE_UNARY] = { NAME("unary"), AGX_EV_UNARY_RESULT, AGX_EV_UNARY_RESULT,
                           AGX_EV_UNARY_ERROR },
    [AGX_REMOTE_STREAM] = { NAME("stream"), AGX_EV_STREAM_ITEM, AGX_EV_STREAM_END,
                            AGX_EV_STREAM_ERROR },
    [AGX_REMOTE_BIDI] = { NAME("bidi"), AGX_EV_BIDI_OUT, AGX_EV_BIDI_END, AGX_EV_BIDI_ERROR },
};

struct agx_str agx_remote_event_name(enum agx_remote_event ev)
{
    return event_names[ev];
}

bool agx_remote_event_find(struct agx_str name, enum agx_remote_event *ret)
{
    for (size_t i = 0; i < AGX_ARRAY_LEN(event_names); i++) {
        if (agx_str_eq(name, event_names[i])) {
            *ret = (enum agx_remote_event)i;
            return true;
        }
    }
    return false;
}

struct agx_str agx_remote_kind_name(enum agx_remote_kind kind)
{
    return kinds[kind].name;
}

bool agx_remote_kind_find(struct agx_str name, enum agx_remote_kind *ret)
{
    for (size_t i = 0; i < AGX_ARRAY_LEN(kinds); i++) {
        if (agx_str_eq(name, kinds[i].name)) {
            *ret = (enum agx_remote_kind)i;
            return true;
        }
    }
    return false;
}

enum agx_remote_event agx_remote_value_event(enum agx_remote_kind kind)
{
    return kinds[kind].value;
}

enum agx_remote_event agx_remote_end_event(enum agx_remote_kind kind)
{
    assert(kind != AGX_REMOTE_UNARY);
    return kinds[kind].end;
}

enum agx_remote_event agx_remote_error_event(enum agx_remote_kind kind)
{
    return kinds[kind].error;
}
