/* py_client_request.c: messages of a client: requests, cancellations, credit, acknowledgements. */
#include "pyext/py_client_fn.h"
#include "pyext/py_error.h"

#include "base/limits.h"

#include <stdio.h>

#include "base/banned.h"

/* Ends a message that was written into s->scratch, and sends it. */
static int send_scratch(struct session *s, enum agx_remote_event ev, struct agx_mp_writer *w)
{
    struct agx_error *err = NULL;

    if (agx_mp_writer_end(w, &err) < 0) {
        (void)agx_py_raise(&err);
        return -1;
    }
    return pyclient_io_event(s, ev, agx_buf_peek(&s->scratch));
}

static void begin_scratch(struct session *s, struct agx_mp_writer *w)
{
    agx_buf_clear(&s->scratch);
    agx_mp_writer_init(w, &s->scratch);
}

static bool is_connected(const struct session *s)
{
    return s->state == SESSION_OPEN;
}

/* ---- requests ---- */

/* The arguments in the form that is packed: `args` and `kwargs` are new references. */
static int dump_arguments(struct call *c, PyObject **args, PyObject **kwargs)
{
    PyObject *pair;

    if (!c->plan->dump) {
        *args = Py_NewRef(c->args);
        *kwargs = Py_NewRef(c->kwargs);
        return 0;
    }
    pair = PyObject_CallFunctionObjArgs(c->plan->dump, c->args, c->kwargs, NULL);
    if (!pair)
        return -1;
    if (!PyArg_ParseTuple(pair, "OO", args, kwargs)) {
        Py_DECREF(pair);
        return -1;
    }
    Py_INCREF(*args);
    Py_INCREF(*kwargs);
    Py_DECREF(pair);
    return 0;
}

static int pack_arguments(struct call *c, struct agx_mp_writer *w)
{
    bool ours = c->session->proto > 0;
    struct agx_py_pack_options options = { .int_keys = ours,
                                           .byte_dtypes = ours,
                                           .fallback = c->plan->fallback };
    _cleanup_py_ PyObject *args = NULL;
    _cleanup_py_ PyObject *kwargs = NULL;

    if (dump_arguments(c, &args, &kwargs) < 0)
        return -1;
    agx_mp_write_str(w, AGX_STR("args"));
    if (agx_py_pack(&c->module->codec, w, args, &options) < 0)
        return -1;
    agx_mp_write_str(w, AGX_STR("kwargs"));
    return agx_py_pack(&c->module->codec, w, kwargs, &options);
}

/* The call ends with MessageTooLarge instead of being sent. */
static int refuse_size(struct call *c, size_t size)
{
    char text[128];

    (void)snprintf(text, sizeof(text), "the request has %zu bytes, the server takes %zu", size,
                   c->session->max_send);
    pyclient_call_fail(c, "MessageTooLarge", text);
    return 0;
}

/* Fills c->request; afterwards the arguments are no longer needed. */
static int encode_request(struct call *c)
{
    struct agx_error *err = NULL;
    struct agx_mp_writer w;
    char *prefix;
    Py_ssize_t prefix_len;

    if (PyBytes_AsStringAndSize(c->plan->prefix, &prefix, &prefix_len) < 0)
        return -1;
    pyclient_session_take_room(c->session, &c->request);
    agx_mp_writer_init(&w, &c->request);
    agx_mp_write_map(&w, c->timeout_s > 0 ? 7 : 6); /* three fields are in the prefix */
    agx_mp_write_raw(&w, agx_str_bytes(prefix, (size_t)prefix_len));
    agx_mp_write_str(&w, AGX_STR("call_id"));
    agx_mp_write_str(&w, pyclient_call_id(c));
    if (c->timeout_s > 0) {
        agx_mp_write_str(&w, AGX_STR("timeout_ms"));
        agx_mp_write_uint(&w, (uint64_t)(c->timeout_s * 1e3) + 1);
    }
    if (pack_arguments(c, &w) < 0) {
        agx_buf_done(&c->request);
        return -1;
    }
    if (agx_mp_writer_end(&w, &err) < 0) {
        (void)agx_py_raise(&err);
        return -1;
    }
    Py_CLEAR(c->args);
    Py_CLEAR(c->kwargs);
    return 0;
}

