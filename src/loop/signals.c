#include "loop/signals.h"

#include "loop/loop.h"
#include "loop/uverr.h"

#include <assert.h>
#include <poll.h>
#include <signal.h>

#include "base/banned.h"

static const int watched[] = { SIGTERM, SIGINT };

struct agx_signals {
    uv_signal_t handles[AGX_ARRAY_LEN(watched)];
    unsigned n_open; /* handles open or closing; the last one frees us */
    unsigned count;  /* signals received */
    agx_shutdown_fn on_shutdown;
    void *user;
};

static void on_signal(uv_signal_t *h, int signo)
{
    struct agx_signals *s = h->data;

    s->on_shutdown(s->user, signo, ++s->count);
}

static void on_closed(uv_handle_t *h)
{
    struct agx_signals *s = h->data;

    if (--s->n_open == 0)
        free(s);
}

struct agx_signals *agx_signals_close(struct agx_signals *s)
{
    if (!s)
        return NULL;
    if (s->n_open == 0)
        free(s);
    else
        for (unsigned i = 0, n = s->n_open; i < n; i++)
            uv_close((uv_handle_t *)&s->handles[i], on_closed);
    return NULL;
}

/*
 * ThreadSanitizer defers a signal that arrives at a bad moment, in state that it creates at a
 * thread's first blocking call, and loses a signal that arrives during that creation. For us that
 * would be the loop's first wait, when others can already signal us: so make such a call earlier.
 */
static void block_once(void)
{
#ifdef __has_feature
#if __has_feature(thread_sanitizer)
    (void)poll(NULL, 0, 0);
#endif
#endif
}

int agx_signals_open(struct agx_loop *l, agx_shutdown_fn on_shutdown, void *user,
                     struct agx_signals **ret_signals, struct agx_error **err)
{
    struct agx_signals *s = calloc(1, sizeof(*s));
    int r = 0;

    agx_loop_assert(l);
    if (!s)
        return agx_error_errno(err, ENOMEM, "watch signals");
    s->on_shutdown = on_shutdown;
    s->user = user;
    block_once();
    for (size_t i = 0; i < AGX_ARRAY_LEN(watched) && r == 0; i++) {
        r = uv_signal_init(agx_loop_uv(l), &s->handles[i]);
        if (r < 0)
            break;
        s->handles[i].data = s;
        s->n_open++;
        r = uv_signal_start(&s->handles[i], on_signal, watched[i]);
        uv_unref((uv_handle_t *)&s->handles[i]);
    }
    if (r < 0) {
        agx_signals_close(s);
        return agx_uverr_set(err, r, "watch signals");
    }
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGCHLD, SIG_DFL);
    *ret_signals = s;
    return 0;
}
