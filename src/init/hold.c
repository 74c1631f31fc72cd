/* hold.c: makes the namespaces of an ordinary user's daemon, and stays. */
#include "init/hold.h"

#include "base/fd.h"
#include "init/report.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "base/banned.h"

static void hold_tell(int report_fd, enum agx_plan_kind kind)
{
    const struct agx_plan_report r = { .kind = kind, .pid = (uint32_t)getpid() };

    if (!agx_report_send(report_fd, &r, NULL, 0))
        _exit(1);
}

/* New mounts of the host are visible here; mounts made here are not visible to the host. */
static void make_namespaces(int report_fd)
{
    if (unshare(CLONE_NEWNS | CLONE_NEWNET) < 0)
        agx_report_fail(report_fd, AGX_STAGE_NSSET, NULL);
    if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
        agx_report_fail(report_fd, AGX_STAGE_MOUNT, "/");
}

_Noreturn void agx_hold_run(int report_fd)
{
    /* newuidmap and later daemons read our /proc files, as the user who owns this process. */
    if (prctl(PR_SET_DUMPABLE, 1) < 0 || unshare(CLONE_NEWUSER) < 0)
        agx_report_fail(report_fd, AGX_STAGE_NSSET, NULL);
    hold_tell(report_fd, AGX_PLAN_MADE);
    agx_report_await_go(report_fd);
    make_namespaces(report_fd);
    hold_tell(report_fd, AGX_PLAN_READY);
    (void)!chdir("/");
    (void)syscall(SYS_close_range, 0, ~0u, 0);
    for (;;)
        (void)pause();
}
