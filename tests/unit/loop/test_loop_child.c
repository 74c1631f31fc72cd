#include "base/buf.h"
#include "base/fd.h"
#include "loop/child.h"
#include "tests/support/loop.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

struct result {
    int n;
    struct agx_child_status status;
};

static void on_exit_(void *user, const struct agx_child_status *status)
{
    struct result *r = user;

    r->n++;
    r->status = *status;
}

/* A shell command with these parameters; `params->argv` is set here. */
static struct agx_child *start_shell(struct agx_loop *l, struct agx_child_params params,
                                     const char *command, struct result *res)
{
    const char *const argv[] = { "sh", "-c", command, NULL };
    struct agx_child *c = NULL;

    *res = (struct result){ 0 };
    params.file = "/bin/sh";
    params.argv = argv;
    ASSERT_OK(agx_child_start(l, &params, on_exit_, res, &c, NULL));
    ASSERT_INT(0, res->n);
    return c;
}

/* Runs the command to its end; what it wrote to its standard output is in `out`. */
static struct agx_child_status run_shell(struct agx_child_params params, const char *command,
                                         struct agx_buf *out)
{
    struct agx_loop *l = test_loop_open();
    struct agx_child_fd fds[4];
    struct result res;
    int pipes[2];

    ASSERT_INT(0, pipe2(pipes, O_CLOEXEC));
    fds[0] = (struct agx_child_fd){ pipes[1], 1 };
    for (size_t i = 0; i < params.n_fds; i++)
        fds[i + 1] = params.fds[i];
    params.fds = fds;
    params.n_fds++;
    (void)start_shell(l, params, command, &res);
    close(pipes[1]);
    ASSERT_OK(agx_fd_read_all(pipes[0], out, NULL));
    close(pipes[0]);
    test_loop_run(l);
    ASSERT_INT(1, res.n);
    test_loop_close(l);
    return res.status;
}

TEST(child_that_exits_reports_its_code_and_is_reaped)
{
    struct agx_loop *l = test_loop_open();
    struct result res;
    struct agx_child *c = start_shell(l, (struct agx_child_params){ 0 }, "exit 7", &res);
    pid_t pid = agx_child_pid(c);

    test_loop_run(l);
    ASSERT_INT(1, res.n);
    ASSERT_INT(7, res.status.code);
    ASSERT_INT(0, res.status.signo);
    ASSERT_INT(-1, waitpid(pid, NULL, WNOHANG));
    ASSERT_INT(ECHILD, errno);
    test_loop_close(l);
}

TEST(child_that_is_killed_reports_the_signal)
{
    struct agx_loop *l = test_loop_open();
    struct result res;
    struct agx_child *c = start_shell(l, (struct agx_child_params){ 0 }, "exec sleep 1000", &res);

    agx_child_kill(c, SIGTERM);
    agx_child_kill(c, SIGTERM); /* may already be dead: no harm */
    test_loop_run(l);
    ASSERT_INT(1, res.n);
    ASSERT_INT(-1, res.status.code);
    ASSERT_INT(SIGTERM, res.status.signo);
    test_loop_close(l);
}

TEST(child_start_of_what_cannot_be_executed_names_it)
{
    _cleanup_(agx_error_freep) struct agx_error *missing = NULL, *denied = NULL, *cwd = NULL;
    struct agx_loop *l = test_loop_open();
    struct agx_child *c = NULL;
    struct result res = { 0 };

    ASSERT_CODE(AGX_NOT_FOUND,
                agx_child_start(l, &(struct agx_child_params){ .file = "/no/such/program" },
                                on_exit_, &res, &c, &missing));
    ASSERT_MESSAGE(missing, "start '/no/such/program': No such file or directory");
    ASSERT_CODE(AGX_PERMISSION_DENIED,
                agx_child_start(l, &(struct agx_child_params){ .file = "/etc/passwd" }, on_exit_,
                                &res, &c, &denied));
    ASSERT_MESSAGE(denied, "'/etc/passwd': Permission denied");
    ASSERT_CODE(AGX_NOT_FOUND,
                agx_child_start(l, &(struct agx_child_params){ .file = "/bin/sh", .cwd = "/none" },
                                on_exit_, &res, &c, &cwd));
    ASSERT_MESSAGE(cwd, "'/bin/sh' in '/none'");
    ASSERT_NULL(c);
    ASSERT_INT(-1, waitpid(-1, NULL, WNOHANG)); /* no child is left behind */
    test_loop_run(l);
    ASSERT_INT(0, res.n);
    test_loop_close(l);
}

/* The end that is read, with `content` to read. */
static int pipe_with(const char *content)
{
    int fds[2];

    ASSERT_INT(0, pipe2(fds, O_CLOEXEC));
    ASSERT_INT(strlen(content), write(fds[1], content, strlen(content)));
    close(fds[1]);
    return fds[0];
}

