/*
 * suid.h: who sets the setuid or the setgid bit of a file in a sandbox that has a writable mount
 * of the host. docs/design/init.md ("Setuid and setgid bits")
 *
 *     suid_filter.c   which calls would, as a filter for the kernel
 *     suid.c          a thread of PID 1 that hears of them, and a process for each
 *     suid_caller.c   that process: what the caller asks for, and as whom
 *     suid_act.c      that process: does it, or refuses
 *
 * The kernel stops such a call and tells the thread, which is not under the filters of the sandbox
 * and, as a part of PID 1, can be neither killed, stopped nor traced from inside. It opens no path:
 * a process that it forks for the call takes the caller's root, directory, ids, groups, umask and
 * capabilities, opens the object once, looks at the mount that it opened it on, and acts on that
 * descriptor. So nothing that the caller changes meanwhile changes what was decided.
 */
#ifndef AGX_INIT_SUID_H
#define AGX_INIT_SUID_H

#include "codec/initproto_plan.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/stat.h>
#include <sys/types.h>

enum {
    SUID_BITS = S_ISUID | S_ISGID,
    SUID_FILTER_MAX = 128,
    SUID_MOUNTS_MAX = 4096 + 2, /* those of a plan, the root and /dev/shm */
    SUID_GROUPS_MAX = 65536,    /* as many as the kernel gives to a process */
    SUID_PATH_MAX = 4096,
};

/* ---- suid_filter.c ---- */

/* The instructions, with this answer to those calls; as many as are returned. All other calls it
 * allows, but for openat2 and io_uring, whose modes are in memory, where a filter cannot look: these
 * are not there. */
size_t agx_suid_filter(uint32_t action, struct sock_filter out[SUID_FILTER_MAX]);
/* In a container of an engine, whose PID 1 may not look into other processes: nobody sets the bits,
 * anywhere. For the calling thread and all that it starts. False: errno. */
bool agx_suid_forbid(void);

/* ---- suid.c ---- */

/* Before start: files on that mount may have the bits. */
void agx_suid_allow(int mount_fd);
/* In PID 1 while it has all powers over the sandbox: the thread, which keeps `caps` and what it
 * needs itself. False: errno. */
bool agx_suid_start(uint64_t caps);
/* The filter, for the calling thread and all that it starts: the listener, or -1 and errno. */
int agx_suid_install(void);
/* Calls are answered from here on. False: there is no /proc. */
bool agx_suid_serve(int listener_fd);

bool agx_suid_is_allowed(int fd);

/* ---- suid_caller.c ---- */

/* A call as its process sees it. */
struct agx_suid_call {
    const struct seccomp_notif *told;
    int listener_fd, proc_fd;
    int task_fd; /* the caller's directory in /proc */
    int root_fd; /* the caller's root */
    int base_fd; /* what relative paths begin at */
    int own_fd;  /* what descriptor it named: that of fchmod, or by /proc/self/fd; or -1 */
    char path[SUID_PATH_MAX];
    mode_t mode;
    int flags;
    dev_t dev;
};

/* Takes the call in. 0, or negative errno for the caller. */
int agx_suid_take(struct agx_suid_call *c);
/* Becomes the caller, as far as files go. Likewise. */
int agx_suid_become(const struct agx_suid_call *c);
/* Is the caller still waiting for this very call? */
bool agx_suid_waits(const struct agx_suid_call *c);

/* ---- suid_act.c ---- */

/* In a process of its own, which has the two descriptors. */
_Noreturn void agx_suid_answer(const struct seccomp_notif *told, int listener_fd, int proc_fd);
/* Tells the caller that it failed. */
void agx_suid_refuse(int listener_fd, uint64_t id, int fault);

#endif
