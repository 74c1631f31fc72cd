/* interrupt.c: a signalfd for two signals. */
#include "cli/interrupt.h"

#include <errno.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/banned.h"

void agx_interrupt_set(sigset_t *ret)
{
    (void)sigemptyset(ret);
    (void)sigaddset(ret, SIGINT);
    (void)sigaddset(ret, SIGTERM);
}

int agx_interrupt_open(int *ret_fd, struct agx_error **err)
{
    sigset_t set;
    int fd;

    agx_interrupt_set(&set);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return agx_error_errno(err, errno, "block signals");
    fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        return agx_error_errno(err, errno, "wait for signals");
    *ret_fd = fd;
    return 0;
}

int agx_interrupt_take(int fd)
{
    struct signalfd_siginfo info;

    return read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info) ? (int)info.ssi_signo : 0;
}
