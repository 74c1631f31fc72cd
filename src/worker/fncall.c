/*
 * fncall.c: the life of a call.
 *
 *     new --> (in a queue of the pool) --> run --> terminal frame
 *
 * Invariants:
 *  (1) every agx_fncall made by agx_fncall_new() sends exactly one terminal frame: from
 *      agx_fncall_run(), agx_fncall_fail() or agx_fncall_resolve();
 *  (2) the owner is notified of the end after that frame was sent: when no call is left, all
 *      answers are on their way;
 *  (3) no two of the locks (owner's, call's, output's) are held at once.
 */
#include "worker/fncall_internal.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <time.h>

#include "base/banned.h"

static const char *op_call_id(struct agx_fn_call *pub)
{
    return agx_fncall_of(pub)->call_id;
}

const struct agx_fn_ops agx_fncall_ops = {
    .arg = agx_fncall_op_arg,
    .arg_as = agx_fncall_op_arg_as,
    .args = agx_fncall_op_args,
    .open = agx_fncall_op_open,
    .read = agx_fncall_op_read,
    .ndarray = agx_fncall_op_ndarray,
    .put = agx_fncall_op_put,
    .put_raw = agx_fncall_op_put_raw,
    .put_ndarray = agx_fncall_op_put_ndarray,
    .emit = agx_fncall_op_emit,
    .next = agx_fncall_op_next,
    .fail = agx_fncall_op_fail,
    .cancelled = agx_fncall_op_cancelled,
    .cancel_fd = agx_fncall_op_cancel_fd,
    .wait = agx_fncall_op_wait,
    .time_left = agx_fncall_op_time_left,
    .call_id = op_call_id,
};

static void init_sync(struct agx_fncall *c)
{
    pthread_condattr_t attr;

    if (pthread_mutex_init(&c->lock, NULL) != 0 || pthread_condattr_init(&attr) != 0 ||
        pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) != 0 ||
        pthread_cond_init(&c->changed, &attr) != 0)
        abort();
    (void)pthread_condattr_destroy(&attr);
}

/* Copies the values that the function will read: their frame is gone when it runs. */
static int copy_values(struct agx_fncall *c, const struct agx_worker_frame *f)
{
    struct agx_str args = f->args.len > 0 ? f->args : AGX_STR("\x90");
    struct agx_str kwargs = f->kwargs.len > 0 ? f->kwargs : AGX_STR("\x80");
    struct agx_str target = f->callable;
    const char *at;

    if (agx_buf_reserve(&c->bytes, args.len + kwargs.len + target.len) < 0)
        return -AGX_RESOURCE_EXHAUSTED;
    if (agx_buf_append(&c->bytes, args) < 0 || agx_buf_append(&c->bytes, kwargs) < 0 ||
        agx_buf_append(&c->bytes, target) < 0)
        return -AGX_RESOURCE_EXHAUSTED;
    at = agx_buf_peek(&c->bytes).ptr;
    c->args = (struct agx_str){ at, args.len };
    c->kwargs = (struct agx_str){ at + args.len, kwargs.len };
    c->target = (struct agx_str){ at + args.len + kwargs.len, target.len };
    return 0;
}

/* Why a call frame cannot become a call of ours. */
static int check_call(const struct agx_worker_frame *f, struct agx_error **err)
{
    if (f->bad)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "%s", f->bad);
    if (!f->by_target || !agx_fnlib_is_target(f->callable))
        return agx_error_set(err, AGX_UNIMPLEMENTED,
                             "this worker runs C functions only (c:<library>::<function>); there "
                             "is no Python in its bundle");
    return 0;
}

int agx_fncall_new(const struct agx_fncall_owner *owner, const struct agx_worker_frame *f,
                   struct agx_fncall **ret, struct agx_error **err)
{
    _cleanup_(agx_fncall_unrefp) struct agx_fncall *c = NULL;
    int r = check_call(f, err);

