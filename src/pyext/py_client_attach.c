/* py_client_attach.c: how a session gets a connection, and how it loses one. */
#include "pyext/py_client_fn.h"

#include <unistd.h>

#include "base/banned.h"

static int attach(struct session *s, PyObject *loop, Py_ssize_t max_message)
{
    if (s->state != SESSION_DETACHED) {
        PyErr_SetString(PyExc_RuntimeError, "the session has a connection, or is closed");
        return -1;
    }
    if (!s->in)
        s->in = malloc(SESSION_READ);
    if (!s->in) {
        PyErr_NoMemory();
        return -1;
    }
    pyclient_session_bind(s, loop);
    agx_ws_init(&s->ws, AGX_WS_CLIENT, (size_t)max_message);
    s->state = SESSION_GREETING;
    s->generation++;
    return 0;
}

PyObject *pyclient_session_attach_fd(PyObject *self, PyObject *args)
{
    struct session *s = (struct session *)self;
    _cleanup_py_ PyObject *reader = NULL;
    PyObject *loop, *r;
    Py_ssize_t max_message;
    int fd;

    if (!PyArg_ParseTuple(args, "Oin:attach_fd", &loop, &fd, &max_message))
        return NULL;
    reader = PyObject_GetAttrString(self, "on_readable");
    if (!reader || attach(s, loop, max_message) < 0)
        return NULL;
    s->fd = fd;
    r = PyObject_CallMethod(loop, "add_reader", "iO", fd, reader);
    if (!r) {
        s->fd = -1; /* the caller keeps it */
        pyclient_io_detach(s);
        return NULL;
    }
    return r;
}

PyObject *pyclient_session_attach_transport(PyObject *self, PyObject *args)
{
    struct session *s = (struct session *)self;
    PyObject *loop, *transport;
    Py_ssize_t max_message;

    if (!PyArg_ParseTuple(args, "OOn:attach_transport", &loop, &transport, &max_message))
        return NULL;
    if (attach(s, loop, max_message) < 0)
        return NULL;
    s->transport = Py_NewRef(transport);
    Py_RETURN_NONE;
}

static void close_fd(struct session *s)
{
    PyObject *r;

    (void)pyclient_io_watch_writer(s, false);
    r = PyObject_CallMethod(s->loop, "remove_reader", "i", s->fd);
    Py_XDECREF(r);
    PyErr_Clear(); /* a closed loop no longer watches anything */
    (void)close(s->fd);
    s->fd = -1;
    s->writer = false;
}

static void close_transport(struct session *s)
{
    PyObject *transport = AGX_TAKE_PTR(s->transport);
    PyObject *r = PyObject_CallMethod(transport, "close", NULL);

    if (!r)
        PyErr_Clear();
    Py_XDECREF(r);
    Py_DECREF(transport);
}

static void stop_ack_timer(struct session *s)
{
    PyObject *timer = AGX_TAKE_PTR(s->ack_timer), *r;

    if (!timer)
        return;
    r = PyObject_CallMethod(timer, "cancel", NULL);
    if (!r)
        PyErr_Clear();
    Py_XDECREF(r);
    Py_DECREF(timer);
}

void pyclient_io_detach(struct session *s)
{
    if (s->state == SESSION_DETACHED || s->state == SESSION_CLOSED)
        return;
    s->state = SESSION_DETACHED;
    s->generation++;
    if (s->fd >= 0)
        close_fd(s);
    if (s->transport)
        close_transport(s);
    agx_ws_done(&s->ws);
    pyclient_io_out_emptied(s);
    s->has_event = false;
    stop_ack_timer(s);
    pyclient_ack_reset(s); /* a resume names the open calls; the server drops the others */
}

void pyclient_io_lost(struct session *s, const char *reason)
{
    PyObject *r;

    pyclient_io_detach(s);
    r = PyObject_CallMethod(s->owner, "lost", "s", reason);
    if (!r)
        PyErr_WriteUnraisable(s->owner);
    Py_XDECREF(r);
}
