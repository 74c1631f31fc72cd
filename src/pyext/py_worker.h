/*
 * py_worker.h: what the files of agentix._worker share.
 *
 * Threads. The main thread owns the loop lane, and the asyncio loop once a coroutine needed one;
 * before that it waits for frames in C, so that a plain function's first result does not pay for
 * importing asyncio. Pool threads (py_worker_pool.c) own the thread lane and run plain functions.
 *
 * Everything in `struct worker` and `struct call` is touched with the GIL held, but for the pool's
 * own mutex-protected part. Order of locks: the GIL, then the pool's mutex; nobody waits for the
 * GIL while holding the mutex. The GIL is released around whatever may block.
 */
#ifndef AGX_PYEXT_PY_WORKER_H
#define AGX_PYEXT_PY_WORKER_H

#include "pyext/py.h"

#include "codec/rpc.h"
#include "codec/worker_frame.h"
#include "pyext/idmap.h"
#include "pyext/inbuf.h"
#include "pyext/outq.h"
#include "pyext/py_msgpack.h"
#include "worker/cworker.h"

#include <pthread.h>

/* How a callable is run. The numbers are those of _prepare.py. */
enum plan_mode {
    PLAN_THREAD,    /* anything that is called and returns */
    PLAN_COROUTINE, /* async def: on the loop */
    PLAN_STREAM,    /* async generator */
    PLAN_BIDI,      /* async generator with a Channel parameter */
};

/* A callable that is ready to be called; py_worker_plan.c. */
struct plan {
    PyObject_HEAD PyObject *fn;
    enum plan_mode mode;
    bool simple;        /* no *args or **kwargs, at most 64 parameters: bound in C */
    bool annotated;     /* its result has a type that the receiver can turn text back into */
    bool hinted;        /* the server was told the lane */
    unsigned n_posonly; /* of `names` */
    unsigned n_pos;     /* positional ones, positional-only included */
    uint64_t required;  /* a bit for each of `names` */
    uint64_t fills;     /* omitted ones whose default must be validated */
    PyObject *names;    /* tuple of str */
    PyObject *checks;   /* tuple, one for each of `names`: None, a type, or a tuple of types */
    PyObject *validate; /* validate(index, value) -> value, for what its check does not pass */
    PyObject *bind;     /* bind(args, kwargs) -> (args, kwargs), for all that is not simple */
    PyObject *dump;     /* dump(value) -> value, or None: the value is packed as it is */
};

/* Where a failure happened decides how it is told; the numbers are those of _errors.py. */
enum phase { PHASE_LOAD, PHASE_BIND, PHASE_RUN, PHASE_RESULT, PHASE_ITEM, PHASE_INPUT };

struct worker;

/*
 * One call, from its frame to its one terminal frame. In the worker's table from the moment its
 * frame was read until the terminal was queued.
 */
struct call {
    PyObject_HEAD struct worker *w; /* borrowed: it outlives every call */
    uint64_t id;
    enum agx_rpc_kind kind;
    unsigned flags; /* AGX_RECV_* */
    uint64_t max;
    bool cancelled;    /* the server asked for it */
    bool over;         /* the terminal frame was queued: nothing may follow */
    bool exc_sent;     /* CancelledError was sent to `tid` and may still be on its way */
    unsigned long tid; /* the thread that is inside the function, or 0 */
    struct plan *plan; /* owned; NULL until loaded */
    PyObject *task;    /* owned; on the loop */
    PyObject *waiter;  /* owned; the future that the producer waits on for credit */
    PyObject *inbox;   /* owned; takes the input of a bidi call */
    uint64_t credit_n, credit_bytes, sent_n, sent_bytes; /* totals, as on the wire */
    unsigned turn;                                       /* items since the loop last ran */
    struct call *next;                                   /* in the pool's backlog */
    uint8_t *frame; /* owned; the call's frame, while it waits */
    size_t frame_len;
};

/* Work for the main thread that came up elsewhere: a frame, and for a call its object. */
struct note {
    struct note *next;
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
    struct thread *leader; /* who reads the thread lane */
    struct thread *idle;
    unsigned n_threads;
    uint64_t busy; /* the number of the call that the leader is in, or 0 */
    uint64_t started;
    bool watching, watchdog_runs;
    pthread_cond_t watch;
    struct call *backlog, **backlog_last; /* owned; calls for any thread */
    unsigned running;                     /* threads inside a function */
    unsigned max;
};

/* Answers of plain functions, written by whichever thread comes first. */
struct thread_out {
    struct agx_buf waiting;
    uint64_t since_us; /* when the oldest of them was queued */
    bool writing;      /* a thread is at it, and will take what is added meanwhile */
    bool broken;       /* the server is gone */
};

/* Functions of the Python side, all owned; py_worker.c binds them by these names. */
struct glue {
    PyObject *prepare;       /* (callable, by_target) -> (Plan, may_cache) */
    PyObject *describe;      /* (exception, phase) -> (type, message, traceback or None) */
    PyObject *replace;       /* fallback of the packer: converts every leaf */
    PyObject *replace_plain; /* the same where the receiver has no annotation to convert back by */
    PyObject *stream;        /* (call, plan, args, kwargs) -> coroutine that drives the generator */
    PyObject *bidi;          /* the same -> (coroutine, inbox) */
    PyObject *await_it;      /* (awaitable) -> coroutine */
    PyObject *collect;       /* (generator) -> list */
    PyObject *leave;         /* (exception): ends the process as SystemExit asks */
    PyObject *shutdown;      /* (grace_ms): on the loop */
};

