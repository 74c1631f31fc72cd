/*
 * session_event.c: what the server's events about calls mean. A malformed payload is the end of the
 * connection: after it nothing that comes can be trusted to be where it should.
 */
#include "client/session_internal.h"

#include "base/banned.h"
#include "codec/mp_fields.h"

#include <limits.h>

/* Names that the server gives its own errors, and the code that says the same. */
static const struct {
    const char *type;
    enum agx_code code;
} codes[] = {
    { "Cancelled", AGX_CANCELLED },
    { "CallTimeout", AGX_DEADLINE_EXCEEDED },
    { "WorkerExited", AGX_ABORTED },
    { "WorkerUnavailable", AGX_UNAVAILABLE },
    { "ServerShutdown", AGX_UNAVAILABLE },
    { "ResultUnavailable", AGX_DATA_LOSS },
    { "TooManyCalls", AGX_RESOURCE_EXHAUSTED },
    { "MessageTooLarge", AGX_RESOURCE_EXHAUSTED },
    { "InputOverflow", AGX_RESOURCE_EXHAUSTED },
    { "BadRequest", AGX_INVALID_ARGUMENT },
    { "DuplicateCall", AGX_ALREADY_EXISTS },
};

static enum agx_code code_of(const char *type, bool cancelled)
{
    if (cancelled)
        return AGX_CANCELLED;
    for (size_t i = 0; i < AGX_ARRAY_LEN(codes); i++) {
        if (strcmp(type, codes[i].type) == 0)
            return codes[i].code;
    }
    return AGX_UNKNOWN;
}

enum { E_TYPE, E_MESSAGE, E_TRACEBACK, E_CANCELLED, E_RETURNCODE, N_ERROR_FIELDS };

/* The return code, where a proper one came. */
static bool returncode_of(const struct agx_mp_field *f, int *ret)
{
    if (!f->present)
        return false;
    if (f->value.type == AGX_MP_UINT && f->value.u <= INT_MAX) {
        *ret = (int)f->value.u;
        return true;
    }
    if (f->value.type == AGX_MP_INT && f->value.i >= INT_MIN) {
        *ret = (int)f->value.i;
        return true;
    }
    return false;
}

/* The error that the server describes; NULL when it describes none. */
static struct agx_error *read_error(const struct agx_call *call, struct agx_str raw)
{
    const unsigned str = AGX_MP_BIT(AGX_MP_STR), nil = AGX_MP_BIT(AGX_MP_NIL);
    const struct agx_mp_limits limits = AGX_MP_LIMITS_INIT;
    struct agx_mp_field f[N_ERROR_FIELDS] = {
        [E_TYPE] = { AGX_STR("type"), str },
        [E_MESSAGE] = { AGX_STR("message"), str },
        [E_TRACEBACK] = { AGX_STR("traceback"), str | nil },
        [E_CANCELLED] = { AGX_STR("cancelled"), AGX_MP_BIT(AGX_MP_BOOL) | nil },
        [E_RETURNCODE] = { AGX_STR("returncode"),
                           AGX_MP_BIT(AGX_MP_INT) | AGX_MP_BIT(AGX_MP_UINT) | nil },
    };
    _cleanup_free_ char *type = NULL, *traceback = NULL;
    struct agx_error *err = NULL;
    int returncode = 0;
    bool cancelled, died;

    if (agx_mp_read_fields(raw, &limits, f, N_ERROR_FIELDS, NULL) < 0 || !f[E_TYPE].present ||
        !f[E_MESSAGE].present)
        return NULL;
    cancelled = f[E_CANCELLED].present && f[E_CANCELLED].value.type == AGX_MP_BOOL &&
                f[E_CANCELLED].value.boolean;
    died = returncode_of(&f[E_RETURNCODE], &returncode);
    type = agx_str_dup(f[E_TYPE].value.bytes);
    if (f[E_TRACEBACK].present && f[E_TRACEBACK].value.type == AGX_MP_STR)
        traceback = agx_str_dup(f[E_TRACEBACK].value.bytes);
    (void)agx_error_set(&err, code_of(type ? type : "", cancelled), "%s: %s: %.*s", call->target,
                        type ? type : "", AGX_STR_ARG(f[E_MESSAGE].value.bytes));
    if (type)
        agx_error_set_remote(err, type, traceback, died ? &returncode : NULL);
    return err;
}