int pyclient_call_send_request(struct call *c)
{
    static const enum agx_remote_event events[] = {
        [AGX_REMOTE_UNARY] = AGX_EV_UNARY,
        [AGX_REMOTE_STREAM] = AGX_EV_STREAM,
        [AGX_REMOTE_BIDI] = AGX_EV_BIDI_START,
    };

    if (c->request.len == 0 && encode_request(c) < 0)
        return -1;
    if (c->request.len > c->session->max_send)
        return refuse_size(c, c->request.len);
    if (pyclient_io_event(c->session, events[c->plan->kind], agx_buf_peek(&c->request)) < 0)
        return -1;
    c->state = CALL_SENT;
    return c->plan->kind == AGX_REMOTE_BIDI ? pyclient_call_input_begin(c) : 0;
}

/* ---- starting ---- */

static int set_id(struct call *c, struct agx_str id)
{
    c->id = malloc(id.len + 1);
    if (!c->id) {
        PyErr_NoMemory();
        return -1;
    }
    memcpy(c->id, id.ptr, id.len);
    c->id_len = id.len;
    return 0;
}

/* An id that the user has set with call_context(). 1: found. */
static int take_context_id(struct call *c)
{
    PyObject *id = PyObject_CallMethod(c->session->owner, "context_id", NULL);
    const char *text;
    Py_ssize_t len;
    int r;

    if (!id || id == Py_None) {
        Py_XDECREF(id);
        return id ? 0 : -1;
    }
    text = PyUnicode_AsUTF8AndSize(id, &len);
    r = text ? set_id(c, agx_str_bytes(text, (size_t)len)) : -1;
    Py_DECREF(id);
    return r < 0 ? -1 : 1;
}

/*
 * A short id, unique among all clients: a 0.1.5 server mixes up calls with the same id even if they
 * are from different clients.
 */
static int choose_id(struct call *c)
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuv";
    struct session *s = c->session;
    char text[40];
    size_t len = strlen(s->id_prefix);

    if (s->context_ids) {
        int r = take_context_id(c);

        if (r != 0)
            return r < 0 ? -1 : 0;
    }
    memcpy(text, s->id_prefix, len);
    for (uint64_t n = s->next_id; n > 0; n >>= 5)
        text[len++] = digits[n & 31];
    return set_id(c, agx_str_bytes(text, len));
}

static int start_timer(struct call *c)
{
    _cleanup_py_ PyObject *expire = PyObject_GetAttrString((PyObject *)c->session, "expire");

    if (!expire)
        return -1;
    /* The timer has the id, not the call: it must not keep alive a call that nobody waits for. */
    c->timer = PyObject_CallMethod(c->session->loop, "call_later", "dOs#", c->timeout_s, expire,
                                   c->id, (Py_ssize_t)c->id_len);
    return c->timer ? 0 : -1;
}

static int py_client_request_begin(struct call *c)
{
    struct session *s = c->session;

    if (c->plan->failure) {
        PyErr_SetObject((PyObject *)Py_TYPE(c->plan->failure), c->plan->failure);
        return -1;
    }
    /* The owner begins to connect and sets the loop, or raises because it is closed. */
    if (s->state == SESSION_DETACHED || s->state == SESSION_CLOSED) {
        PyObject *r = PyObject_CallMethod(s->owner, "wanted", NULL);

        if (!r)
            return -1;
        Py_DECREF(r);
    }
    c->number = ++s->next_id;
    if (choose_id(c) < 0 || pyclient_session_add(s, c) < 0)
        return -1;
    c->state = CALL_WAITING;
    if (c->timeout_s > 0 && start_timer(c) < 0)
        return -1;
    return is_connected(s) ? pyclient_call_send_request(c) : 0;
}

int pyclient_call_start(struct call *c)
{
    PyObject *type, *value, *traceback;

    if (py_client_request_begin(c) == 0)
        return 0;
    /* The caller gets the exception at once; the call is over without having been sent. */
    PyErr_Fetch(&type, &value, &traceback);
    pyclient_call_end(c, NULL, NULL);
    c->taken = true;
    PyErr_Restore(type, value, traceback);
    return -1;
}

/* ---- the rest ---- */

int pyclient_request_cancel(struct call *c)
{
    struct session *s = c->session;
    struct agx_mp_writer w;

    if (!is_connected(s))
        return 0; /* the server cancels a call that the resume does not name */
    begin_scratch(s, &w);
    agx_remote_write_cancel(&w, pyclient_call_id(c));
    return send_scratch(s, AGX_EV_CANCEL, &w);
}