TEST(child_has_the_listed_descriptors_and_no_other)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(4096);
    int a = pipe_with("A"), b = pipe_with("B");
    int inherited = open("/dev/zero", O_RDONLY); /* without close-on-exec */
    /* Crosswise: each one's new number is the other's old one. */
    const struct agx_child_fd fds[] = { { a, b }, { b, a } };
    char command[200];

    ASSERT_TRUE(a < 9 && b < 9); /* a shell's redirection takes one digit */
    snprintf(command, sizeof(command),
             "cat <&%d; cat <&%d; read x && echo input; for f in 3 4 5 6 7 8 9; do "
             "[ $f = %d ] || [ $f = %d ] || [ ! -e /proc/$$/fd/$f ] || echo extra $f; done",
             b, a, b, a);
    ASSERT_INT(0,
               run_shell((struct agx_child_params){ .fds = fds, .n_fds = 2 }, command, &out).code);
    ASSERT_STR(AGX_STR("AB"), agx_buf_peek(&out));
    close(a);
    close(b);
    close(inherited);
}

TEST(child_gets_environment_and_directory_and_not_ours)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(4096);
    const char *const env[] = { "AGX_A=1", NULL };

    setenv("AGX_OURS", "1", 1);
    ASSERT_INT(0, run_shell((struct agx_child_params){ .env = env, .cwd = "/proc" },
                            "echo $AGX_A-$AGX_OURS-$(pwd)", &out)
                      .code);
    ASSERT_STR(AGX_STR("1--/proc\n"), agx_buf_peek(&out));
}

TEST(child_has_default_signals_and_an_empty_mask)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(4096);
    sigset_t block, old;

    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&block);
    sigaddset(&block, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &block, &old);
    ASSERT_INT(0, run_shell((struct agx_child_params){ 0 },
                            "while read k v; do case $k in SigBlk:|SigIgn:) echo $v;; esac; done "
                            "< /proc/$$/status",
                            &out)
                      .code);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    ASSERT_STR(AGX_STR("0000000000000000\n0000000000000000\n"), agx_buf_peek(&out));
}

/* The shell's child holds the pipe open: end of file means that the whole group is gone. */
static void expect_group_dies(struct agx_child_params params, const char *command, bool kill_it)
{
    struct agx_loop *l = test_loop_open();
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(64);
    struct agx_child_fd fd;
    struct agx_child *c;
    struct result res;
    int pipes[2];
    char ready;

    ASSERT_INT(0, pipe2(pipes, O_CLOEXEC));
    fd = (struct agx_child_fd){ pipes[1], 1 };
    params.fds = &fd;
    params.n_fds = 1;
    c = start_shell(l, params, command, &res);
    close(pipes[1]);
    ASSERT_INT(1, read(pipes[0], &ready, 1));
    if (kill_it)
        agx_child_kill_group(c, SIGKILL);
    test_loop_run(l);
    ASSERT_OK(agx_fd_read_all(pipes[0], &out, NULL));
    close(pipes[0]);
    ASSERT_INT(1, res.n);
    test_loop_close(l);
}

TEST(child_kill_group_reaches_its_descendants)
{
    expect_group_dies((struct agx_child_params){ .group = AGX_CHILD_NEW_GROUP },
                      "sleep 1000 & echo r; wait", true);
    expect_group_dies((struct agx_child_params){ .group = AGX_CHILD_NEW_SESSION },
                      "sleep 1000 & echo r; wait", true);
}

TEST(child_with_end_group_leaves_no_descendant_behind)
{
    expect_group_dies(
        (struct agx_child_params){ .group = AGX_CHILD_NEW_SESSION, .end_group = true },
        "sleep 1000 & echo r", false);
}

TEST(children_that_end_together_are_each_reported_once)
{
    struct agx_loop *l = test_loop_open();
    struct result res[30];

    for (int i = 0; i < 30; i++) {
        char command[20];

        snprintf(command, sizeof(command), "exit %d", i);
        (void)start_shell(l, (struct agx_child_params){ 0 }, command, &res[i]);
    }
    test_loop_run(l);
    for (int i = 0; i < 30; i++) {
        ASSERT_INT(1, res[i].n);
        ASSERT_INT(i, res[i].status.code);
    }
    test_loop_close(l);
}

TEST(child_spawn_leaves_the_waiting_to_the_caller)
{
    const char *const argv[] = { "sh", "-c", "exit 7", NULL };
    struct agx_child_params params = { .file = "/bin/sh", .argv = argv };
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    pid_t pid = 0;
    int status = 0;

    ASSERT_OK(agx_child_spawn(&params, &pid, NULL));
    ASSERT_INT(pid, waitpid(pid, &status, 0));
    ASSERT_INT(7, WEXITSTATUS(status));
    params.file = "/nowhere/sh";
    ASSERT_CODE(AGX_NOT_FOUND, agx_child_spawn(&params, &pid, &err));
    ASSERT_MESSAGE(err, "start '/nowhere/sh'");
}
