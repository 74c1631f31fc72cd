/* test_worker.c: a worker process that is a shell script; frames are made with printf. */
#include "base/fd.h"
#include "codec/frame.h"
#include "loop/conn.h"
#include "runtime/worker.h"
#include "tests/support/loop.h"

#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* {type: "ready"}, {a: 1} */
#define READY "printf '\\014\\000\\000\\000\\201\\244type\\245ready' >&3\n"
#define FRAME "printf '\\004\\000\\000\\000\\201\\241a\\001' >&3\n"

enum { STOP_MS = 100 };

struct world {
    struct agx_loop *loop;
    struct agx_conn_group *group;
    struct agx_worker *worker;
    unsigned stop_after; /* so many processes */
    unsigned n_ready, n_gone, n_frames;
    bool refuse; /* frames break the protocol */
    char type[32], message[800], frame[64];
    int returncode;
    int pid; /* of the last process that was ready */
    bool stopped;
};

static void on_stopped(void *user)
{
    struct world *w = user;

    w->stopped = true;
    w->group = agx_conn_group_close(w->group);
}

static int on_frame(void *user, struct agx_str frame, struct agx_error **err)
{
    struct world *w = user;

    w->n_frames++;
    ASSERT_TRUE(frame.len < sizeof(w->frame));
    memcpy(w->frame, frame.ptr, frame.len);
    return w->refuse ? agx_error_set(err, AGX_INVALID_ARGUMENT, "nobody asked for that") : 0;
}

static void on_gone(void *user, struct agx_str type, const char *message, int returncode)
{
    struct world *w = user;

    (void)snprintf(w->type, sizeof(w->type), "%.*s", AGX_STR_ARG(type));
    (void)snprintf(w->message, sizeof(w->message), "%s", message);
    w->returncode = returncode;
    if (++w->n_gone == w->stop_after)
        agx_worker_stop(w->worker, STOP_MS, on_stopped, w);
}

static void on_ready(void *user, struct agx_str name)
{
    struct world *w = user;

    ASSERT_STR(AGX_STR("unknown"), name); /* our frames have none */
    ASSERT_TRUE(agx_worker_is_ready(w->worker));
    w->n_ready++;
    w->pid = agx_worker_pid(w->worker);
    if (w->stop_after == 0)
        agx_worker_stop(w->worker, STOP_MS, on_stopped, w);
}

static void on_drained(void *user)
{
    (void)user;
}

static const struct agx_worker_ops ops = { on_frame, on_gone, on_ready, on_drained };

/* Runs a worker of that program until so many of its processes are gone (0: until it is ready). */
static void run_program(struct world *w, const char *const *argv, unsigned stop_after,
                        uint64_t boot_ms, struct agx_str first)
{
    struct agx_worker_config config = AGX_WORKER_CONFIG_INIT;
    struct agx_conn_config conn = AGX_CONN_CONFIG_INIT;

    w->loop = test_loop_open();
    w->stop_after = stop_after;
    config.argv = argv;
    config.env = (const char *const[]){ "PATH=/usr/bin:/bin", NULL };
    config.stdout_fd = config.stderr_fd = 2;
    config.boot_ms = boot_ms;
    config.restart_max_ms = 60;
    ASSERT_OK(agx_conn_group_open(w->loop, &conn, &w->group, NULL));
    w->worker = agx_worker_open(w->loop, w->group, &config, &ops, w);
    ASSERT_FALSE(agx_worker_is_ready(w->worker));
    ASSERT_INT(-1, agx_worker_pid(w->worker));
    ASSERT_OK(agx_buf_append(agx_worker_out(w->worker, AGX_LANE_LOOP), first));
    ASSERT_UINT(first.len, agx_worker_queued(w->worker));
    test_loop_run(w->loop);
    ASSERT_TRUE(w->stopped);
    test_loop_close(w->loop);
}

static void run(struct world *w, const char *script, unsigned stop_after)
{
    const char *const argv[] = { "/bin/sh", "-c", script, NULL };

    run_program(w, argv, stop_after, 20000, AGX_STR(""));
}

TEST(worker_that_exits_is_told_of_with_its_code_and_started_again)
{
    struct world w = { 0 };

    run(&w, READY "exit 3", 3);
    ASSERT_UINT(3, w.n_ready);
    ASSERT_UINT(3, w.n_gone);
    ASSERT_CSTR("WorkerExited", w.type);
    ASSERT_INT(3, w.returncode);
    ASSERT_NOT_NULL(strstr(w.message, "code 3"));
}