int pyclient_request_credit(struct call *c)
{
    struct session *s = c->session;
    struct agx_mp_writer w;

    if (!is_connected(s))
        return 0; /* the resume carries the totals */
    begin_scratch(s, &w);
    agx_remote_write_credit(&w, pyclient_call_id(c), &c->flow);
    return send_scratch(s, AGX_EV_CREDIT, &w);
}

static int by_number(const void *a, const void *b)
{
    const struct call *x = *(struct call *const *)a, *y = *(struct call *const *)b;

    return x->number < y->number ? -1 : x->number > y->number;
}

struct call **pyclient_session_list(struct session *s, enum call_state state, size_t *ret_len)
{
    struct call **list = malloc((s->calls.len + 1) * sizeof(struct call *));
    void *value;

    *ret_len = 0;
    if (!list) {
        PyErr_NoMemory();
        return NULL;
    }
    for (size_t at = 0; agx_map_next(&s->calls, &at, NULL, &value);) {
        struct call *c = value;

        if (c->state == state)
            list[(*ret_len)++] = (struct call *)Py_NewRef((PyObject *)c);
    }
    qsort(list, *ret_len, sizeof(struct call *), by_number);
    return list;
}

void pyclient_session_list_free(struct call **list, size_t len)
{
    for (size_t i = 0; i < len; i++)
        Py_DECREF((PyObject *)list[i]);
    free(list);
}

int pyclient_request_resume(struct session *s)
{
    struct agx_mp_writer w;
    size_t len;
    struct call **list = pyclient_session_list(s, CALL_SENT, &len);

    if (!list)
        return -1;
    begin_scratch(s, &w);
    agx_remote_write_list(&w, len);
    for (size_t i = 0; i < len; i++)
        agx_remote_write_resumed(&w, pyclient_call_id(list[i]), &list[i]->flow);
    pyclient_session_list_free(list, len);
    return send_scratch(s, AGX_EV_RESUME, &w);
}

/* ---- acknowledgements ---- */

void pyclient_ack_forget(struct call *c)
{
    if (!c->ack_listed)
        return;
    c->ack_listed = false;
    if (c->ack_prev)
        c->ack_prev->ack_next = c->ack_next;
    else
        c->session->unacked_calls = c->ack_next;
    if (c->ack_next)
        c->ack_next->ack_prev = c->ack_prev;
    c->ack_prev = c->ack_next = NULL;
}

void pyclient_ack_note(struct call *c, size_t bytes, bool ended)
{
    struct session *s = c->session;

    s->unacked += agx_ack_weight(bytes);
    if (ended) {
        struct agx_mp_writer w;

        pyclient_ack_forget(c);
        agx_mp_writer_init(&w, &s->acks);
        agx_remote_write_acked(&w, pyclient_call_id(c), &c->flow);
        /* Without memory the server keeps the result a little longer. */
        if (agx_mp_writer_end(&w, NULL) == 0)
            s->acks_len++;
    } else if (!c->ack_listed) {
        c->ack_listed = true;
        c->ack_next = s->unacked_calls;
        if (c->ack_next)
            c->ack_next->ack_prev = c;
        s->unacked_calls = c;
    }
}

void pyclient_ack_reset(struct session *s)
{
    while (s->unacked_calls)
        pyclient_ack_forget(s->unacked_calls);
    agx_buf_clear(&s->acks);
    s->acks_len = 0;
    s->unacked = 0;
}

int pyclient_request_acks(struct session *s)
{
    struct agx_mp_writer w;
    size_t open = 0;
    int r;

    for (struct call *c = s->unacked_calls; c; c = c->ack_next)
        open++;
    if (s->unacked == 0 || s->proto == 0)
        return 0;
    begin_scratch(s, &w);
    agx_remote_write_list(&w, (open + s->acks_len) * 2);
    agx_mp_write_raw(&w, agx_buf_peek(&s->acks));
    for (struct call *c = s->unacked_calls; c; c = c->ack_next)
        agx_remote_write_acked(&w, pyclient_call_id(c), &c->flow);
    r = send_scratch(s, AGX_EV_ACK, &w);
    pyclient_ack_reset(s);
    return r;
}
