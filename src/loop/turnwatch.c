/*
 * turnwatch.c: a turn begins when poll returns and ends right before the next.
 *
 * The loop's own clock has the time at which poll returned: libuv sets it there, before the
 * callbacks. It counts milliseconds, so a turn may seem up to one longer than it was.
 */
#include "loop/turnwatch.h"

#include "base/banned.h"

enum { NS_PER_MS = 1000000 };

static void on_awake(uv_check_t *h)
{
    container_of(h, struct agx_turnwatch, after_sleep)->woke_ns = uv_now(h->loop) * NS_PER_MS;
}

static void on_sleep(uv_prepare_t *h)
{
    struct agx_turnwatch *w = container_of(h, struct agx_turnwatch, before_sleep);
    uint64_t now = uv_hrtime();

    if (w->woke_ns > 0 && now > w->woke_ns)
        w->longest_ns = AGX_MAX(w->longest_ns, now - w->woke_ns);
}

void agx_turnwatch_open(struct agx_turnwatch *w, struct agx_loop *l)
{
    *w = (struct agx_turnwatch){ .n_open = 2 };
    (void)uv_prepare_init(agx_loop_uv(l), &w->before_sleep);
    (void)uv_check_init(agx_loop_uv(l), &w->after_sleep);
    (void)uv_prepare_start(&w->before_sleep, on_sleep);
    (void)uv_check_start(&w->after_sleep, on_awake);
    uv_unref((uv_handle_t *)&w->before_sleep);
    uv_unref((uv_handle_t *)&w->after_sleep);
}

static void handle_closed(uv_handle_t *h)
{
    struct agx_turnwatch *w = h->data;

    if (--w->n_open > 0)
        return;
    h->data = w->data;
    if (w->closed)
        w->closed(h);
}

void agx_turnwatch_close(struct agx_turnwatch *w, uv_close_cb closed, void *data)
{
    w->closed = closed;
    w->data = data;
    w->before_sleep.data = w->after_sleep.data = w;
    uv_close((uv_handle_t *)&w->before_sleep, handle_closed);
    uv_close((uv_handle_t *)&w->after_sleep, handle_closed);
}
