/* py_client_event.c: what the server sends: results, items, ends, errors, credit, resume:done. */
#include "pyext/py_client_fn.h"
#include "pyext/py_error.h"

#include "codec/mp_fields.h"

#include "base/banned.h"

enum { CALL_ID, VALUE, SEQ, ERROR, N, BYTES, FIELDS };

static const struct agx_mp_limits limits = AGX_MP_LIMITS_INIT;

static int malformed(struct agx_error **err)
{
    (void)agx_py_raise(err);
    return -1;
}

static uint64_t number(const struct agx_mp_field *f)
{
    return f->present ? f->value.u : 0;
}

/* New: the value of a field; None where it is absent. */
static PyObject *decode(struct call *c, const struct agx_mp_field *f)
{
    if (!f->present)
        return Py_NewRef(Py_None);
    return agx_py_unpack_raw(&c->module->codec, f->raw);
}

static void end_with_error(struct call *c, const struct agx_mp_field *f)
{
    _cleanup_py_ PyObject *error = decode(c, f);
    PyObject *exception = error ? pyclient_session_error(c->session, c->plan->name, error) : NULL;

    if (exception)
        pyclient_call_end(c, NULL, exception);
    else
        pyclient_call_fail_set(c);
}

/* A value that cannot be decoded ends its call; at the server it may still run. */
static void end_undecodable(struct call *c, bool ended)
{
    PyObject *type, *value, *traceback;

    PyErr_Fetch(&type, &value, &traceback);
    if (!ended && pyclient_request_cancel(c) < 0)
        PyErr_Clear();
    PyErr_Restore(type, value, traceback);
    pyclient_call_fail_set(c);
}

static void deliver(struct call *c, enum agx_flow_event e, const struct agx_mp_field *f)
{
    PyObject *value;

    if (e == AGX_FLOW_ERROR) {
        end_with_error(c, &f[ERROR]);
    } else if (e == AGX_FLOW_END) {
        pyclient_call_end(c, NULL, NULL);
    } else {
        value = decode(c, &f[VALUE]);
        if (!value)
            end_undecodable(c, e == AGX_FLOW_RESULT);
        else if (e == AGX_FLOW_RESULT)
            pyclient_call_end(c, value, NULL);
        else
            pyclient_call_add_item(c, value, f[VALUE].raw.len);
    }
}

static int numbered_event(struct call *c, enum agx_remote_event ev, const struct agx_mp_field *f,
                          size_t payload_len)
{
    enum agx_flow_event e;

    if (c->session->proto == 0) { /* without numbers, and nothing to acknowledge */
        e = agx_flow_meaning(c->plan->kind, ev);
        if (e != AGX_FLOW_NOTHING)
            deliver(c, e, f);
        return 0;
    }
    e = agx_call_flow_event(&c->flow, ev, number(&f[SEQ]), f[VALUE].present ? f[VALUE].raw.len : 0);
    if (e == AGX_FLOW_NOTHING)
        return 0;
    if (agx_flow_fault(e)) {
        PyErr_Format(PyExc_ValueError, "the server sent %s", agx_flow_fault(e));
        return -1;
    }
    deliver(c, e, f);
    pyclient_ack_note(c, payload_len, c->state == CALL_ENDED);
    return 0;
}

static int call_event(struct session *s, struct agx_str payload)
{
    struct agx_mp_field f[FIELDS] = {
        [CALL_ID] = { AGX_STR("call_id"), AGX_MP_BIT(AGX_MP_STR) },
        [VALUE] = { AGX_STR("value"), AGX_MP_ANY },
        [SEQ] = { AGX_STR("seq"), AGX_MP_BIT(AGX_MP_UINT) },
        [ERROR] = { AGX_STR("error"), AGX_MP_BIT(AGX_MP_MAP) },
        [N] = { AGX_STR("n"), AGX_MP_BIT(AGX_MP_UINT) },
        [BYTES] = { AGX_STR("bytes"), AGX_MP_BIT(AGX_MP_UINT) },
    };
    struct agx_error *err = NULL;
    struct call *c;
    int r = 0;

    if (agx_mp_read_fields(payload, &limits, f, FIELDS, &err) < 0)
        return malformed(&err);
    c = f[CALL_ID].present ? agx_map_get(&s->calls, f[CALL_ID].value.bytes) : NULL;
    if (!c || c->state != CALL_SENT)
        return 0; /* cancelled here, and on its way when that happened */
    Py_INCREF((PyObject *)c);
    if (s->event == AGX_EV_CREDIT)
        pyclient_call_input_credit(c, number(&f[N]), number(&f[BYTES]), number(&f[SEQ]));
    else
        r = numbered_event(c, s->event, f, payload.len);
    Py_DECREF((PyObject *)c);
    return r;
}