/* What of asyncio the worker uses; set by attach(). All owned. */
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
    struct agx_idmap calls;  /* id -> struct call, owned */
    struct agx_cworker *cfn; /* owned; calls of C functions, which are not in `calls` */
    PyObject *plans;         /* dict: payload or target -> Plan, or None: load it anew each time */
    PyObject *held_plan;     /* loaded for the frame that waits until there is a loop */
    PyObject *drained;       /* list of futures that wait for `out` to get shorter */
    PyObject *context_type;  /* contextvars.Context */
    PyObject *generator_type;
    PyTypeObject *call_type, *plan_type; /* owned */
    PyObject *empty_list, *empty_dict;
    struct note *notes, **notes_last;
    int wake_fd; /* an eventfd: there are notes */
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
extern struct names agx_names;

/* py_worker_plan.c */
PyTypeObject *agx_plan_type_new(PyObject *module);
/*
 * Validates what came over the wire. *ret_args is a new tuple whose first `lead` elements are left
 * empty for the caller; *ret_kwargs is new or NULL. -1 with an exception.
 */
int agx_plan_bind(struct plan *p, PyObject *args, PyObject *kwargs, unsigned lead,
                  PyObject **ret_args, PyObject **ret_kwargs) AGX_MUST_CHECK;

/* py_worker_call.c */
PyTypeObject *agx_call_type_new(PyObject *module);
/* New; in the table of calls. NULL with an exception. */
struct call *agx_call_new(struct worker *w, const struct agx_worker_frame *f);
/* Terminal frames: the first one counts, the others do nothing. `on_thread` says whose output. */
void agx_call_finish(struct call *c, PyObject *value, bool on_thread);
/* The exception that is set; it is cleared. SystemExit and KeyboardInterrupt end the process. */
void agx_call_fail(struct call *c, enum phase phase, bool on_thread);
void agx_call_fail_text(struct call *c, const char *type, const char *message, bool cancelled,
                        bool on_thread);
void agx_call_cancelled(struct call *c, bool on_thread);
/* Takes the call out of the table. */
void agx_call_forget(struct call *c);
/* Empty where the frame has none. New, or NULL with an exception. */
PyObject *agx_call_args(struct worker *w, const struct agx_worker_frame *f);
PyObject *agx_call_kwargs(struct worker *w, const struct agx_worker_frame *f);
/* Keeps a copy of the frame for later. -1 with an exception. */
int agx_call_keep_frame(struct call *c, struct agx_str frame) AGX_MUST_CHECK;

/* py_worker_loop.c: the main thread. */
/* One turn over the loop lane. -1 with an exception: SystemExit. */
int agx_worker_turn(struct worker *w) AGX_MUST_CHECK;
/* Notes from other threads. */
int agx_worker_notes(struct worker *w) AGX_MUST_CHECK;
void agx_worker_flush(struct worker *w);
void agx_worker_flush_soon(struct worker *w);
/* The main thread looks at its notes and lanes. */
void agx_worker_wake(struct worker *w);
/* A note for the main thread. `take_call` and `take_awaitable` are references that it takes. */
void agx_worker_note(struct worker *w, struct call *take_call, PyObject *take_awaitable,
                     struct agx_str frame);
void agx_worker_cancel(struct worker *w, uint64_t id);
/* 1: a loop is needed; 0: the server has closed and nothing runs. -1 with an exception. */
int agx_worker_wait(struct worker *w) AGX_MUST_CHECK;
/* The plan if it is ready: borrowed. *ret_known: it was loaded before, but must be loaded anew. */
struct plan *agx_worker_find_plan(struct worker *w, PyObject *key, bool *ret_known);
PyObject *agx_worker_plan_key(const struct agx_worker_frame *f);
/* Loads. New, or NULL with an exception. */
struct plan *agx_worker_load_plan(struct worker *w, PyObject *key, bool by_target);
/* False, and the call is over, when kind, shape and callable do not go together. */
bool agx_worker_check_shape(struct call *c, const struct agx_worker_frame *f, bool on_thread);

/* py_worker_task.c: coroutines on the loop. */
int agx_worker_start_task(struct call *c, PyObject *coroutine) AGX_MUST_CHECK;
/* Starts a call of any mode but PLAN_THREAD. -1 with SystemExit set. */
int agx_worker_start(struct call *c, const struct agx_worker_frame *f) AGX_MUST_CHECK;

/* py_worker_pool.c */
int agx_pool_start(struct worker *w) AGX_MUST_CHECK;
/* Takes the reference; a thread runs the call, whose frame was kept. */
void agx_pool_submit(struct worker *w, struct call *take_call);
/* Queues a whole frame; agx_pool_flush() writes it. */
void agx_pool_send(struct worker *w, struct agx_str frame);
void agx_pool_flush(struct worker *w);

/* py_worker_cfn.c: C functions. */
/* `path` has the directories of shared objects, ':' between them. */
void agx_worker_cfn_init(struct worker *w, const char *path);
/* True when the frame was about a C function, and has been handled. */
bool agx_worker_cfn_frame(struct worker *w, enum agx_rpc_lane lane,
                          const struct agx_worker_frame *f, struct agx_str frame);
/* Calls in flight, of both kinds. */
size_t agx_worker_active(const struct worker *w);

#endif