    if (r < 0)
        return r;
    c = agx_new(struct agx_fncall);
    c->pub.ops = &agx_fncall_ops;
    c->owner = owner;
    c->id = f->id;
    c->kind = f->kind;
    c->cancel_fd = -1;
    c->bytes.max = c->out.max = c->item.max = SIZE_MAX / 2;
    c->input.max = AGX_INPUT_MAX + AGX_MESSAGE_MAX;
    c->out_granted = c->in_granted = (struct agx_credit)AGX_CREDIT_INIT;
    c->flags = f->flags;
    c->max = f->max > 0 ? (size_t)AGX_MIN(f->max, (uint64_t)AGX_MESSAGE_MAX) : AGX_MESSAGE_MAX;
    if (f->has_timeout)
        c->deadline = agx_clock_ms() + AGX_MIN(f->timeout_ms, (uint64_t)INT64_MAX / 2);
    init_sync(c);
    atomic_init(&c->refs, 1);
    c->call_id = agx_str_dup(f->call_id);
    if (!c->call_id || copy_values(c, f) < 0)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "no memory for the arguments");
    *ret = AGX_TAKE_PTR(c);
    return 0;
}

struct agx_fncall *agx_fncall_ref(struct agx_fncall *c)
{
    atomic_fetch_add(&c->refs, 1);
    return c;
}

struct agx_fncall *agx_fncall_unref(struct agx_fncall *c)
{
    if (!c || atomic_fetch_sub(&c->refs, 1) > 1)
        return NULL;
    if (c->cancel_fd >= 0)
        (void)close(c->cancel_fd);
    (void)pthread_cond_destroy(&c->changed);
    (void)pthread_mutex_destroy(&c->lock);
    agx_buf_done(&c->bytes);
    agx_buf_done(&c->out);
    agx_buf_done(&c->item);
    agx_buf_done(&c->input);
    free(c->error_type);
    free(c->error_message);
    free(c->call_id);
    free(c);
    return NULL;
}

uint64_t agx_fncall_id(const struct agx_fncall *c)
{
    return c->id;
}

/* Owned copy that any client can read: bytes that are no UTF-8 become '?'. */
static char *clean_text(char *take_text)
{
    if (!agx_utf8_valid(agx_str_from(take_text))) {
        for (char *p = take_text; *p; p++) {
            if ((unsigned char)*p >= 0x80)
                *p = '?';
        }
    }
    return take_text;
}

int agx_fncall_op_fail(struct agx_fn_call *pub, const char *type, const char *fmt, va_list ap)
{
    struct agx_fncall *c = agx_fncall_of(pub);
    char *message;

    if (c->error_type)
        return AGX_FN_FAILED;
    if (vasprintf(&message, fmt, ap) < 0)
        message = NULL;
    c->error_type = agx_str_dup(agx_str_from(type && *type ? type : "RuntimeError"));
    if (!c->error_type || !message)
        abort();
    c->error_type = clean_text(c->error_type);
    c->error_message = clean_text(message);
    return AGX_FN_FAILED;
}

void agx_fncall_set_error(struct agx_fncall *c, const char *type, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)agx_fncall_op_fail(&c->pub, type, fmt, ap);
    va_end(ap);
}

static void write_text(struct agx_mp_writer *w, const char *key, const char *text)
{
    agx_mp_write_str(w, agx_str_from(key));
    agx_mp_write_str(w, agx_str_from(text));
}

/* The terminal frame of a call that failed. */
static void send_error(const struct agx_fncall_owner *owner, uint64_t id, enum agx_remote_kind kind,
                       const char *type, const char *message, bool cancelled, bool wait)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(AGX_MESSAGE_MAX);
    struct agx_mp_writer w;

    agx_frame_begin(&w, &out);
    agx_mp_write_map(&w, 3);
    write_text(&w, "type", "error");
    agx_mp_write_str(&w, AGX_STR("id"));
    agx_mp_write_uint(&w, id);
    agx_mp_write_str(&w, AGX_STR("error"));
    agx_mp_write_map(&w, 4);
    write_text(&w, "type", type);
    write_text(&w, "message", message);
    agx_mp_write_str(&w, AGX_STR("traceback"));
    agx_mp_write_nil(&w);
    agx_mp_write_str(&w, AGX_STR("cancelled"));
    agx_mp_write_bool(&w, cancelled);
    if (agx_frame_end(&w, AGX_MESSAGE_MAX, NULL) < 0)
        abort();
    owner->send(owner->user, kind, agx_buf_peek(&out), wait);
}

