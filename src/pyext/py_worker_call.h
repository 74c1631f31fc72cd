/* py_worker_call.h: one call, and the frames that answer it. */
#ifndef AGX_PYEXT_PY_WORKER_CALL_H
#define AGX_PYEXT_PY_WORKER_CALL_H

#include "pyext/py_worker_plan.h"

#include "base/list.h"
#include "codec/credit.h"
#include "codec/worker_frame.h"

struct worker;

/* Where a failure happened; decides how it is reported. The numbers are those of _errors.py. */
enum phase { PHASE_LOAD, PHASE_BIND, PHASE_RUN, PHASE_RESULT, PHASE_ITEM, PHASE_INPUT };

/*
 * One call, from its frame to its one terminal frame. It is in the worker's table from the reading
 * of its frame until the terminal frame is queued.
 */
struct call {
    PyObject_HEAD struct worker *w; /* borrowed: it outlives every call */
    uint64_t id;
    enum agx_remote_kind kind;
    unsigned flags; /* AGX_RECV_* */
    uint64_t max;
    bool cancelled;    /* the server requested it */
    bool over;         /* the terminal frame is queued: nothing may follow */
    bool exc_sent;     /* CancelledError was sent to `tid` and may still be on its way */
    unsigned long tid; /* the thread that runs the function, or 0 */
    struct plan *plan; /* owned; NULL until loaded */
    PyObject *task;    /* owned; on the loop */
    PyObject *waiter;  /* owned; the future that the producer waits on for credit */
    PyObject *inbox;   /* owned; takes the input of a bidi call */
    struct agx_credit sent, granted; /* of items */
    unsigned turn;                   /* items since the loop last ran */
    struct agx_list_node node;       /* in the pool's backlog */
    uint8_t *frame;                  /* owned; the call's frame, while it waits */
    size_t frame_len;
};

PyTypeObject *pyworker_call_type_new(PyObject *module);
/* New; adds it to the table of calls. NULL with an exception. */
struct call *pyworker_call_new(struct worker *w, const struct agx_worker_frame *f);
/* Terminal frames: only the first one is sent. `on_thread`: by the thread lane. */
void pyworker_call_finish(struct call *c, PyObject *value, bool on_thread);
/* Reports and clears the exception. SystemExit and KeyboardInterrupt end the process. */
void pyworker_call_fail(struct call *c, enum phase phase, bool on_thread);
void pyworker_call_fail_text(struct call *c, const char *type, const char *message, bool cancelled,
                             bool on_thread);
void pyworker_call_cancelled(struct call *c, bool on_thread);
/* Removes the call from the table. */
void pyworker_call_forget(struct call *c);
/* Empty if the frame has none. New, or NULL with an exception. */
PyObject *pyworker_call_args(struct worker *w, const struct agx_worker_frame *f);
PyObject *pyworker_call_kwargs(struct worker *w, const struct agx_worker_frame *f);
/* Runs a plain function in this thread, with arguments as received, and answers. */
void pyworker_call_run(struct call *c, PyObject *args, PyObject *kwargs);
/* Keeps a copy of the frame for later. -1 with an exception. */
int pyworker_call_keep_frame(struct call *c, struct agx_str frame) AGX_MUST_CHECK;

#endif
