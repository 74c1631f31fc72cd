/*
 * py_worker.h: shared by the files of agentix._worker.
 *
 * Threads. The main thread owns the loop lane, and the asyncio loop once a coroutine needed one;
 * before that it waits for frames in C, so that a plain function's first result does not pay for
 * importing asyncio. Pool threads (py_worker_pool.c) own the thread lane and run plain functions.
 *
 * Everything in `struct worker` and `struct call` is touched with the GIL held, except the part of
 * the pool that its mutex protects. Order of locks: the GIL, then the pool's mutex; no thread waits
 * for the GIL while it holds the mutex. The GIL is released around calls that may block.
 */
#ifndef AGX_PYEXT_PY_WORKER_H
#define AGX_PYEXT_PY_WORKER_H

#include "pyext/py.h"

#include "codec/remote_call.h"
#include "codec/worker_frame.h"
#include "pyext/call_table.h"
#include "pyext/inbuf.h"
#include "pyext/outq.h"
#include "pyext/py_msgpack.h"
#include "pyext/py_worker_call.h"
#include "worker/cworker.h"

#include <pthread.h>

/* Work for the main thread from other threads: a frame, and for a call its object. */
struct note {
    struct agx_list_node node;
    struct call *call;   /* owned; NULL for other frames */
    PyObject *awaitable; /* owned; a plain function returned it */
    size_t len;
    uint8_t frame[];
};

struct lane {
    int fd;
    struct agx_inbuf in;
    bool eof;
};

struct thread;

struct pool {
    pthread_mutex_t mutex;
    /* Under the mutex. */
    struct thread *leader; /* reads the thread lane */
    struct agx_list idle;  /* of struct thread */
    unsigned n_threads;
    uint64_t busy; /* the number of the call that the leader is in, or 0 */
    uint64_t started;
    bool watching;
    pthread_cond_t watch;
    struct agx_list backlog; /* of struct call, owned; any thread may run them */
    unsigned running;        /* threads inside a function */
    unsigned max;
};

/* Answers of plain functions; the first thread to come writes them. */
struct thread_out {
    struct agx_buf waiting;
    uint64_t since_us; /* when the oldest answer was queued */
    bool writing;      /* a thread writes, and will include answers added meanwhile */
    bool broken;       /* the server is gone */
};

/* Functions of the Python side, all owned; py_worker.c binds them by these names. */
struct glue {
    PyObject *prepare;       /* (callable, by_target) -> (Plan, may_cache) */
    PyObject *describe;      /* (exception, phase) -> (type, message, traceback or None) */
    PyObject *replace;       /* fallback of the packer: converts every leaf */
    PyObject *replace_plain; /* the same, if the receiver has no annotation to convert back */
    PyObject *stream;        /* (call, plan, args, kwargs) -> coroutine that drives the generator */
    PyObject *bidi;          /* the same -> (coroutine, inbox) */
    PyObject *await_it;      /* (awaitable) -> coroutine */
    PyObject *collect;       /* (generator) -> list */
    PyObject *leave;         /* (exception): ends the process as SystemExit asks */
    PyObject *shutdown;      /* (grace_ms): on the loop */
};

/* The parts of asyncio that the worker uses; set by attach(). All owned. */
struct loop {
    PyObject *loop, *task_type, *task_kwargs, *cancelled_error;
    PyObject *call_soon, *add_writer, *remove_writer, *create_future;
    PyObject *ready_pop; /* before 3.12: pops the step that a new task has scheduled */
    PyObject *on_readable, *on_writable, *flush;
    bool eager; /* Task(eager_start=True) exists */
};

