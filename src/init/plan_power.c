/*
 * plan_power.c: limits what PID 1 and its children may do.
 *
 * In PID 1, as root of the sandbox, with its root complete. The order: what needs a capability or a
 * system call comes before that is given up.
 */
#include "init/plan.h"

#include "init/suid.h"

#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/keyctl.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "base/banned.h"

enum { CAPS_MAX = 64 };

#define BIT(cap) (UINT64_C(1) << (cap))

/* What PID 1 itself needs: users of commands, their directories, their signals. It never executes a
 * program, so no other process gets them. */
#define OWN_CAPS                                                                                   \
    (BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_FOWNER) | BIT(CAP_SETUID) |                  \
     BIT(CAP_SETGID) | BIT(CAP_KILL))

/* No executed program ever has a capability outside of this set, whichever user owns its file. */
static void bound_capabilities(const struct agx_planned *p)
{
    for (int cap = 0; cap < CAPS_MAX; cap++) {
        if (p->plan.caps & BIT(cap))
            continue;
        if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0)
            continue;
        if (errno == EINVAL) /* the kernel has no more of them */
            break;
        agx_plan_fail(p, AGX_STAGE_CAPS, NULL);
    }
    (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
}

static void drop_capabilities(const struct agx_planned *p)
{
    struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct data[2] = { 0 }, kept[2];
    const uint64_t caps = p->plan.caps | OWN_CAPS;

    if (syscall(SYS_capget, &head, kept) < 0)
        agx_plan_fail(p, AGX_STAGE_CAPS, NULL);
    for (int i = 0; i < 2; i++)
        data[i].permitted = data[i].effective = kept[i].permitted & (uint32_t)(caps >> (32 * i));
    if (syscall(SYS_capset, &head, data) < 0)
        agx_plan_fail(p, AGX_STAGE_CAPS, NULL);
}

static void filter_calls(const struct agx_planned *p)
{
    struct sock_fprog prog = {
        .len = (unsigned short)(p->plan.seccomp.len / sizeof(struct sock_filter)),
    };
    /* The kernel copies it byte by byte, whatever its alignment. */
    union {
        const char *in;
        struct sock_filter *out;
    } filter = { .in = p->plan.seccomp.ptr };

    if (prog.len == 0)
        return;
    prog.filter = filter.out;
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0)
        agx_plan_fail(p, AGX_STAGE_SECCOMP, NULL);
}

static bool has_mount_without_suid(const struct agx_planned *p)
{
    struct agx_init_list mounts = p->plan.mounts;
    struct agx_plan_mount m;

    while (agx_plan_mount_next(&mounts, &m)) {
        if (m.flags & AGX_PLAN_NO_SUID)
            return true;
    }
    return false;
}

/* The thread begins before there is any filter, which would apply to it too. */
static void begin_suid(const struct agx_planned *p)
{
    if (!agx_suid_start(p->plan.caps))
        agx_plan_fail(p, AGX_STAGE_SECCOMP, "setuid bits: a thread");
}

static void filter_suid(struct agx_planned *p)
{
    p->suid_fd = agx_suid_install();
    if (p->suid_fd < 0)
        agx_plan_fail(p, AGX_STAGE_SECCOMP,
                      errno == EINVAL ? "setuid bits: this takes Linux 5.19" : "setuid bits");
}

void agx_plan_give_up_power(struct agx_planned *p)
{
    const bool suid = has_mount_without_suid(p);

    /* Otherwise every process inside had the keys of the user who started the daemon. */
    (void)syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);
    bound_capabilities(p);
    if ((p->plan.flags & AGX_PLAN_NO_NEW_PRIVS) && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        agx_plan_fail(p, AGX_STAGE_CAPS, "no_new_privs");
    if (suid)
        begin_suid(p);
    filter_calls(p);
    if (suid)
        filter_suid(p);
    drop_capabilities(p);
    /* Changing ids may have made us dumpable: then code of the sandbox could trace us. */
    if (prctl(PR_SET_DUMPABLE, 0) < 0)
        agx_plan_fail(p, AGX_STAGE_CAPS, NULL);
}
