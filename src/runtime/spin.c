/*
 * spin.c: an idle handle makes libuv poll with a timeout of zero; it is active only while we want
 * to stay awake.
 *
 * `score` counts messages that arrived within the window after the previous one, up to a ceiling,
 * and decreases by one for each that did not: one pause among many quick calls does not end the
 * spinning, and a few quick calls among many slow ones do not start it.
 */
#include "runtime/spin.h"

#include "base/banned.h"
#include "base/clock.h"
#include "base/mem.h"
#include "loop/loop.h"

enum {
    SCORE_MAX = 8,
    SCORE_SPIN = 4, /* from this score on spinning pays */
};

struct agx_spin {
    uv_idle_t idle;
    uint64_t window_us;
    uint64_t last_us; /* when the last message came */
    int score;
    bool active;
};

static void on_idle(uv_idle_t *idle)
{
    struct agx_spin *s = container_of(idle, struct agx_spin, idle);

    if (agx_clock_us() - s->last_us < s->window_us)
        return;
    uv_idle_stop(&s->idle);
    s->active = false;
}

struct agx_spin *agx_spin_open(struct agx_loop *l, unsigned spin_us)
{
    struct agx_spin *s = agx_new(struct agx_spin);

    s->window_us = spin_us;
    (void)uv_idle_init(agx_loop_uv(l), &s->idle);
    return s;
}

void agx_spin_touch(struct agx_spin *s)
{
    uint64_t now;

    if (s->window_us == 0)
        return;
    now = agx_clock_us();
    if (now - s->last_us < s->window_us)
        s->score = AGX_MIN(s->score + 1, SCORE_MAX);
    else
        s->score = AGX_MAX(s->score - 1, 0);
    s->last_us = now;
    if (s->score >= SCORE_SPIN && !s->active) {
        s->active = true;
        (void)uv_idle_start(&s->idle, on_idle);
    }
}

static void on_closed(uv_handle_t *h)
{
    free(container_of((uv_idle_t *)h, struct agx_spin, idle));
}

struct agx_spin *agx_spin_close(struct agx_spin *s)
{
    if (s)
        uv_close((uv_handle_t *)&s->idle, on_closed);
    return NULL;
}
