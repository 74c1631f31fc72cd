/* py_client_session.c: the type Session: the open calls of a client, and the methods for Python. */
#include "pyext/py_client_fn.h"
#include "pyext/py_error.h"

#include "base/limits.h"
#include "base/uuid.h"

#include <stdio.h>

#include "base/banned.h"

/* ---- calls ---- */

int pyclient_session_add(struct session *s, struct call *c)
{
    if (agx_map_get(&s->calls, pyclient_call_id(c))) {
        _cleanup_py_ PyObject *error = Py_BuildValue("{ssss}", "type", "DuplicateCall", "message",
                                                     "this client already has a call with this id");
        _cleanup_py_ PyObject *e = error ? pyclient_session_error(s, c->plan->name, error) : NULL;

        if (e)
            PyErr_SetObject((PyObject *)Py_TYPE(e), e);
        return -1;
    }
    if (agx_map_put(&s->calls, pyclient_call_id(c), c, NULL) < 0) {
        PyErr_NoMemory();
        return -1;
    }
    return 0;
}

void pyclient_session_take_room(struct session *s, struct agx_buf *request)
{
    if (request->cap > 0 || s->spare.cap == 0)
        return;
    *request = s->spare;
    s->spare = (struct agx_buf)AGX_BUF_INIT(request->max);
}

void pyclient_session_give_room(struct session *s, struct agx_buf *request)
{
    if (request->cap > s->spare.cap && request->cap <= SPARE_MOST) {
        struct agx_buf smaller = s->spare;

        s->spare = *request;
        *request = smaller;
        agx_buf_clear(&s->spare);
    }
    agx_buf_done(request);
}

void pyclient_session_remove(struct session *s, struct call *c)
{
    (void)agx_map_remove(&s->calls, pyclient_call_id(c));
}

static bool push_woken(struct session *s, struct call *c)
{
    if (s->woken_len == s->woken_cap) {
        size_t cap = s->woken_cap ? s->woken_cap * 2 : 64;
        struct call **grown = realloc(s->woken, cap * sizeof(struct call *));

        if (!grown)
            return false;
        s->woken = grown;
        s->woken_cap = cap;
    }
    s->woken[s->woken_len++] = (struct call *)Py_NewRef((PyObject *)c);
    c->woken = true;
    return true;
}

void pyclient_session_wake(struct session *s, struct call *c)
{
    bool first = s->woken_len == 0;

    if (!c->callback || c->woken)
        return;
    if (!push_woken(s, c)) {
        PyErr_NoMemory();
        PyErr_WriteUnraisable((PyObject *)c);
        return;
    }
    if (first && !s->reading && pyclient_io_call_soon(s, "run_woken") < 0)
        PyErr_WriteUnraisable((PyObject *)c);
}

int pyclient_session_run_woken(struct session *s)
{
    int r = 0;

    /* A task that runs may wake others: the list can grow, and move, meanwhile. */
    for (size_t i = 0; i < s->woken_len; i++) {
        struct call *c = s->woken[i];

        c->woken = false;
        if (r == 0) {
            r = pyclient_call_run_callbacks(c);
            if (r < 0) { /* KeyboardInterrupt: the loop wakes the others later */
                PyObject *type, *value, *traceback;

                PyErr_Fetch(&type, &value, &traceback);
                memmove(s->woken, s->woken + i + 1, (s->woken_len - i - 1) * sizeof(struct call *));
                s->woken_len -= i + 1;
                Py_DECREF((PyObject *)c);
                if (s->woken_len > 0 && pyclient_io_call_soon(s, "run_woken") < 0)
                    PyErr_Clear();
                PyErr_Restore(type, value, traceback);
                return -1;
            }
        }
        Py_DECREF((PyObject *)c);
    }
    s->woken_len = 0;
    return 0;
}

int pyclient_session_send_waiting(struct session *s)
{
    size_t len;
    struct call **list = pyclient_session_list(s, CALL_WAITING, &len);

    if (!list)
        return -1;
    for (size_t i = 0; i < len; i++) {
        if (list[i]->state == CALL_WAITING && pyclient_call_send_request(list[i]) < 0)
            pyclient_call_fail_set(list[i]);
    }
    pyclient_session_list_free(list, len);
    return 0;
}