static void session_event_malformed(struct agx_session *s, const char *what)
{
    if (!s->fault)
        (void)agx_error_set(&s->fault, AGX_INTERNAL, "the server sent %s", what);
}

/* An event of the call was taken, of so many bytes: it must be acknowledged, soon. */
static void note_event(struct agx_session *s, struct agx_call *call, size_t bytes)
{
    s->unacked += agx_ack_weight(bytes);
    /* The server has the request. */
    agx_buf_done(&call->request);
    if (call->dirty)
        return;
    if (!s->dirty)
        s->ack_at = s->now + AGX_CLIENT_ACK_MS;
    call->dirty = true;
    call->dirty_next = s->dirty;
    s->dirty = call;
}

static void on_value(struct agx_session *s, struct agx_call *call, struct agx_str value)
{
    struct agx_item *item;

    if (call->over)
        return;
    item = agx_item_new(value, call->flow.seq);
    if (!item) {
        call->cancelled = true;
        agx_session_emit_cancel(s, call);
        agx_session_fail_call(call, AGX_RESOURCE_EXHAUSTED, NULL, "no memory for %zu bytes",
                              value.len);
        return;
    }
    agx_items_push(&call->items, item);
    agx_session_note(call);
}

/* A numbered event: a value or the end. */
static void on_numbered(struct agx_session *s, struct agx_call *call, enum agx_remote_event ev,
                        const struct agx_remote_message *m)
{
    _cleanup_(agx_error_freep) struct agx_error *error = NULL;
    enum agx_flow_event e = agx_flow_meaning(call->flow.kind, ev);

    if ((e == AGX_FLOW_ITEM || e == AGX_FLOW_RESULT) && m->value.len == 0) {
        session_event_malformed(s, "a value event without a value");
        return;
    }
    if (e == AGX_FLOW_ERROR && !(error = m->error.len > 0 ? read_error(call, m->error) : NULL)) {
        session_event_malformed(s, "an error event without a proper error");
        return;
    }
    e = agx_remote_flow_event(&call->flow, ev, m->seq, m->value.len);
    if (e == AGX_FLOW_NOTHING)
        return;
    if (agx_flow_fault(e)) {
        session_event_malformed(s, agx_flow_fault(e));
        return;
    }
    note_event(s, call, m->value.len);
    if (e == AGX_FLOW_ITEM || e == AGX_FLOW_RESULT)
        on_value(s, call, m->value);
    if (e != AGX_FLOW_ITEM)
        agx_session_end_call(call, &error);
}

/* The function takes more input. */
static void on_credit(struct agx_call *call, const struct agx_remote_message *m)
{
    bool could = agx_session_can_send(call);

    if (!m->has_totals) {
        session_event_malformed(call->session, "a credit without its totals");
        return;
    }
    agx_buf_done(&call->request);
    agx_session_drop_input(call, agx_remote_flow_credit(&call->flow, m->n, m->bytes, m->seq));
    if (!could && agx_session_can_send(call))
        agx_session_note(call);
}

void agx_session_event(struct agx_session *s, struct agx_str name, struct agx_str payload)
{
    enum agx_remote_event ev;
    struct agx_remote_message m;
    struct agx_call *call;

    if (!agx_remote_event_find(name, &ev))
        return;
    if (ev == AGX_EV_RESUME_DONE) {
        agx_session_resume_done(s, payload);
        return;
    }
    if (agx_remote_message_read(payload, &m, NULL) < 0) {
        session_event_malformed(s, "an event that is malformed");
        return;
    }
    call = m.call_id.len > 0 ? agx_map_get(&s->by_id, m.call_id) : NULL;
    /* Also one that was forgotten: its last answers may have been on their way. */
    if (!call || !call->sent)
        return;
    if (ev == AGX_EV_CREDIT && call->flow.kind == AGX_REMOTE_BIDI)
        on_credit(call, &m);
    else
        on_numbered(s, call, ev, &m);
}
