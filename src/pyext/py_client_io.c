/*
 * py_client_io.c: the connection of a session: bytes, WebSocket frames, Engine.IO packets.
 *
 * Reading has three separate steps: received bytes become outcomes of calls; the tasks that wait
 * for these run, one after the other; everything that they sent leaves with one system call.
 */
#include "pyext/py_client_fn.h"
#include "pyext/py_error.h"

#include "base/limits.h"
#include "base/uuid.h"
#include "codec/sio.h"

#include <sys/socket.h>

#include "base/banned.h"

/* Reads in one turn of the loop, so that a flood of items leaves time for others. */
enum { READS_MAX = 16 };

/* Bytes that the output buffer keeps when it is empty. */
enum { OUT_KEEP = 2 << 20 };

/* ---- out ---- */

static const uint8_t *next_key(struct session *s)
{
    if (s->keys_at + AGX_WS_KEY_SIZE > sizeof(s->keys)) {
        struct agx_error *err = NULL;

        if (agx_random_bytes(s->keys, sizeof(s->keys), &err) < 0) {
            (void)agx_py_raise(&err);
            return NULL;
        }
        s->keys_at = 0;
    }
    s->keys_at += AGX_WS_KEY_SIZE;
    return s->keys + s->keys_at - AGX_WS_KEY_SIZE;
}

static int append_frame(struct session *s, enum agx_ws_kind kind, struct agx_str payload)
{
    const uint8_t *key = next_key(s);

    if (!key)
        return -1;
    if (agx_ws_append(&s->out, kind, payload, key) < 0) {
        PyErr_Format(PyExc_MemoryError, "no room for a message of %zu bytes: %zu wait to be sent",
                     payload.len, s->out.len - s->out_at);
        return -1;
    }
    return 0;
}

int pyclient_io_text(struct session *s, struct agx_str text)
{
    if (append_frame(s, AGX_WS_TEXT, text) < 0)
        return -1;
    return pyclient_io_flush_soon(s);
}

int pyclient_io_event(struct session *s, enum agx_remote_event ev, struct agx_str payload)
{
    size_t before = s->out.len;

    if (append_frame(s, AGX_WS_TEXT, agx_buf_peek(&s->module->headers[ev])) < 0)
        return -1;
    if (append_frame(s, AGX_WS_BINARY, payload) < 0) {
        s->out.len = before; /* a header without its attachment would break the connection */
        return -1;
    }
    return pyclient_io_flush_soon(s);
}

static PyObject *method(struct session *s, const char *name)
{
    return PyObject_GetAttrString((PyObject *)s, name);
}

/* A dying call may send its cancellation from another thread (3 in py_client.h). */
int pyclient_io_call_soon(struct session *s, const char *name)
{
    _cleanup_py_ PyObject *fn = method(s, name);
    const char *how =
        PyThread_get_thread_ident() == s->thread ? "call_soon" : "call_soon_threadsafe";
    PyObject *handle;

    if (!fn)
        return -1;
    handle = PyObject_CallMethod(s->loop, how, "O", fn);
    Py_XDECREF(handle);
    return handle ? 0 : -1;
}

int pyclient_io_flush_soon(struct session *s)
{
    if (s->reading || s->flush_due || !s->loop)
        return 0;
    if (pyclient_io_call_soon(s, "flush") < 0)
        return -1;
    s->flush_due = true;
    return 0;
}

int pyclient_io_watch_writer(struct session *s, bool on)
{
    PyObject *r;

    if (s->writer == on)
        return 0;
    if (on) {
        _cleanup_py_ PyObject *fn = method(s, "flush");

        r = fn ? PyObject_CallMethod(s->loop, "add_writer", "iO", s->fd, fn) : NULL;
    } else {
        r = PyObject_CallMethod(s->loop, "remove_writer", "i", s->fd);
    }
    Py_XDECREF(r);
    if (!r)
        return -1;
    s->writer = on;
    return 0;
}