static void fail_state(struct session *s, enum call_state state, const char *type,
                       const char *message)
{
    size_t len;
    struct call **list = pyclient_session_list(s, state, &len);

    if (!list) {
        PyErr_WriteUnraisable((PyObject *)s);
        return;
    }
    for (size_t i = 0; i < len; i++)
        pyclient_call_fail(list[i], type, message);
    pyclient_session_list_free(list, len);
}

PyObject *pyclient_session_error(struct session *s, PyObject *name, PyObject *error)
{
    return PyObject_CallMethod(s->owner, "error", "OO", name, error);
}

/* ---- methods ---- */

static PyObject *session_call(PyObject *self, PyObject *args)
{
    struct session *s = (struct session *)self;
    PyObject *plan, *values, *names;
    double timeout_s;

    if (!PyArg_ParseTuple(args, "O!O!O!d:call", s->module->plan_type, &plan, &PyTuple_Type, &values,
                          &PyDict_Type, &names, &timeout_s))
        return NULL;
    return (PyObject *)pyclient_call_new(s, (struct plan *)plan, values, names, timeout_s);
}

static PyObject *session_send_text(PyObject *self, PyObject *text)
{
    struct session *s = (struct session *)self;
    Py_ssize_t len;
    const char *bytes = PyUnicode_AsUTF8AndSize(text, &len);

    if (!bytes)
        return NULL;
    if (s->state == SESSION_DETACHED || s->state == SESSION_CLOSED)
        return PyErr_Format(PyExc_ConnectionError, "the session has no connection");
    if (pyclient_io_text(s, agx_str_bytes(bytes, (size_t)len)) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* open(proto, max_send, resume): the handshake is over. */
static PyObject *session_open(PyObject *self, PyObject *args)
{
    struct session *s = (struct session *)self;
    unsigned proto;
    Py_ssize_t max_send;
    int resume;

    if (!PyArg_ParseTuple(args, "Inp:open", &proto, &max_send, &resume))
        return NULL;
    if (s->state != SESSION_GREETING) /* lost while its last packet was on its way to the owner */
        return PyErr_Format(PyExc_ConnectionError, "no handshake is under way");
    s->proto = proto;
    s->max_send = (size_t)max_send;
    s->state = resume ? SESSION_RESUMING : SESSION_OPEN;
    if ((resume ? pyclient_request_resume(s) : pyclient_session_send_waiting(s)) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *session_fail(PyObject *self, PyObject *args)
{
    struct session *s = (struct session *)self;
    const char *type, *message;
    int sent_only = 0;

    if (!PyArg_ParseTuple(args, "ss|p:fail", &type, &message, &sent_only))
        return NULL;
    fail_state(s, CALL_SENT, type, message);
    if (!sent_only)
        fail_state(s, CALL_WAITING, type, message);
    Py_RETURN_NONE;
}

static PyObject *session_expire(PyObject *self, PyObject *id)
{
    struct session *s = (struct session *)self;
    Py_ssize_t len;
    const char *text = PyUnicode_AsUTF8AndSize(id, &len);
    struct call *c;

    if (!text)
        return NULL;
    c = agx_map_get(&s->calls, agx_str_bytes(text, (size_t)len));
    if (c) {
        char message[64];

        (void)snprintf(message, sizeof(message), "no answer within %g s", c->timeout_s);
        Py_INCREF((PyObject *)c);
        if (c->state == CALL_SENT && pyclient_request_cancel(c) < 0)
            PyErr_WriteUnraisable((PyObject *)c);
        pyclient_call_fail(c, "CallTimeout", message);
        Py_DECREF((PyObject *)c);
    }
    Py_RETURN_NONE;
}

static PyObject *session_run_woken_method(PyObject *self, PyObject *unused)
{
    (void)unused;
    if (pyclient_session_run_woken((struct session *)self) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *session_detach(PyObject *self, PyObject *unused)
{
    struct session *s = (struct session *)self;

    (void)unused;
    pyclient_io_detach(s);
    Py_RETURN_NONE;
}

static PyObject *session_close(PyObject *self, PyObject *unused)
{
    struct session *s = (struct session *)self;

    (void)unused;
    if (s->state != SESSION_DETACHED && s->state != SESSION_CLOSED) {
        if (pyclient_io_goodbye(s) < 0)
            PyErr_WriteUnraisable(self);
        pyclient_io_detach(s);
    }
    s->state = SESSION_CLOSED;
    Py_RETURN_NONE;
}

static PyObject *session_calls(PyObject *self, PyObject *unused)
{
    struct session *s = (struct session *)self;
    PyObject *dict = PyDict_New();
    struct agx_str id;
    void *value;

    (void)unused;
    for (size_t at = 0; dict && agx_map_next(&s->calls, &at, &id, &value);) {
        _cleanup_py_ PyObject *key = PyUnicode_FromStringAndSize(id.ptr, (Py_ssize_t)id.len);

        if (!key || PyDict_SetItem(dict, key, value) < 0)
            Py_CLEAR(dict);
    }
    return dict;
}

/* ---- attributes ---- */

static PyObject *get_loop(PyObject *self, void *unused)
{
    PyObject *loop = ((struct session *)self)->loop;

    (void)unused;
    return Py_NewRef(loop ? loop : Py_None);
}

void pyclient_session_bind(struct session *s, PyObject *loop)
{
    PyObject *old = s->loop;

    s->loop = Py_XNewRef(loop);
    s->thread = PyThread_get_thread_ident();
    Py_XDECREF(old);
}

static int set_loop(PyObject *self, PyObject *value, void *unused)
{
    (void)unused;
    pyclient_session_bind((struct session *)self, value);
    return 0;
}

static PyObject *get_state(PyObject *self, void *unused)
{
    static const char *const names[] = {
        [SESSION_DETACHED] = "detached", [SESSION_GREETING] = "greeting",
        [SESSION_RESUMING] = "resuming", [SESSION_OPEN] = "open",
        [SESSION_CLOSED] = "closed",
    };

    (void)unused;
    return PyUnicode_FromString(names[((struct session *)self)->state]);
}

static PyObject *get_reads(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(((struct session *)self)->reads);
}

static PyObject *get_open_calls(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromSize_t(((struct session *)self)->calls.len);
}

static int set_context_ids(PyObject *self, PyObject *value, void *unused)
{
    (void)unused;
    ((struct session *)self)->context_ids = value == Py_True;
    return 0;
}

/* ---- the type ---- */

static PyObject *session_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    struct {
        struct agx_siphash_key seed;
        uint64_t id;
    } random;
    struct agx_error *err = NULL;
    struct session *s;
    PyObject *owner;

    (void)kwargs;
    if (!PyArg_ParseTuple(args, "O:Session", &owner))
        return NULL;
    if (agx_random_bytes(&random, sizeof(random), &err) < 0)
        return agx_py_raise(&err);
    s = (struct session *)PyType_GenericAlloc(type, 0);
    if (!s)
        return NULL;
    s->module = PyType_GetModuleState(type);
    s->owner = Py_NewRef(owner);
    s->fd = -1;
    s->out.max = AGX_CLIENT_OUT_MAX;
    s->scratch.max = s->acks.max = s->spare.max = AGX_MESSAGE_MAX;
    s->max_send = AGX_MESSAGE_MAX;
    s->keys_at = sizeof(s->keys);
    s->proto = 1;
    agx_map_init(&s->calls, random.seed);
    (void)snprintf(s->id_prefix, sizeof(s->id_prefix), "%09llx.",
                   (unsigned long long)(random.id >> 28));
    return (PyObject *)s;
}

static int session_traverse(PyObject *self, visitproc visit, void *arg)
{
    struct session *s = (struct session *)self;

    Py_VISIT(Py_TYPE(self));
    Py_VISIT(s->owner);
    Py_VISIT(s->loop);
    Py_VISIT(s->transport);
    Py_VISIT(s->ack_timer);
    for (size_t i = 0; i < s->woken_len; i++)
        Py_VISIT((PyObject *)s->woken[i]);
    return 0;
}

static int session_clear(PyObject *self)
{
    struct session *s = (struct session *)self;

    if (s->loop)
        pyclient_io_detach(s);
    for (; s->woken_len > 0; s->woken_len--)
        Py_DECREF((PyObject *)s->woken[s->woken_len - 1]);
    Py_CLEAR(s->transport);
    Py_CLEAR(s->ack_timer);
    Py_CLEAR(s->loop);
    Py_CLEAR(s->owner);
    return 0;
}

static void session_dealloc(PyObject *self)
{
    struct session *s = (struct session *)self;
    PyTypeObject *type = Py_TYPE(self);

    PyObject_GC_UnTrack(self);
    (void)session_clear(self);
    agx_map_done(&s->calls);
    agx_buf_done(&s->out);
    agx_buf_done(&s->scratch);
    agx_buf_done(&s->spare);
    agx_buf_done(&s->acks);
    free(s->woken);
    free(s->in);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

static PyMethodDef session_methods[] = {
    { "attach_fd", pyclient_session_attach_fd, METH_VARARGS,
      "attach_fd(loop, fd, max_message): WebSocket frames on a descriptor; takes the descriptor." },
    { "attach_transport", pyclient_session_attach_transport, METH_VARARGS,
      "attach_transport(loop, transport, max_message): frames on a transport; its protocol "
      "feeds." },
    { "feed", pyclient_session_feed, METH_O, "feed(data): received bytes; never inside a task." },
    { "send_text", session_send_text, METH_O, "send_text(packet): one Engine.IO packet." },
    { "open", session_open, METH_VARARGS, "open(proto, max_send, resume): calls may go out." },
    { "call", session_call, METH_VARARGS, "call(plan, args, kwargs, timeout): a new Call." },
    { "fail", session_fail, METH_VARARGS,
      "fail(type, message, sent_only=False): ends the open calls with an error." },
    { "detach", session_detach, METH_NOARGS, "Drops the connection; calls stay open." },
    { "close", session_close, METH_NOARGS, "Ends the connection and the session permanently." },
    { "calls", session_calls, METH_NOARGS, "The open calls by id." },
    { "expire", session_expire, METH_O, "expire(call_id): the deadline of a call has passed." },
    { "flush", pyclient_session_flush, METH_NOARGS, NULL },
    { "send_acks", pyclient_session_send_acks, METH_NOARGS, NULL },
    { "on_readable", pyclient_session_on_readable, METH_NOARGS, NULL },
    { "run_woken", session_run_woken_method, METH_NOARGS, NULL },
    { 0 },
};

static PyGetSetDef session_getset[] = {
    { "loop", get_loop, set_loop, "The event loop that the calls belong to.", NULL },
    { "state", get_state, NULL, "'detached', 'greeting', 'resuming', 'open' or 'closed'", NULL },
    { "reads", get_reads, NULL, "How often bytes came: shows that the server is alive.", NULL },
    { "open_calls", get_open_calls, NULL, "The number of open calls.", NULL },
    { "context_ids", NULL, set_context_ids, "True: ask owner.context_id() at each call.", NULL },
    { 0 },
};

PyObject *pyclient_session_type_new(PyObject *module)
{
    PyType_Slot slots[] = {
        { Py_tp_doc, "The open calls of a client, and its connection." },
        { Py_tp_new, session_new },
        { Py_tp_dealloc, session_dealloc },
        { Py_tp_traverse, session_traverse },
        { Py_tp_clear, session_clear },
        { Py_tp_methods, session_methods },
        { Py_tp_getset, session_getset },
        { 0, NULL },
    };
    PyType_Spec spec = { .name = "agentix._client.Session",
                         .basicsize = sizeof(struct session),
                         .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                         .slots = slots };

    return PyType_FromModuleAndSpec(module, &spec, NULL);
}
