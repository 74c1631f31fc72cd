/* fncall_flow.c: blocking operations of a running function: credit, input, time. */
#include "worker/fncall_internal.h"

#include "base/clock.h"

#include <sys/eventfd.h>
#include <time.h>

#include "base/banned.h"

/* Waits until an item of `size` bytes may go, and counts it. */
static int take_credit(struct agx_fncall *c, size_t size)
{
    int r = 0;

    (void)pthread_mutex_lock(&c->lock);
    while (!c->cancelled && !agx_credit_left(&c->out_granted, &c->out_sent))
        (void)pthread_cond_wait(&c->changed, &c->lock);
    if (c->cancelled)
        r = AGX_FN_CANCELLED;
    else
        agx_credit_count(&c->out_sent, size);
    (void)pthread_mutex_unlock(&c->lock);
    return r;
}

int agx_fncall_op_emit(struct agx_fn_call *pub)
{
    struct agx_fncall *c = agx_fncall_of(pub);
    struct agx_str frame;
    size_t size;
    int r;

    if (c->kind == AGX_REMOTE_UNARY)
        agx_fncall_set_error(c, "RuntimeError", "%s() is unary and has no items to emit",
                             c->fn->def->name);
    r = agx_fncall_end_value(c, &frame, &size);
    if (r == 0)
        r = take_credit(c, size);
    if (r == 0)
        c->owner->send(c->owner->user, c->kind, frame, true);
    agx_fncall_drop_value(c);
    return r;
}

static void send_credit(struct agx_fncall *c, struct agx_credit granted)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(AGX_FRAME_EXTRA);
    struct agx_mp_writer w;

    agx_frame_begin(&w, &out);
    agx_mp_write_map(&w, 4);
    agx_mp_write_str(&w, AGX_STR("type"));
    agx_mp_write_str(&w, AGX_STR("credit"));
    agx_mp_write_str(&w, AGX_STR("id"));
    agx_mp_write_uint(&w, c->id);
    agx_mp_write_str(&w, AGX_STR("n"));
    agx_mp_write_uint(&w, granted.n);
    agx_mp_write_str(&w, AGX_STR("bytes"));
    agx_mp_write_uint(&w, granted.bytes);
    if (agx_frame_end(&w, AGX_FRAME_EXTRA, NULL) < 0)
        abort();
    c->owner->send(c->owner->user, c->kind, agx_buf_peek(&out), true);
}

/* Moves the first waiting item to `item`. Under the lock. True when more input should be granted.
 */
static bool take_input(struct agx_fncall *c, struct agx_fn_value *ret)
{
    struct agx_str rest = agx_str_skip(agx_buf_peek(&c->input), c->input_at);

    agx_buf_clear(&c->item);
    if (agx_fncall_read_value(rest, ret) < 0 ||
        agx_buf_append(&c->item, agx_str_bytes(ret->raw.ptr, ret->raw.len)) < 0)
        abort(); /* only memory can fail: the input was checked on arrival */
    (void)agx_fncall_read_value(agx_buf_peek(&c->item), ret);
    c->input_at += c->item.len;
    if (c->input_at * 2 > c->input.len) {
        /* Amortised: each consumed byte causes at most one byte to move. */
        agx_buf_consume(&c->input, c->input_at);
        c->input_at = 0;
        if (c->input.len == 0 && c->input.cap > AGX_FRAME_HELD_KEEP)
            agx_buf_done(&c->input);
    }
    agx_credit_count(&c->in_taken, c->item.len);
    if (!agx_credit_due(&c->in_granted, &c->in_taken, AGX_CREDIT_ITEMS))
        return false;
    agx_credit_grant(&c->in_granted, &c->in_taken, AGX_CREDIT_ITEMS);
    return !c->input_ended;
}

