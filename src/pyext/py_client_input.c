/*
 * py_client_input.c: bidi input: numbered, kept until the server has it, limited by its credit.
 * codec/remote_flow.h has the numbers, this file has the messages.
 */
#include "pyext/py_client_fn.h"
#include "pyext/py_error.h"

#include "base/banned.h"

static void drop_inputs(struct call *c, size_t n)
{
    for (size_t i = 0; i < n; i++)
        agx_buf_done(&c->inputs[i].bytes);
    if (n < c->inputs_len)
        memmove(c->inputs, c->inputs + n, (c->inputs_len - n) * sizeof(*c->inputs));
    c->inputs_len -= n;
}

static void release_waiter(struct call *c)
{
    PyObject *waiter = AGX_TAKE_PTR(c->credit_waiter), *done, *r = NULL;

    if (!waiter)
        return;
    done = PyObject_CallMethod(waiter, "done", NULL);
    if (done == Py_False)
        r = PyObject_CallMethod(waiter, "set_result", "O", Py_None);
    if (PyErr_Occurred())
        PyErr_WriteUnraisable(waiter);
    Py_XDECREF(r);
    Py_XDECREF(done);
    Py_DECREF(waiter);
}

void pyclient_call_input_done(struct call *c)
{
    drop_inputs(c, c->inputs_len);
    free(c->inputs);
    c->inputs = NULL;
    c->inputs_cap = 0;
    release_waiter(c);
}

/* May the next item be sent? Not before the request, because the server is not known before. */
static bool has_credit(const struct call *c)
{
    if (c->state != CALL_SENT)
        return c->state == CALL_ENDED; /* after the end there is nothing to wait for */
    /* A 0.1.5 server grants no credit. */
    if (c->session->state == SESSION_OPEN && c->session->proto == 0)
        return true;
    return agx_remote_flow_may_send(&c->flow);
}

/* Sends the input that was not sent on this connection yet. */
static int send_inputs(struct call *c)
{
    struct session *s = c->session;

    if (c->state != CALL_SENT || s->state != SESSION_OPEN)
        return 0;
    while (c->flow.in_sent < c->flow.in_queued) {
        struct call_input *in = &c->inputs[c->flow.in_sent - c->flow.in_acked];

        if (pyclient_io_event(s, in->last ? AGX_EV_BIDI_END_IN : AGX_EV_BIDI_IN,
                              agx_buf_peek(&in->bytes)) < 0)
            return -1;
        c->flow.in_sent++;
    }
    if (s->proto == 0) /* this server cannot resume, so nothing is sent again */
        drop_inputs(c, agx_remote_flow_acked(&c->flow, c->flow.in_sent));
    return 0;
}

static int send_and_release(struct call *c)
{
    if (send_inputs(c) < 0)
        return -1;
    if (has_credit(c))
        release_waiter(c);
    return 0;
}

int pyclient_call_input_begin(struct call *c)
{
    agx_remote_flow_begin(&c->flow);
    return send_and_release(c);
}

int pyclient_call_input_known(struct call *c, uint64_t seq)
{
    drop_inputs(c, agx_remote_flow_known(&c->flow, seq));
    return send_and_release(c);
}

void pyclient_call_input_credit(struct call *c, uint64_t n, uint64_t bytes, uint64_t seq)
{
    drop_inputs(c, agx_remote_flow_credit(&c->flow, n, bytes, seq));
    if (has_credit(c))
        release_waiter(c);
}

static struct call_input *add_input(struct call *c)
{
    if (c->inputs_len == c->inputs_cap) {
        size_t cap = c->inputs_cap ? c->inputs_cap * 2 : 8;
        struct call_input *grown = realloc(c->inputs, cap * sizeof(*grown));

        if (!grown) {
            PyErr_NoMemory();
            return NULL;
        }
        c->inputs = grown;
        c->inputs_cap = cap;
    }
    c->inputs[c->inputs_len] = (struct call_input){ .bytes = AGX_BUF_INIT(AGX_MESSAGE_MAX) };
    return &c->inputs[c->inputs_len];
}

/* Writes the message of the next piece of input; `item` NULL: the end. */
static int encode_input(struct call *c, struct call_input *in, PyObject *item, size_t *ret_size)
{
    bool ours = c->session->proto > 0;
    struct agx_py_pack_options options = { .int_keys = ours,
                                           .byte_dtypes = ours,
                                           .fallback = c->plan->fallback };
    struct agx_error *err = NULL;
    struct agx_mp_writer w;
    size_t before = 0;

    agx_mp_writer_init(&w, &in->bytes);
    agx_remote_write_input(&w, pyclient_call_id(c), c->flow.in_queued + 1, !item);
    if (item) {
        before = in->bytes.len;
        if (agx_py_pack(&c->module->codec, &w, item, &options) < 0)
            return -1;
    }
    if (agx_mp_writer_end(&w, &err) < 0) {
        (void)agx_py_raise(&err);
        return -1;
    }
    if (in->bytes.len > c->session->max_send) {
        PyErr_Format(PyExc_ValueError, "an item of %zu bytes; the server takes %zu", in->bytes.len,
                     c->session->max_send);
        return -1;
    }
    *ret_size = in->bytes.len - before;
    return 0;
}

static int py_client_input_push(struct call *c, PyObject *item)
{
    struct call_input *in;
    size_t size;

    if (c->state == CALL_ENDED || c->flow.in_ended)
        return 0;
    in = add_input(c);
    if (!in)
        return -1;
    if (encode_input(c, in, item, &size) < 0) {
        agx_buf_done(&in->bytes);
        return -1;
    }
    in->last = !item;
    c->inputs_len++;
    if (item)
        agx_remote_flow_queue_item(&c->flow, size);
    else
        agx_remote_flow_queue_end(&c->flow);
    return send_inputs(c);
}

PyObject *pyclient_call_push(PyObject *self, PyObject *item)
{
    struct call *c = (struct call *)self;

    if (py_client_input_push(c, item) < 0)
        return NULL;
    return PyBool_FromLong(has_credit(c));
}

PyObject *pyclient_call_end_input(PyObject *self, PyObject *unused)
{
    (void)unused;
    if (py_client_input_push((struct call *)self, NULL) < 0)
        return NULL;
    Py_RETURN_NONE;
}

PyObject *pyclient_call_credit(PyObject *self, PyObject *unused)
{
    struct call *c = (struct call *)self;
    PyObject *waiter = PyObject_CallMethod(c->session->loop, "create_future", NULL);

    (void)unused;
    if (!waiter)
        return NULL;
    Py_XDECREF(c->credit_waiter);
    c->credit_waiter = Py_NewRef(waiter);
    if (has_credit(c))
        release_waiter(c);
    return waiter;
}