static int flush_transport(struct session *s)
{
    PyObject *r = PyObject_CallMethod(s->transport, "write", "y#", (const char *)s->out.data,
                                      (Py_ssize_t)s->out.len);

    Py_XDECREF(r);
    agx_buf_clear(&s->out);
    return r ? 0 : -1;
}

void pyclient_io_out_emptied(struct session *s)
{
    s->out_at = 0;
    agx_buf_clear(&s->out);
    if (s->out.cap > OUT_KEEP)
        agx_buf_done(&s->out);
}

int pyclient_io_flush(struct session *s)
{
    if (s->out.len == s->out_at || s->state == SESSION_DETACHED || s->state == SESSION_CLOSED)
        return 0;
    if (s->transport)
        return flush_transport(s);
    while (s->out_at < s->out.len) {
        ssize_t n = send(s->fd, s->out.data + s->out_at, s->out.len - s->out_at,
                         MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n >= 0) {
            s->out_at += (size_t)n;
            continue;
        }
        if (errno == EINTR)
            continue;
        if (errno == EAGAIN)
            return pyclient_io_watch_writer(s, true);
        pyclient_io_lost(s, strerror(errno));
        return 0;
    }
    pyclient_io_out_emptied(s);
    return pyclient_io_watch_writer(s, false);
}

int pyclient_io_goodbye(struct session *s)
{
    const uint8_t *key;

    if (append_frame(s, AGX_WS_TEXT, AGX_STR("41")) < 0)
        return -1;
    key = next_key(s);
    if (!key || agx_ws_append_close(&s->out, AGX_WS_NORMAL, AGX_STR(""), key) < 0) {
        PyErr_NoMemory();
        return -1;
    }
    return pyclient_io_flush(s);
}