int agx_fncall_op_next(struct agx_fn_call *pub, struct agx_fn_value *ret)
{
    struct agx_fncall *c = agx_fncall_of(pub);
    struct agx_credit granted;
    bool grant = false;
    int r = 1;

    if (c->kind != AGX_REMOTE_BIDI) {
        agx_fncall_set_error(c, "RuntimeError", "%s() has no input", c->fn->def->name);
        return AGX_FN_FAILED;
    }
    (void)pthread_mutex_lock(&c->lock);
    while (!c->cancelled && !c->input_ended && c->input_at == c->input.len)
        (void)pthread_cond_wait(&c->changed, &c->lock);
    if (c->cancelled)
        r = AGX_FN_CANCELLED;
    else if (c->input_at == c->input.len)
        r = 0;
    else
        grant = take_input(c, ret);
    granted = c->in_granted;
    (void)pthread_mutex_unlock(&c->lock);
    if (grant)
        send_credit(c, granted);
    return r;
}

void agx_fncall_input(struct agx_fncall *c, struct agx_str item)
{
    (void)pthread_mutex_lock(&c->lock);
    /* The server lets no client past its credit, and of one without credit no more than this. */
    if (c->kind == AGX_REMOTE_BIDI && !c->cancelled && !c->input_ended) {
        if (c->input.len - c->input_at > AGX_INPUT_MAX || agx_buf_append(&c->input, item) < 0) {
            c->overflow = true;
            c->cancelled = true;
        }
        (void)pthread_cond_broadcast(&c->changed);
    }
    (void)pthread_mutex_unlock(&c->lock);
}

void agx_fncall_end_input(struct agx_fncall *c)
{
    (void)pthread_mutex_lock(&c->lock);
    c->input_ended = true;
    (void)pthread_cond_broadcast(&c->changed);
    (void)pthread_mutex_unlock(&c->lock);
}

void agx_fncall_credit(struct agx_fncall *c, uint64_t n, uint64_t bytes)
{
    (void)pthread_mutex_lock(&c->lock);
    (void)agx_credit_raise(&c->out_granted, n, bytes);
    (void)pthread_cond_broadcast(&c->changed);
    (void)pthread_mutex_unlock(&c->lock);
}

void agx_fncall_cancel(struct agx_fncall *c)
{
    (void)pthread_mutex_lock(&c->lock);
    c->cancelled = true;
    if (c->cancel_fd >= 0)
        (void)eventfd_write(c->cancel_fd, 1);
    (void)pthread_cond_broadcast(&c->changed);
    (void)pthread_mutex_unlock(&c->lock);
}

int agx_fncall_op_cancelled(struct agx_fn_call *pub)
{
    struct agx_fncall *c = agx_fncall_of(pub);
    bool yes;

    (void)pthread_mutex_lock(&c->lock);
    yes = c->cancelled;
    (void)pthread_mutex_unlock(&c->lock);
    return yes;
}

int agx_fncall_op_cancel_fd(struct agx_fn_call *pub)
{
    struct agx_fncall *c = agx_fncall_of(pub);
    int fd;

    (void)pthread_mutex_lock(&c->lock);
    if (c->cancel_fd < 0)
        c->cancel_fd = eventfd(c->cancelled, EFD_CLOEXEC | EFD_NONBLOCK);
    fd = c->cancel_fd;
    (void)pthread_mutex_unlock(&c->lock);
    return fd;
}

int agx_fncall_op_wait(struct agx_fn_call *pub, int64_t ms)
{
    struct agx_fncall *c = agx_fncall_of(pub);
    uint64_t until = agx_clock_ns() + (uint64_t)AGX_MAX(AGX_MIN(ms, INT32_MAX), 0) * 1000000;
    struct timespec ts = { .tv_sec = (time_t)(until / 1000000000),
                           .tv_nsec = (long)(until % 1000000000) };
    int r = 0;

    (void)pthread_mutex_lock(&c->lock);
    while (!c->cancelled && r == 0)
        r = pthread_cond_timedwait(&c->changed, &c->lock, &ts);
    r = c->cancelled ? AGX_FN_CANCELLED : 0;
    (void)pthread_mutex_unlock(&c->lock);
    return r;
}

int64_t agx_fncall_op_time_left(struct agx_fn_call *pub)
{
    const struct agx_fncall *c = agx_fncall_of(pub);
    uint64_t now = agx_clock_ms();

    if (c->deadline == 0)
        return -1;
    return now < c->deadline ? (int64_t)(c->deadline - now) : 0;
}