struct worker {
    PyObject_HEAD struct agx_py_codec codec;
    struct glue glue;
    struct loop aio;
    struct lane lanes[AGX_LANE_COUNT];
    struct agx_outq out; /* loop lane */
    struct thread_out thread_out;
    struct pool pool;
    struct agx_call_table calls; /* id -> struct call, owned */
    struct agx_cworker *cfn;     /* owned; calls of C functions, which are not in `calls` */
    PyObject *plans;        /* dict: payload or target -> Plan, or None: load it anew each time */
    PyObject *held_plan;    /* loaded for the frame that waits for a loop */
    PyObject *drained;      /* list of futures that wait for `out` to get shorter */
    PyObject *context_type; /* contextvars.Context */
    PyObject *generator_type;
    PyTypeObject *call_type, *plan_type; /* owned */
    struct agx_list notes;               /* of struct note */
    int wake_fd;                         /* an eventfd: there are notes */
    uint64_t thread_last_id;
    uint64_t early[AGX_WORKER_EARLY_CANCELS_MAX]; /* cancelled before they were read */
    unsigned n_early;
    bool flush_scheduled, writer_added, in_turn, stopping, out_broken;
};

/* Interned names of methods. */
struct names {
    PyObject *run, *result, *done, *cancel, *add_done_callback, *set_result, *_run, *feed, *end,
        *broken, *await_;
};
extern struct names pyworker_names;

/* py_worker_plan.c: the cache of plans. */
/* The cached plan, borrowed, or NULL. *ret_known: it was loaded before, cached or not. */
struct plan *pyworker_find_plan(struct worker *w, PyObject *key, bool *ret_known);
PyObject *pyworker_plan_key(const struct agx_worker_frame *f);
/* Loads. New, or NULL with an exception. */
struct plan *pyworker_load_plan(struct worker *w, PyObject *key, bool by_target);

/* py_worker_loop.c: the main thread. */
/* One turn over the loop lane. -1 with an exception: SystemExit. */
int pyworker_turn(struct worker *w) AGX_MUST_CHECK;
/* Handles the notes from other threads. */
int pyworker_notes(struct worker *w) AGX_MUST_CHECK;
/* Makes the main thread look at its notes and lanes. */
void pyworker_wake(struct worker *w);
/* Queues a note for the main thread; takes the references `take_call` and `take_awaitable`. */
void pyworker_note(struct worker *w, struct call *take_call, PyObject *take_awaitable,
                   struct agx_str frame);
void pyworker_cancel(struct worker *w, uint64_t id);
/* 1: a loop is needed; 0: the server has closed and nothing runs. -1 with an exception. */
int pyworker_wait(struct worker *w) AGX_MUST_CHECK;
/* False, and the call is over, if kind, shape and callable do not match. */
bool pyworker_check_shape(struct call *c, const struct agx_worker_frame *f, bool on_thread);

/* py_worker_task.c: coroutines on the loop. */
int pyworker_start_task(struct call *c, PyObject *coroutine) AGX_MUST_CHECK;
/* Starts a call of any mode but PLAN_THREAD. -1 with SystemExit set. */
int pyworker_start(struct call *c, const struct agx_worker_frame *f) AGX_MUST_CHECK;

/* py_worker_pool.c */
int pyworker_pool_start(struct worker *w) AGX_MUST_CHECK;
/* Takes the reference; a thread runs the call from its kept frame. */
void pyworker_pool_submit(struct worker *w, struct call *take_call);

/* py_worker_out.c */
/* The loop lane: writes as much as the socket takes, without waiting; now, or after this turn. */
void pyworker_flush(struct worker *w);
void pyworker_flush_soon(struct worker *w);
/* Wakes the task that waits on a future; accepts NULL. */
void pyworker_release(PyObject *future);
/* The thread lane: queues a whole frame; writes the queue. */
void pyworker_pool_send(struct worker *w, struct agx_str frame);
void pyworker_pool_flush(struct worker *w);
/* The same before the process ends: if the server does not read, gives up at `until_ms`, and the
 * rest is lost. */
void pyworker_pool_flush_until(struct worker *w, uint64_t until_ms);

/* py_worker_cfn.c: C functions. */
/* `path`: the directories of shared objects, separated by ':'. */
void pyworker_cfn_init(struct worker *w, const char *path);
/* True: the frame was for a C function, and is handled. */
bool pyworker_cfn_frame(struct worker *w, enum agx_remote_lane lane,
                        const struct agx_worker_frame *f);
/* The number of calls in flight, of Python and of C functions. */
size_t pyworker_active(const struct worker *w);

#endif
