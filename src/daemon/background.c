#include "daemon/background.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>

#include "base/banned.h"

/* In the starter: waits for one byte (ready) or for the child's exit. */
static _Noreturn void wait_for_child(pid_t child, int fd)
{
    int status = 0;
    ssize_t n;
    char byte;

    do
        n = read(fd, &byte, 1);
    while (n < 0 && errno == EINTR);
    if (n == 1)
        _exit(EXIT_SUCCESS);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
        _exit(WEXITSTATUS(status));
    if (WIFSIGNALED(status))
        (void)fprintf(stderr, "agentixd: killed by signal %d before it was ready\n",
                      WTERMSIG(status));
    else
        (void)fputs("agentixd: exited before it was ready\n", stderr);
    _exit(EXIT_FAILURE);
}

int agx_background_start(struct agx_background *bg, struct agx_error **err)
{
    int fds[2];
    pid_t child;

    if (pipe2(fds, O_CLOEXEC) < 0)
        return agx_error_errno(err, errno, "go into the background");
    child = fork();
    if (child < 0) {
        int saved = errno;

        (void)close(fds[0]);
        (void)close(fds[1]);
        return agx_error_errno(err, saved, "go into the background");
    }
    (void)close(fds[child > 0 ? 1 : 0]);
    if (child > 0)
        wait_for_child(child, fds[0]);
    /* Our own session: a hang-up or Ctrl-C of the terminal does not reach us. */
    (void)setsid();
    bg->fd = fds[1];
    return 0;
}

int agx_background_ready(struct agx_background *bg, struct agx_error **err)
{
    _cleanup_close_ int waiter = AGX_TAKE_FD(bg->fd), null = -1;

    if (waiter < 0)
        return 0;
    /* We must not keep the starter's terminal, pipe or directory open. */
    null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0 || chdir("/") < 0)
        return agx_error_errno(err, errno, "go into the background");
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (dup2(null, fd) < 0)
            return agx_error_errno(err, errno, "go into the background");
    }
    /* The write may fail: the starter may be gone. */
    (void)!write(waiter, "", 1);
    return 0;
}