PyObject *pyclient_session_flush(PyObject *self, PyObject *unused)
{
    struct session *s = (struct session *)self;

    (void)unused;
    s->flush_due = false;
    if (pyclient_io_flush(s) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* ---- in ---- */

/* All packets but events go to the owner (handshake, disconnects). */
static int tell_owner(struct session *s, struct agx_str text)
{
    PyObject *r = PyObject_CallMethod(s->owner, "packet", "s#", text.ptr, (Py_ssize_t)text.len);

    Py_XDECREF(r);
    return r ? 0 : -1;
}

static int receive_text(struct session *s, struct agx_str text)
{
    struct agx_str name;

    if (text.len > 0 && text.ptr[0] == '4' &&
        agx_sio_decode_binary_event(agx_str_skip(text, 1), &name)) {
        s->has_event = true;
        s->known_event = agx_remote_event_find(name, &s->event);
        return 0;
    }
    if (agx_str_eq(text, AGX_STR("2"))) /* Engine.IO ping */
        return pyclient_io_text(s, AGX_STR("3"));
    return tell_owner(s, text);
}

static int receive_frame(struct session *s, const struct agx_ws_event *ev)
{
    switch (ev->kind) {
    case AGX_WS_TEXT:
        return receive_text(s, ev->data);
    case AGX_WS_BINARY:
        if (!s->has_event) {
            PyErr_SetString(PyExc_ValueError, "an attachment without an event");
            return -1;
        }
        s->has_event = false;
        return pyclient_event_receive(s, ev->data);
    case AGX_WS_PING:
        return append_frame(s, AGX_WS_PONG, ev->data);
    case AGX_WS_CLOSE:
        pyclient_io_lost(s, "the server closed the connection");
        return 0;
    case AGX_WS_PONG:
        break;
    }
    return 0;
}

/* The exception that is set becomes the reason for the loss. */
static void lost_by_exception(struct session *s)
{
    PyObject *type, *value, *traceback;
    _cleanup_py_ PyObject *text = NULL;
    const char *reason;

    PyErr_Fetch(&type, &value, &traceback);
    text = value ? PyObject_Str(value) : NULL;
    reason = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    PyErr_Clear();
    pyclient_io_lost(s, reason ? reason : "malformed message");
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
}

/* Reads bytes; the connection may be gone afterwards. */
static void take_bytes(struct session *s, uint8_t *data, size_t len)
{
    uint64_t generation = s->generation;
    struct agx_error *err = NULL;
    struct agx_ws_event ev;
    int r;

    s->reads++;
    while ((r = agx_ws_read(&s->ws, &data, &len, &ev, &err)) > 0) {
        if (receive_frame(s, &ev) < 0) {
            lost_by_exception(s);
            return;
        }
        if (s->generation != generation)
            return;
    }
    if (r < 0) {
        (void)agx_py_raise(&err);
        lost_by_exception(s);
    }
}

/* One read from the descriptor. True: there may be more. */
static bool read_once(struct session *s)
{
    uint8_t *room;
    size_t size;
    bool large;
    ssize_t n;

    agx_ws_want(&s->ws, &room, &size);
    large = size > 0;
    if (!large) {
        room = s->in;
        size = SESSION_READ;
    }
    n = recv(s->fd, room, size, MSG_DONTWAIT);
    if (n < 0) {
        if (errno != EAGAIN && errno != EINTR)
            pyclient_io_lost(s, strerror(errno));
        return false;
    }
    if (n == 0) {
        pyclient_io_lost(s, "the server closed the connection");
        return false;
    }
    if (large)
        agx_ws_filled(&s->ws, (size_t)n);
    take_bytes(s, room, large ? 0 : (size_t)n);
    return (size_t)n == size;
}

static int start_ack_timer(struct session *s)
{
    _cleanup_py_ PyObject *fn = method(s, "send_acks");

    if (!fn)
        return -1;
    s->ack_timer = PyObject_CallMethod(s->loop, "call_later", "dO", AGX_CLIENT_ACK_MS / 1e3, fn);
    return s->ack_timer ? 0 : -1;
}

PyObject *pyclient_session_send_acks(PyObject *self, PyObject *unused)
{
    struct session *s = (struct session *)self;

    (void)unused;
    Py_CLEAR(s->ack_timer);
    if (s->state == SESSION_OPEN && pyclient_request_acks(s) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static int acknowledge(struct session *s)
{
    if (s->state != SESSION_OPEN || s->unacked == 0)
        return 0;
    if (agx_ack_due(s->unacked))
        return pyclient_request_acks(s);
    return s->ack_timer ? 0 : start_ack_timer(s);
}

/* After reading: the tasks run, then everything that they sent leaves together. */
static PyObject *finish_reading(struct session *s)
{
    int woken = pyclient_session_run_woken(s);

    s->reading = false;
    if (woken < 0) {
        (void)pyclient_io_flush_soon(s);
        return NULL;
    }
    if (acknowledge(s) < 0 || pyclient_io_flush(s) < 0)
        return NULL;
    Py_RETURN_NONE;
}

PyObject *pyclient_session_on_readable(PyObject *self, PyObject *unused)
{
    struct session *s = (struct session *)self;
    uint64_t generation = s->generation;

    (void)unused;
    s->reading = true;
    for (int i = 0; i < READS_MAX && s->generation == generation; i++) {
        if (!read_once(s))
            break;
    }
    return finish_reading(s);
}

PyObject *pyclient_session_feed(PyObject *self, PyObject *data)
{
    struct session *s = (struct session *)self;
    Py_buffer view;

    if (s->state == SESSION_DETACHED || s->state == SESSION_CLOSED)
        Py_RETURN_NONE;
    if (PyObject_GetBuffer(data, &view, PyBUF_SIMPLE) < 0)
        return NULL;
    s->reading = true;
    take_bytes(s, view.buf, (size_t)view.len); /* a server's frames are not masked: unchanged */
    PyBuffer_Release(&view);
    return finish_reading(s);
}
