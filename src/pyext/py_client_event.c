/* py_client_event.c: messages of the server: results, items, ends, errors, credit, resume:done. */
#include "pyext/py_client_fn.h"
#include "pyext/py_error.h"

#include "base/banned.h"

static int py_client_event_malformed(struct agx_error **err)
{
    (void)agx_py_raise(err);
    return -1;
}

/* New: a value of the event; None if it is absent. */
static PyObject *decode(struct call *c, struct agx_str raw)
{
    if (raw.len == 0)
        return Py_NewRef(Py_None);
    return agx_py_unpack_raw(&c->module->codec, raw);
}

static void end_with_error(struct call *c, struct agx_str raw)
{
    _cleanup_py_ PyObject *error = decode(c, raw);
    PyObject *exception = error ? pyclient_session_error(c->session, c->plan->name, error) : NULL;

    if (exception)
        pyclient_call_end(c, NULL, exception);
    else
        pyclient_call_fail_set(c);
}

/* A value that cannot be decoded ends its call; the server may still run it. */
static void end_undecodable(struct call *c, bool ended)
{
    PyObject *type, *value, *traceback;

    PyErr_Fetch(&type, &value, &traceback);
    if (!ended && pyclient_request_cancel(c) < 0)
        PyErr_Clear();
    PyErr_Restore(type, value, traceback);
    pyclient_call_fail_set(c);
}

static void py_client_event_deliver(struct call *c, enum agx_flow_event e,
                                    const struct agx_remote_message *m)
{
    PyObject *value;

    if (e == AGX_FLOW_ERROR) {
        end_with_error(c, m->error);
    } else if (e == AGX_FLOW_END) {
        pyclient_call_end(c, NULL, NULL);
    } else {
        value = decode(c, m->value);
        if (!value)
            end_undecodable(c, e == AGX_FLOW_RESULT);
        else if (e == AGX_FLOW_RESULT)
            pyclient_call_end(c, value, NULL);
        else
            pyclient_call_add_item(c, value, m->value.len);
    }
}

static int numbered_event(struct call *c, enum agx_remote_event ev,
                          const struct agx_remote_message *m, size_t payload_len)
{
    enum agx_flow_event e;

    if (c->session->proto == 0) { /* a server without numbers; nothing to acknowledge */
        e = agx_flow_meaning(c->plan->kind, ev);
        if (e != AGX_FLOW_NOTHING)
            py_client_event_deliver(c, e, m);
        return 0;
    }
    e = agx_remote_flow_event(&c->flow, ev, m->seq, m->value.len);
    if (e == AGX_FLOW_NOTHING)
        return 0;
    if (agx_flow_fault(e)) {
        PyErr_Format(PyExc_ValueError, "the server sent %s", agx_flow_fault(e));
        return -1;
    }
    py_client_event_deliver(c, e, m);
    pyclient_ack_note(c, payload_len, c->state == CALL_ENDED);
    return 0;
}

static int call_event(struct session *s, struct agx_str payload)
{
    struct agx_error *err = NULL;
    struct agx_remote_message m;
    struct call *c;
    int r = 0;

    if (agx_remote_message_read(payload, &m, &err) < 0)
        return py_client_event_malformed(&err);
    c = m.call_id.len > 0 ? agx_map_get(&s->calls, m.call_id) : NULL;
    if (!c || c->state != CALL_SENT)
        return 0; /* it was on its way when this side cancelled the call */
    Py_INCREF((PyObject *)c);
    if (s->event == AGX_EV_CREDIT)
        pyclient_call_input_credit(c, m.n, m.bytes, m.seq);
    else
        r = numbered_event(c, s->event, &m, payload.len);
    Py_DECREF((PyObject *)c);
    return r;
}

/* ---- resume:done ---- */

static struct call *find_sent(struct session *s, struct agx_str id)
{
    struct call *c = agx_map_get(&s->calls, id);

    return c && c->state == CALL_SENT ? c : NULL;
}

/* The server continues the call from where it was; we do the same with bidi input. */
static int resume_known(struct session *s, struct agx_resume_done *done)
{
    struct agx_error *err = NULL;
    struct agx_str id;
    uint64_t seq;
    int r;

    while ((r = agx_resume_done_known(done, &id, &seq, &err)) > 0) {
        struct call *c = find_sent(s, id);

        if (c && pyclient_call_input_known(c, seq) < 0)
            return -1;
    }
    return r < 0 ? py_client_event_malformed(&err) : 0;
}

static int resume_unknown(struct session *s, struct agx_resume_done *done)
{
    struct agx_error *err = NULL;
    struct agx_str id;
    int r;

    while ((r = agx_resume_done_unknown(done, &id, &err)) > 0) {
        struct call *c = find_sent(s, id);

        if (c && !agx_remote_flow_unknown(&c->flow))
            pyclient_call_fail(c, "ResultUnavailable", "the server no longer knows the call");
        else if (c && pyclient_call_send_request(c) < 0)
            return -1;
    }
    return r < 0 ? py_client_event_malformed(&err) : 0;
}

static int resume_done(struct session *s, struct agx_str payload)
{
    struct agx_resume_done done;
    struct agx_error *err = NULL;

    if (s->state != SESSION_RESUMING)
        return 0;
    if (agx_resume_done_read(payload, &done, &err) < 0)
        return py_client_event_malformed(&err);
    s->state = SESSION_OPEN;
    if (resume_known(s, &done) < 0 || resume_unknown(s, &done) < 0)
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
