/* launch.c: starts agentixd in the background. */
#include "cli/launch.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/limits.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>

#include "base/banned.h"

enum {
    SAID_MAX = 4096,
    OPTIONS_MAX = 64,
    EXIT_NO_PROGRAM = 127,
    EXIT_LOCKED = 75, /* agentixd: another one holds the lock */
};

extern char **environ;

/* A start in progress. */
struct start {
    const char *program;
    char beside[PATH_MAX];
    char *argv[OPTIONS_MAX + 2];
    pid_t pid;
    int pidfd;
    int said_fd; /* the pipe of its standard error */
    struct agx_buf said;
};

/* Looks for agentixd in the directory of our own program. */
static void find_program(struct start *s)
{
    ssize_t n = readlink("/proc/self/exe", s->beside, sizeof(s->beside) - 1);
    char *slash;

    s->program = "agentixd";
    if (n <= 0)
        return;
    s->beside[n] = '\0';
    slash = strrchr(s->beside, '/');
    if (!slash || (size_t)(slash + 1 - s->beside) + sizeof("agentixd") > sizeof(s->beside))
        return;
    memcpy(slash + 1, "agentixd", sizeof("agentixd"));
    if (access(s->beside, X_OK) == 0)
        s->program = s->beside;
}

/* 0, or errno. The child inherits only the environment and the pipe for its stderr. */
static int launch_spawn(struct start *s, int said_fd)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t none, usual;
    int r;

    (void)sigemptyset(&none);
    (void)sigemptyset(&usual);
    (void)sigaddset(&usual, SIGPIPE);
    r = posix_spawn_file_actions_init(&files);
    if (r != 0)
        return r;
    r = posix_spawnattr_init(&attr);
    if (r != 0) {
        (void)posix_spawn_file_actions_destroy(&files);
        return r;
    }
    (void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    (void)posix_spawnattr_setsigmask(&attr, &none);
    (void)posix_spawnattr_setsigdefault(&attr, &usual);
    r = posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (r == 0)
        r = posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    if (r == 0)
        r = posix_spawn_file_actions_adddup2(&files, said_fd, STDERR_FILENO);
    if (r == 0)
        r = posix_spawnp(&s->pid, s->program, &files, &attr, s->argv, environ);
    (void)posix_spawnattr_destroy(&attr);
    (void)posix_spawn_file_actions_destroy(&files);
    return r;
}

static int launch_begin(struct start *s, struct agx_error **err)
{
    int ends[2], r;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return agx_error_errno(err, errno, "make a pipe for agentixd");
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    r = launch_spawn(s, ends[1]);
    (void)close(ends[1]);
    s->said_fd = ends[0];
    if (r == ENOENT)
        return agx_error_set(err, AGX_NOT_FOUND,
                             "there is no agentixd, neither beside agentix nor on PATH");
    if (r != 0)
        return agx_error_errno(err, r, "start '%s'", s->program);
    s->pidfd = pidfd_open(s->pid, 0);
    if (s->pidfd < 0)
        return agx_error_errno(err, errno, "watch '%s'", s->program);
    return 0;
}

/* Reads its stderr, as far as there is room; the rest is dropped. */
static void launch_hear(struct start *s)
{
    char buf[1024];
    ssize_t n;

    while ((n = read(s->said_fd, buf, sizeof(buf))) > 0) {
        size_t room = s->said.max - s->said.len;

        if (agx_buf_append(&s->said, agx_str_bytes(buf, AGX_MIN((size_t)n, room))) < 0)
            agx_buf_clear(&s->said);
    }
}

/* Waits for the child, not for the end of the pipe, which the daemon may keep open. */
static int wait_for(struct start *s, int *ret_status, struct agx_error **err)
{
    uint64_t due = agx_clock_ms() + AGX_CLI_START_MS;

    for (;;) {
        struct pollfd fds[] = { { .fd = s->pidfd, .events = POLLIN },
                                { .fd = s->said_fd, .events = POLLIN } };
        uint64_t now = agx_clock_ms();

        if (now >= due) {
            (void)kill(s->pid, SIGTERM);
            return agx_error_set(err, AGX_DEADLINE_EXCEEDED, "agentixd did not get ready in time");
        }
        if (poll(fds, AGX_ARRAY_LEN(fds), (int)(due - now)) < 0 && errno != EINTR)
            return agx_error_errno(err, errno, "wait for agentixd");
        launch_hear(s);
        if (fds[1].revents & POLLHUP) {
            (void)close(s->said_fd);
            s->said_fd = -1;
        }
        if (fds[0].revents)
            break;
    }
    if (waitpid(s->pid, ret_status, 0) < 0)
        return agx_error_errno(err, errno, "wait for agentixd");
    return 0;
}

static int launch_judge(struct start *s, int status, struct agx_error **err)
{
    struct agx_str said = agx_str_trim(agx_buf_peek(&s->said));

    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return AGX_LAUNCH_STARTED;
    if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_LOCKED)
        return AGX_LAUNCH_OTHER;
    if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_NO_PROGRAM && said.len == 0)
        return agx_error_set(err, AGX_NOT_FOUND,
                             "there is no agentixd, neither beside agentix nor on PATH");
    while (said.len > 0 && said.ptr[said.len - 1] == '\n')
        said.len--;
    if (said.len > 0)
        return agx_error_set(err, AGX_FAILED_PRECONDITION, "the daemon did not start: %.*s",
                             AGX_STR_ARG(said));
    return agx_error_set(err, AGX_FAILED_PRECONDITION, "the daemon did not start: %s %d",
                         WIFSIGNALED(status) ? "signal" : "exit status",
                         WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

int agx_launch(char *const *options, size_t count, struct agx_error **err)
{
    struct start s = { .pidfd = -1, .said_fd = -1, .said = AGX_BUF_INIT(SAID_MAX) };
    int status = 0, r;

    if (count > OPTIONS_MAX)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "more than %d options for agentixd",
                             OPTIONS_MAX);
    find_program(&s);
    s.argv[0] = (char *)s.program;
    for (size_t i = 0; i < count; i++)
        s.argv[i + 1] = options[i];
    r = launch_begin(&s, err);
    if (r == 0)
        r = wait_for(&s, &status, err);
    if (r == 0)
        r = launch_judge(&s, status, err);
    agx_closep(&s.pidfd);
    agx_closep(&s.said_fd);
    agx_buf_done(&s.said);
    return r;
}
