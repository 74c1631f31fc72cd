#include "loop/signals.h"
#include "tests/support/loop.h"

#include <fcntl.h>
#include <signal.h>

struct seen {
    struct agx_loop *loop;
    int signos[4];
    unsigned counts[4], n, until;
};

static void on_shutdown(void *user, int signo, unsigned count)
{
    struct seen *s = user;

    s->signos[s->n] = signo;
    s->counts[s->n++] = count;
    if (s->n == s->until)
        agx_loop_stop(s->loop);
    else
        raise(SIGINT);
}

TEST(signals_tell_the_first_from_those_that_follow)
{
    struct seen s = { .loop = test_loop_open(), .until = 2 };
    struct agx_signals *signals = NULL;

    ASSERT_OK(agx_signals_open(s.loop, on_shutdown, &s, &signals, NULL));
    raise(SIGTERM);
    test_loop_run_until_stop(s.loop);
    ASSERT_INT(SIGTERM, s.signos[0]);
    ASSERT_UINT(1, s.counts[0]);
    ASSERT_INT(SIGINT, s.signos[1]);
    ASSERT_UINT(2, s.counts[1]);
    signals = agx_signals_close(signals);
    test_loop_close(s.loop);
}

TEST(signals_do_not_keep_the_loop_running_and_sigpipe_is_an_error)
{
    struct seen s = { .loop = test_loop_open() };
    struct agx_signals *signals = NULL;
    int fds[2];

    ASSERT_OK(agx_signals_open(s.loop, on_shutdown, &s, &signals, NULL));
    test_loop_run(s.loop);
    ASSERT_INT(0, pipe2(fds, O_CLOEXEC));
    close(fds[0]);
    ASSERT_INT(-1, write(fds[1], "x", 1));
    ASSERT_INT(EPIPE, errno);
    close(fds[1]);
    agx_signals_close(signals);
    test_loop_close(s.loop);
    ASSERT_NULL(agx_signals_close(NULL));
}
