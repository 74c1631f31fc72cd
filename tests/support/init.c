/* init.c: starts init, exchanges messages with it, and waits for it. */
#include "tests/support/init.h"
#include "tests/support/paths.h"

#include "base/caplog.h"
#include "base/fd.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { WAIT_MS = 120000, ARGS_MAX = 32 }; /* WAIT_MS only detects a hang */

static int null_or(int fd)
{
    return fd > 0 ? fd : open("/dev/null", O_RDWR | O_CLOEXEC);
}

static _Noreturn void become_init(const struct test_init_params *params)
{
    const char *program = params->program ? params->program : test_path_init;
    char name[] = "agentix-init", *argv[ARGS_MAX] = { name };
    int in = null_or(params->in_fd), out = null_or(params->out_fd);

    for (size_t i = 0; params->args && params->args[i] && i + 2 < ARGS_MAX; i++)
        argv[i + 1] = strdup(params->args[i]);
    /* Not our own output, which is TAP. */
    if (dup2(in, 0) < 0 || dup2(out, 1) < 0)
        _exit(99);
    (void)syscall(SYS_close_range, 3, ~0u, 0);
    if (params->enter)
        params->enter(params->user);
    /* A test that fails does not end its init. */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)execve(program, argv, environ);
    _exit(98);
}

void test_init_start(struct test_init *t, const struct test_init_params *params)
{
    static const struct test_init_params none = { 0 };

    memset(t, 0, sizeof(*t));
    for (size_t i = 0; i < AGX_INIT_FDS_MAX; i++)
        t->log_fds[i] = -1;
    if (!params)
        params = &none;
    t->loop = test_loop_open();
    t->pid = (pid_t)syscall(SYS_clone, params->clone_flags | SIGCHLD, NULL, NULL, NULL, 0UL);
    ASSERT_TRUE(t->pid >= 0);
    if (t->pid == 0)
        become_init(params);
    t->pidfd = (int)syscall(SYS_pidfd_open, t->pid, 0);
    ASSERT_TRUE(t->pidfd >= 0);
}

static void on_ready(void *user)
{
    struct test_init *t = user;

    t->n_ready++;
    agx_loop_stop(t->loop);
}

static void on_message(void *user, const struct agx_init_msg *m)
{
    struct test_init *t = user;
    struct test_init_news *n = &t->news[t->n_news];

    ASSERT_TRUE(t->n_news < TEST_INIT_NEWS);
    memset(n, 0, sizeof(*n));
    n->kind = m->kind;
    memcpy(n->id, m->id.ptr, AGX_MIN(m->id.len, sizeof(n->id) - 1));
    memcpy(n->text, m->data.ptr ? m->data.ptr : "", AGX_MIN(m->data.len, sizeof(n->text) - 1));
    n->exit_code = m->exit_code;
    n->signo = m->signo;
    n->code = m->code;
    n->usage = m->usage;
    t->n_news++;
    agx_loop_stop(t->loop);
}

static void on_lost(void *user, struct agx_error *error)
{
    struct test_init *t = user;

    t->lost = true;
    t->lost_code = error->code;
    (void)agx_error_free(error);
    agx_loop_stop(t->loop);
}

void test_init_connect(struct test_init *t)
{
    static const struct agx_initlink_ops ops = { on_ready, on_message, on_lost };
    struct agx_initlink_config config = AGX_INITLINK_CONFIG_INIT;
    unsigned before = t->n_ready;

    config.pidfd = t->pidfd;
    config.connect_ms = t->connect_ms ? t->connect_ms : WAIT_MS;
    ASSERT_OK(agx_initlink_open(t->loop, &config, &ops, t, &t->link, NULL));
    while (t->n_ready == before && !t->lost)
        agx_loop_run(t->loop);
}

void test_init_open(struct test_init *t, const char *const *args)
{
    const struct test_init_params params = { .args = args };

    if (geteuid() != 0)
        SKIP("needs root: init gives its channel only to root");
    test_init_start(t, &params);
    test_init_connect(t);
    ASSERT_FALSE(t->lost);
}

static void on_closed(void *user, struct agx_error *error)
{
    struct test_init *t = user;

    ASSERT_NULL(error);
    agx_loop_stop(t->loop);
}

void test_init_disconnect(struct test_init *t)
{
    if (!t->link)
        return;
    agx_initlink_close(t->link, on_closed, t);
    t->link = NULL;
    test_loop_run_until_stop(t->loop);
}

static void close_logs(struct test_init *t)
{
    for (size_t i = 0; i < AGX_INIT_FDS_MAX; i++) {
        agx_closep(&t->log_fds[i]);
        t->log_fds[i] = -1;
    }
}

int test_init_status(struct test_init *t)
{
    int status = -1;

    if (t->pid > 0)
        ASSERT_INT(t->pid, waitpid(t->pid, &status, 0));
    t->pid = 0;
    return status;
}

void test_init_close(struct test_init *t)
{
    test_init_disconnect(t);
    if (t->pid > 0)
        (void)kill(t->pid, SIGTERM);
    (void)test_init_status(t);
    agx_closep(&t->pidfd);
    close_logs(t);
    test_loop_close(t->loop);
}

void test_init_send(struct test_init *t, const struct agx_init_msg *m)
{
    ASSERT_OK(agx_initlink_send(t->link, m, NULL, 0, NULL));
}