/* The error type that the client sees for our error. */
static const char *client_type(const struct agx_error *e)
{
    switch (e->code) {
    case AGX_INVALID_ARGUMENT:
        return "BadRequest";
    case AGX_NOT_FOUND:
        return "FunctionNotFound";
    case AGX_FAILED_PRECONDITION:
        return "ImportError";
    case AGX_UNIMPLEMENTED:
        return "PythonUnavailable";
    case AGX_RESOURCE_EXHAUSTED:
        return "MemoryError";
    default:
        return "RuntimeError";
    }
}

void agx_fncall_refuse(const struct agx_fncall_owner *owner, uint64_t id, enum agx_remote_kind kind,
                       const struct agx_error *e)
{
    char text[AGX_LOG_LINE_MAX];

    (void)clean_text(agx_error_format(e, text, sizeof(text)));
    send_error(owner, id, kind, client_type(e), text, false, false);
}

void agx_fncall_fail(struct agx_fncall *c, const struct agx_error *e)
{
    agx_fncall_refuse(c->owner, c->id, c->kind, e);
    c->owner->over(c->owner->user, c->id);
}

int agx_fncall_resolve(struct agx_fncall *c, struct agx_fnlib *lib, struct agx_fn **ret_fn)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    int r = agx_fnlib_find(lib, c->target, ret_fn, &err);

    if (r < 0)
        agx_fncall_fail(c, err);
    return r;
}

static void send_end(struct agx_fncall *c)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(AGX_FRAME_EXTRA);
    struct agx_mp_writer w;

    agx_frame_begin(&w, &out);
    agx_mp_write_map(&w, 2);
    write_text(&w, "type", "stream_end");
    agx_mp_write_str(&w, AGX_STR("id"));
    agx_mp_write_uint(&w, c->id);
    if (agx_frame_end(&w, AGX_FRAME_EXTRA, NULL) < 0)
        abort();
    c->owner->send(c->owner->user, c->kind, agx_buf_peek(&out), true);
}

/* The terminal frame for what the function returned. */
static void fncall_finish(struct agx_fncall *c, int r)
{
    bool cancelled, overflow;
    struct agx_str frame = { 0 };
    size_t size;

    (void)pthread_mutex_lock(&c->lock);
    cancelled = c->cancelled;
    overflow = c->overflow;
    (void)pthread_mutex_unlock(&c->lock);
    if (r >= 0 && !c->error_type && c->kind == AGX_REMOTE_UNARY)
        r = agx_fncall_end_value(c, &frame, &size);
    if (overflow)
        agx_fncall_set_error(c, "InputOverflow", "more input was sent than the function takes");
    if (r < 0 && !c->error_type && !cancelled)
        agx_fncall_set_error(c, "RuntimeError", "%s() returned %d without saying why",
                             c->fn->def->name, r);
    if (c->error_type)
        send_error(c->owner, c->id, c->kind, c->error_type, c->error_message, false, true);
    else if (r < 0)
        send_error(c->owner, c->id, c->kind, "Cancelled", "the call was cancelled", true, true);
    else if (c->kind == AGX_REMOTE_UNARY)
        c->owner->send(c->owner->user, c->kind, frame, true);
    else
        send_end(c);
    c->owner->over(c->owner->user, c->id);
}

void agx_fncall_run(struct agx_fncall *c, const struct agx_fn *fn)
{
    static const enum agx_fn_kind kinds[] = { [AGX_REMOTE_UNARY] = AGX_FN_UNARY,
                                              [AGX_REMOTE_STREAM] = AGX_FN_STREAM,
                                              [AGX_REMOTE_BIDI] = AGX_FN_BIDI };
    int r = AGX_FN_CANCELLED;

    c->fn = fn;
    if (agx_fncall_op_cancelled(&c->pub)) {
        fncall_finish(c, r); /* cancelled while it waited for a thread */
        return;
    }
    if (fn->def->kind != kinds[c->kind]) {
        agx_fncall_set_error(c, "TypeError", "%s() is a %s function and was called as %s",
                             fn->def->name,
                             agx_remote_kind_name((enum agx_remote_kind)fn->def->kind).ptr,
                             agx_remote_kind_name(c->kind).ptr);
        r = AGX_FN_FAILED;
    } else {
        r = agx_fncall_bind(c);
    }
    if (r == 0)
        r = fn->def->run(&c->pub);
    fncall_finish(c, r);
}