TEST(worker_that_is_killed_is_told_of_with_its_signal)
{
    struct world w = { 0 };

    run(&w, READY "kill -9 $$", 1);
    ASSERT_CSTR("WorkerExited", w.type);
    ASSERT_INT(-9, w.returncode);
    ASSERT_NOT_NULL(strstr(w.message, "signal 9"));
}

TEST(worker_that_exits_before_it_is_ready_is_unavailable)
{
    struct world w = { 0 };

    run(&w, "exit 1", 2);
    ASSERT_UINT(0, w.n_ready);
    ASSERT_CSTR("WorkerUnavailable", w.type);
    ASSERT_NOT_NULL(strstr(w.message, "before it was ready"));
}

TEST(worker_that_is_not_ready_in_time_is_killed)
{
    const char *const argv[] = { "/bin/sh", "-c", "sleep 600", NULL };
    struct world w = { 0 };

    run_program(&w, argv, 1, 50, AGX_STR(""));
    ASSERT_CSTR("WorkerUnavailable", w.type);
    ASSERT_INT(-9, w.returncode);
    ASSERT_NOT_NULL(strstr(w.message, "not ready after 50 ms"));
}

TEST(worker_that_says_why_it_cannot_start_is_quoted)
{
    /* {type: "boot_error", error: {type: "E", message: "why"}} */
    static const char script[] = "printf '\\053\\000\\000\\000\\202\\244type\\252boot_error"
                                 "\\245error\\202\\244type\\241E\\247message\\243why' >&3; exit 1";
    struct world w = { 0 };

    run(&w, script, 1);
    ASSERT_CSTR("WorkerUnavailable", w.type);
    ASSERT_NOT_NULL(strstr(w.message, "E: why"));
}

TEST(worker_that_is_no_program_is_unavailable_without_a_code)
{
    const char *const argv[] = { "/nonexistent/worker", NULL };
    struct world w = { 0 };

    run_program(&w, argv, 2, 1000, AGX_STR(""));
    ASSERT_CSTR("WorkerUnavailable", w.type);
    ASSERT_INT(INT_MIN, w.returncode);
}

TEST(worker_gets_what_was_queued_before_it_began)
{
    const char *const argv[] = { "/bin/sh", "-c", READY "head -c 8 <&3 >&3; exit 0", NULL };
    struct world w = { 0 };

    run_program(&w, argv, 1, 20000, AGX_STR("\x04\0\0\0\x81\xa1x\x02"));
    ASSERT_UINT(1, w.n_frames);
    ASSERT_INT(0, memcmp(w.frame, "\x81\xa1x\x02", 4));
}

TEST(worker_frames_sent_before_its_death_are_heard)
{
    struct world w = { 0 };

    run(&w, READY FRAME FRAME "printf '\\004\\000\\000\\000\\201\\241a\\001' >&4\nkill -9 $$", 1);
    ASSERT_UINT(3, w.n_frames);
}

TEST(worker_that_breaks_the_protocol_is_killed_and_heard_no_more)
{
    struct world w = { .refuse = true };

    run(&w, READY FRAME FRAME "sleep 600", 1);
    ASSERT_UINT(1, w.n_frames);
    ASSERT_INT(-9, w.returncode);
    ASSERT_NOT_NULL(strstr(w.message, "nobody asked for that"));
}

TEST(worker_that_closes_its_sockets_and_lives_on_is_killed)
{
    struct world w = { 0 };

    run(&w, READY "exec 3>&- 4>&-; sleep 600", 1);
    ASSERT_INT(-9, w.returncode);
    ASSERT_NOT_NULL(strstr(w.message, "closed its socket"));
}

TEST(worker_stop_kills_what_does_not_end_and_its_whole_group)
{
    struct world w = { 0 };

    ASSERT_INT(0, prctl(PR_SET_CHILD_SUBREAPER, 1)); /* what it leaves behind comes to us */
    run(&w, "trap '' TERM; sleep 600 & " READY "wait; sleep 600", 0);
    ASSERT_UINT(0, w.n_gone);
    ASSERT_TRUE(w.pid > 0);
    while (waitpid(-w.pid, NULL, 0) > 0) /* waits for ever for one that is alive */
        ;
    ASSERT_INT(ECHILD, errno);
}