void test_init_ask(struct test_init *t, enum agx_init_kind kind, const char *id)
{
    test_init_send(t, &(struct agx_init_msg){ .kind = kind, .id = agx_str_from(id) });
}

void test_init_begin(struct test_init *t, const char *id, const struct test_cmd *cmd,
                     const char *const *argv)
{
    static const struct test_cmd plain = { 0 };
    uint8_t limit[AGX_INIT_RLIMIT_SIZE];
    struct test_words words, env;
    struct agx_init_msg m = { .kind = AGX_INIT_START, .id = agx_str_from(id) };

    if (!cmd)
        cmd = &plain;
    m.flags = cmd->flags | (cmd->env ? 0 : AGX_INIT_INHERIT);
    m.user = agx_str_from(cmd->user ? cmd->user : "");
    m.cwd = agx_str_from(cmd->cwd ? cmd->cwd : "");
    m.rows = cmd->rows;
    m.cols = cmd->cols;
    m.umask = cmd->umask;
    m.out_head = m.err_head = cmd->head_max ? cmd->head_max : 1 << 20;
    m.out_tail = m.err_tail = cmd->tail_max ? cmd->tail_max : 1 << 20;
    m.argv = test_words(&words, argv);
    m.env = test_words(&env, cmd->env);
    if (cmd->rlimit) {
        agx_init_rlimit_put(limit, cmd->rlimit);
        m.rlimits = (struct agx_init_list){ 1, agx_str_bytes(limit, sizeof(limit)) };
    }
    close_logs(t);
    for (size_t i = 0; i < AGX_INIT_FDS_MAX; i++) {
        t->log_fds[i] = memfd_create("log", MFD_CLOEXEC);
        ASSERT_TRUE(t->log_fds[i] >= 0);
    }
    ASSERT_OK(agx_initlink_send(t->link, &m, t->log_fds, AGX_INIT_FDS_MAX, NULL));
}

static size_t find_news(const struct test_init *t, enum agx_init_kind kind, const char *id)
{
    size_t i = 0;

    while (i < t->n_news && (t->news[i].kind != kind || strcmp(t->news[i].id, id) != 0))
        i++;
    return i;
}

bool test_init_has(const struct test_init *t, enum agx_init_kind kind, const char *id)
{
    return find_news(t, kind, id) < t->n_news;
}

static void on_timeout(uv_timer_t *timer)
{
    struct test_init *t = timer->data;

    t->timed_out = true;
    agx_loop_stop(t->loop);
}

struct test_init_news test_init_wait(struct test_init *t, enum agx_init_kind kind, const char *id)
{
    struct test_init_news found;
    uv_timer_t timer;
    size_t at;

    timer.data = t;
    t->timed_out = false;
    (void)uv_timer_init(agx_loop_uv(t->loop), &timer);
    (void)uv_timer_start(&timer, on_timeout, WAIT_MS, 0);
    while ((at = find_news(t, kind, id)) == t->n_news && !t->timed_out && !t->lost)
        agx_loop_run(t->loop);
    uv_close((uv_handle_t *)&timer, NULL);
    (void)uv_run(agx_loop_uv(t->loop), UV_RUN_NOWAIT);
    if (at == t->n_news && t->n_news > 0)
        FAIL("no message %d about '%s'; the first is %d about '%s': %s", kind, id, t->news[0].kind,
             t->news[0].id, t->news[0].text);
    if (at == t->n_news)
        FAIL("no message %d about '%s', and no other; lost: %d", kind, id, t->lost);
    found = t->news[at];
    t->n_news--;
    memmove(&t->news[at], &t->news[at + 1], (t->n_news - at) * sizeof(t->news[0]));
    return found;
}

void test_init_pass(struct test_init *t, unsigned ms)
{
    uv_timer_t timer;

    timer.data = t;
    t->timed_out = false;
    (void)uv_timer_init(agx_loop_uv(t->loop), &timer);
    (void)uv_timer_start(&timer, on_timeout, ms, 0);
    while (!t->timed_out)
        agx_loop_run(t->loop);
    uv_close((uv_handle_t *)&timer, NULL);
    (void)uv_run(agx_loop_uv(t->loop), UV_RUN_NOWAIT);
}

static void read_log(int data_fd, int index_fd, char *out, size_t size)
{
    struct agx_caplog_piece piece;
    uint64_t offset = 0;
    size_t len = 0;

    memset(out, 0, size);
    do {
        ASSERT_OK(agx_caplog_read(data_fd, index_fd, offset, (uint8_t *)out + len, size - 1 - len,
                                  &piece, NULL));
        len += piece.len;
        offset += piece.skipped + piece.len;
    } while (piece.len > 0 && len < size - 1);
}

void test_init_read_logs(struct test_init *t)
{
    read_log(t->log_fds[0], t->log_fds[1], t->out, sizeof(t->out));
    read_log(t->log_fds[2], t->log_fds[3], t->err, sizeof(t->err));
}

void test_init_exec(struct test_init *t, const char *id, const struct test_cmd *cmd,
                    const char *const *argv)
{
    test_init_begin(t, id, cmd, argv);
    (void)test_init_wait(t, AGX_INIT_STARTED, id);
    t->exit_code = test_init_wait(t, AGX_INIT_EXITED, id).exit_code;
    test_init_read_logs(t);
    test_init_ask(t, AGX_INIT_FORGET, id);
}