/* ---- resume:done ---- */

static int next(struct agx_mp_reader *r, struct agx_mp_token *t, enum agx_mp_type want)
{
    struct agx_error *err = NULL;

    if (agx_mp_next(r, t, &err) < 0)
        return malformed(&err);
    if (t->type == want)
        return 0;
    PyErr_Format(PyExc_ValueError, "resume:done: %s where %s belongs", agx_mp_type_name(t->type),
                 agx_mp_type_name(want));
    return -1;
}

static struct call *find_sent(struct session *s, struct agx_str id)
{
    struct call *c = agx_map_get(&s->calls, id);

    return c && c->state == CALL_SENT ? c : NULL;
}

/* known: array of [call_id, seq]: the server goes on from there; so do we with bidi input. */
static int resume_known(struct session *s, struct agx_str raw)
{
    struct agx_mp_token list, pair, id, seq;
    struct agx_error *err = NULL;
    struct agx_mp_reader r;

    if (agx_mp_reader_init(&r, raw, &limits, &err) < 0)
        return malformed(&err);
    if (next(&r, &list, AGX_MP_ARRAY) < 0)
        return -1;
    for (uint32_t i = 0; i < list.count; i++) {
        struct call *c;

        if (next(&r, &pair, AGX_MP_ARRAY) < 0 || next(&r, &id, AGX_MP_STR) < 0 ||
            next(&r, &seq, AGX_MP_UINT) < 0)
            return -1;
        c = find_sent(s, id.bytes);
        if (c && pyclient_call_input_known(c, seq.u) < 0)
            return -1;
    }
    return 0;
}

/* unknown: array of call_id: the request was never received, unless the server knew the call once. */
static int resume_unknown(struct session *s, struct agx_str raw)
{
    struct agx_mp_token list, id;
    struct agx_error *err = NULL;
    struct agx_mp_reader r;

    if (agx_mp_reader_init(&r, raw, &limits, &err) < 0)
        return malformed(&err);
    if (next(&r, &list, AGX_MP_ARRAY) < 0)
        return -1;
    for (uint32_t i = 0; i < list.count; i++) {
        struct call *c;

        if (next(&r, &id, AGX_MP_STR) < 0)
            return -1;
        c = find_sent(s, id.bytes);
        if (c && !agx_call_flow_unknown(&c->flow))
            pyclient_call_fail(c, "ResultUnavailable", "the server no longer knows the call");
        else if (c && pyclient_call_send_request(c) < 0)
            return -1;
    }
    return 0;
}

static int resume_done(struct session *s, struct agx_str payload)
{
    struct agx_mp_field f[] = {
        { AGX_STR("known"), AGX_MP_BIT(AGX_MP_ARRAY) },
        { AGX_STR("unknown"), AGX_MP_BIT(AGX_MP_ARRAY) },
    };
    struct agx_error *err = NULL;

    if (s->state != SESSION_RESUMING)
        return 0;
    if (agx_mp_read_fields(payload, &limits, f, AGX_ARRAY_LEN(f), &err) < 0)
        return malformed(&err);
    s->state = SESSION_OPEN;
    if (f[0].present && resume_known(s, f[0].raw) < 0)
        return -1;
    if (f[1].present && resume_unknown(s, f[1].raw) < 0)
        return -1;
    return pyclient_session_send_waiting(s);
}

int pyclient_event_receive(struct session *s, struct agx_str payload)
{
    if (!s->known_event)
        return 0;
    if (s->event == AGX_EV_RESUME_DONE)
        return resume_done(s, payload);
    return call_event(s, payload);
}
