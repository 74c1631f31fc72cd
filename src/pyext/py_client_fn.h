/* py_client_fn.h: functions shared by the files of the extension module agentix._client. */
#ifndef AGX_PYEXT_PY_CLIENT_FN_H
#define AGX_PYEXT_PY_CLIENT_FN_H

#include "pyext/py_client.h"

/* py_client_plan.c */
PyObject *pyclient_plan_type_new(PyObject *module);
/* New: the value, converted as the function's annotation requires; steals `value`. */
PyObject *pyclient_plan_accept(struct plan *p, PyObject *value);

/* py_client_call.c */
PyObject *pyclient_call_type_new(PyObject *module);
/* New: a call that is not started. */
struct call *pyclient_call_new(struct session *s, struct plan *p, PyObject *args, PyObject *kwargs,
                               double timeout_s);
/* Ends it: steals `result` and `exception`; either or both may be NULL. Wakes the waiting task. */
void pyclient_call_end(struct call *c, PyObject *result, PyObject *exception);
/* Ends it with the error that the owner makes from this type and message. */
void pyclient_call_fail(struct call *c, const char *type, const char *message);
/* Ends it with the Python exception that is set. */
void pyclient_call_fail_set(struct call *c);
/* Drops the call, and cancels it at the server if that may have it; steals `exception`. */
void pyclient_call_abandon(struct call *c, PyObject *exception);
/* Sets the exception of an ended call. */
void pyclient_call_raise(struct call *c);
PySendResult pyclient_call_send(PyObject *self, PyObject *value, PyObject **ret);
PyObject *pyclient_call_iternext(PyObject *self);
PyObject *pyclient_call_close(PyObject *self, PyObject *unused);

/* py_client_items.c */
/* An item of `bytes` bytes has come; steals `value`. */
void pyclient_call_add_item(struct call *c, PyObject *value, size_t bytes);
/* New: the next item, converted as the annotation requires; there must be one. */
PyObject *pyclient_call_take_item(struct call *c);
void pyclient_call_drop_items(struct call *c);

/* py_client_future.c: methods and attributes of Call. */
PyObject *pyclient_call_get_blocking(PyObject *self, void *unused);
int pyclient_call_set_blocking(PyObject *self, PyObject *value, void *unused);
PyObject *pyclient_call_add_done_callback(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *pyclient_call_remove_done_callback(PyObject *self, PyObject *fn);
PyObject *pyclient_call_cancel(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *pyclient_call_cancelled(PyObject *self, PyObject *unused);
PyObject *pyclient_call_done(PyObject *self, PyObject *unused);
PyObject *pyclient_call_result(PyObject *self, PyObject *unused);
PyObject *pyclient_call_get_loop(PyObject *self, PyObject *unused);
/* Runs the callback of a call with an outcome or item. Negative: KeyboardInterrupt or the like. */
int pyclient_call_run_callbacks(struct call *c);

/* py_client_step.c */
PyObject *pyclient_step_type_new(PyObject *module);
/* New: waits for the next item of the call; with NULL it is done at once. */
PyObject *pyclient_step_new(struct client_module *m, struct call *c);

/* py_client_input.c: bidi input. */
PyObject *pyclient_call_push(PyObject *self, PyObject *item);
PyObject *pyclient_call_end_input(PyObject *self, PyObject *unused);
PyObject *pyclient_call_credit(PyObject *self, PyObject *unused);
void pyclient_call_input_credit(struct call *c, uint64_t n, uint64_t bytes, uint64_t seq);
/* The request was sent: sends the input that is queued. */
int pyclient_call_input_begin(struct call *c);
/* On a new connection: the server has input up to `seq`; sends the input after it again. */
int pyclient_call_input_known(struct call *c, uint64_t seq);
void pyclient_call_input_done(struct call *c);

/* py_client_request.c: messages to the server. Negative: a Python exception is set. */
int pyclient_call_start(struct call *c);
int pyclient_call_send_request(struct call *c);
int pyclient_request_cancel(struct call *c);
int pyclient_request_credit(struct call *c);
int pyclient_request_acks(struct session *s);
int pyclient_request_resume(struct session *s);
/* Notes an event of the call with `bytes` bytes for the next acknowledgement. */
void pyclient_ack_note(struct call *c, size_t bytes, bool ended);
void pyclient_ack_forget(struct call *c);
void pyclient_ack_reset(struct session *s);

/* py_client_event.c: messages of the server. Negative: a Python exception is set, and the
 * connection is broken. */
int pyclient_event_receive(struct session *s, struct agx_str payload);

/* py_client_session.c */
PyObject *pyclient_session_type_new(PyObject *module);
/* Sets the loop, and so the thread, that the calls belong to. */
void pyclient_session_bind(struct session *s, PyObject *loop);
/* Registers a call under its id. Negative: a Python exception is set. */
int pyclient_session_add(struct session *s, struct call *c);
/* A buffer for a request: that of the last one, if there is one. New pages cost more than copying.
 */
void pyclient_session_take_room(struct session *s, struct agx_buf *request);
/* Empties `request`; keeps its memory if that is worth it. */
void pyclient_session_give_room(struct session *s, struct agx_buf *request);
void pyclient_session_remove(struct session *s, struct call *c);
/* The call can continue; its callbacks run soon, and never inside this function. */
void pyclient_session_wake(struct session *s, struct call *c);
int pyclient_session_run_woken(struct session *s);
/* The calls in that state, oldest first, each with a reference. NULL: a Python exception is set. */
struct call **pyclient_session_list(struct session *s, enum call_state state, size_t *ret_len);
void pyclient_session_list_free(struct call **list, size_t len);
/* Sends the calls that waited for the connection. */
int pyclient_session_send_waiting(struct session *s);
/* New: the exception of an error map, made by the owner. */
PyObject *pyclient_session_error(struct session *s, PyObject *name, PyObject *error);

/* py_client_io.c. Negative: a Python exception is set. */
/* Appends one event with its attachment. */
int pyclient_io_event(struct session *s, enum agx_remote_event ev, struct agx_str payload);
int pyclient_io_text(struct session *s, struct agx_str text);
/* Sends the appended bytes at the end of this turn of the loop. */
int pyclient_io_flush_soon(struct session *s);
int pyclient_io_flush(struct session *s);
/* Makes the loop call that method of the session. */
int pyclient_io_call_soon(struct session *s, const char *name);
/* Sends the closing messages of Socket.IO and WebSocket, as far as the socket takes them. */
int pyclient_io_goodbye(struct session *s);
/* Should the loop report when the descriptor is writable? */
int pyclient_io_watch_writer(struct session *s, bool on);
/* Resets the output: nothing waits to be sent any more. */
void pyclient_io_out_emptied(struct session *s);
/* Methods of Session. */
PyObject *pyclient_session_feed(PyObject *self, PyObject *data);
PyObject *pyclient_session_on_readable(PyObject *self, PyObject *unused);
PyObject *pyclient_session_flush(PyObject *self, PyObject *unused);
PyObject *pyclient_session_send_acks(PyObject *self, PyObject *unused);

/* py_client_attach.c */
/* Takes the connection down without telling the owner. */
void pyclient_io_detach(struct session *s);
/* The same, and tells the owner. */
void pyclient_io_lost(struct session *s, const char *reason);
/* Methods of Session. */
PyObject *pyclient_session_attach_fd(PyObject *self, PyObject *args);
PyObject *pyclient_session_attach_transport(PyObject *self, PyObject *args);

#endif
