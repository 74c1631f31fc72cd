/*
 * fncall_internal.h: shared by the files of a call.
 *
 *   fncall.c       its life: frames in, the run, the terminal frame
 *   fncall_flow.c  blocking operations: items under credit, input, cancellation, time
 *   fncall_args.c  arguments matched with parameters, and reading inside values
 *   fncall_out.c   writing values
 */
#ifndef AGX_WORKER_FNCALL_INTERNAL_H
#define AGX_WORKER_FNCALL_INTERNAL_H

#include "worker/fncall.h"

#include "base/buf.h"
#include "base/list.h"
#include "codec/credit.h"
#include "codec/frame.h"

#include <pthread.h>
#include <stdatomic.h>

struct agx_fncall {
    struct agx_fn_call pub; /* the function's view; first, so that the pointers are equal */
    const struct agx_fncall_owner *owner;
    struct agx_list_node node; /* in a row: fnpool.c */
    atomic_uint refs;

    /* From the call frame; never changed afterwards. */
    uint64_t id;
    enum agx_remote_kind kind;
    unsigned flags;       /* AGX_RECV_ bits */
    size_t max;           /* the largest message that the client accepts */
    uint64_t deadline;    /* on agx_clock_ms(); 0: none */
    char *call_id;        /* owned */
    struct agx_buf bytes; /* owned copies: the three below are views of it */
    struct agx_str target;
    struct agx_str args, kwargs;

    /* Used only by the thread that runs it. */
    const struct agx_fn *fn;
    struct agx_str bound[AGX_FN_PARAMS_MAX]; /* raw values; ptr NULL: not given */
    struct agx_buf out;                      /* the frame of the value being written */
    struct agx_mp_writer w;
    size_t value_at;                  /* start of the value in `out`; 0: no frame begun */
    struct agx_buf item;              /* the function's current input item */
    char *error_type, *error_message; /* owned; the function's error */

    pthread_mutex_t lock; /* guards the fields below */
    pthread_cond_t changed;
    bool cancelled, input_ended, overflow;
    int cancel_fd; /* -1: nobody asked for it */
    struct agx_credit out_granted, out_sent;
    struct agx_credit in_granted, in_taken;
    struct agx_buf input; /* raw values, one behind the other */
    size_t input_at;      /* the first that was not taken */
};

static inline struct agx_fncall *agx_fncall_of(struct agx_fn_call *pub)
{
    return (struct agx_fncall *)(void *)pub;
}

extern const struct agx_fn_ops agx_fncall_ops;

/* Sets the error, unless one is set. Takes printf's arguments. */
void agx_fncall_set_error(struct agx_fncall *c, const char *type, const char *fmt, ...)
    AGX_PRINTF(3, 4);
int agx_fncall_op_fail(struct agx_fn_call *pub, const char *type, const char *fmt, va_list ap)
    AGX_PRINTF(3, 0);

/* fncall_args.c */
int agx_fncall_bind(struct agx_fncall *c);
int agx_fncall_read_value(struct agx_str raw, struct agx_fn_value *ret);
int agx_fncall_op_arg(struct agx_fn_call *pub, unsigned i, struct agx_fn_value *ret);
int agx_fncall_op_arg_as(struct agx_fn_call *pub, unsigned i, enum agx_fn_type want,
                         struct agx_fn_value *ret);
void agx_fncall_op_args(struct agx_fn_call *pub, struct agx_fn_value *ret_args,
                        struct agx_fn_value *ret_kwargs);
int agx_fncall_op_open(struct agx_fn_call *pub, const struct agx_fn_value *v,
                       struct agx_fn_reader *ret);
int agx_fncall_op_read(struct agx_fn_call *pub, struct agx_fn_reader *r, struct agx_fn_value *ret);
int agx_fncall_op_ndarray(struct agx_fn_call *pub, const struct agx_fn_value *v,
                          struct agx_fn_ndarray *ret);

/* fncall_out.c */
void agx_fncall_op_put(struct agx_fn_call *pub, const struct agx_fn_value *v);
void agx_fncall_op_put_raw(struct agx_fn_call *pub, const void *bytes, size_t len);
void agx_fncall_op_put_ndarray(struct agx_fn_call *pub, const struct agx_fn_ndarray *a);
/* Ends the frame that was being written; *ret_frame is borrowed until agx_fncall_drop_value().
 * *ret_size is the length of its value. Negative: the call has its error. */
int agx_fncall_end_value(struct agx_fncall *c, struct agx_str *ret_frame, size_t *ret_size);
void agx_fncall_drop_value(struct agx_fncall *c);

/* fncall_flow.c */
int agx_fncall_op_emit(struct agx_fn_call *pub);
int agx_fncall_op_next(struct agx_fn_call *pub, struct agx_fn_value *ret);
int agx_fncall_op_cancelled(struct agx_fn_call *pub);
int agx_fncall_op_cancel_fd(struct agx_fn_call *pub);
int agx_fncall_op_wait(struct agx_fn_call *pub, int64_t ms);
int64_t agx_fncall_op_time_left(struct agx_fn_call *pub);

#endif
