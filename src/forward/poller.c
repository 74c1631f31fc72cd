/*
 * poller.c: level-triggered epoll.
 *
 * A descriptor without wanted events is not in epoll at all: its end would be reported again and
 * again. The next use of it finds that out. A watch that ends in a turn is freed after it, because
 * the same turn may still have events for it.
 */
#include "forward/forward.h"

#include "base/clock.h"

#include <stdio.h>
#include <sys/epoll.h>

#include "base/banned.h"

enum { EVENTS = 128 };

void agx_watch_set(struct forward *f, struct watch *w, uint32_t events)
{
    struct epoll_event e = { .events = events, .data.ptr = w };
    int op = events == 0 ? EPOLL_CTL_DEL : w->events == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;

    if (events == w->events)
        return;
    if (epoll_ctl(f->epoll_fd, op, w->fd, &e) < 0) {
        perror("agentix-forward: epoll");
        _exit(1);
    }
    w->events = events;
}

void agx_watch_end(struct forward *f, struct watch *w)
{
    if (w->fd < 0)
        return;
    agx_watch_set(f, w, 0);
    (void)close(w->fd);
    w->fd = -1;
}

static void poller_turn(struct forward *f)
{
    struct epoll_event events[EVENTS];
    int n = epoll_wait(f->epoll_fd, events, EVENTS, agx_datagram_expire(f));

    f->now_ms = agx_clock_ms();
    for (int i = 0; i < n; i++) {
        struct watch *w = events[i].data.ptr;

        if (w->fd >= 0) /* not ended by an earlier one */
            w->ready(f, w, events[i].events);
    }
    agx_stream_bury(f);
    agx_datagram_bury(f);
}

_Noreturn void agx_forward_run(struct forward *f)
{
    f->now_ms = agx_clock_ms();
    for (;;)
        poller_turn(f);
}
