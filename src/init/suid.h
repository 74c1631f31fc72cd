/*
 * suid.h: decides which processes may set the setuid or setgid bit of a file, in a sandbox with a
 * writable mount of the host. docs/design/init.md ("Setuid and setgid bits")
 *
 *     suid_filter.c   which calls would, as a seccomp filter
 *     suid.c          a thread of PID 1 that receives them, and starts a process for each
 *     suid_caller.c   that process: reads the request, takes the caller's identity
 *     suid_act.c      that process: carries it out, or refuses
 *
 * The kernel stops such a call and notifies the thread, which is not under the filters of the
 * sandbox and, as part of PID 1, cannot be killed, stopped or traced from inside. The thread opens
 * no path. It forks a process for the call, which takes the caller's root, directory, ids, groups,
 * umask and capabilities, opens the object once, checks the mount that it was opened on, and acts
 * on that descriptor. So nothing that the caller changes meanwhile changes what was checked.
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
    SUID_GROUPS_MAX = 65536,    /* the kernel's limit per process */
    SUID_PATH_MAX = 4096,
};

/* ---- suid_filter.c ---- */

/* Writes the filter, with this action for those calls; returns the number of instructions. It
 * allows all other calls, except openat2 and io_uring, which fail as missing: their modes are in
 * memory, where a filter cannot look. */
size_t agx_suid_filter(uint32_t action, struct sock_filter out[SUID_FILTER_MAX]);
/* For a container of an engine, whose PID 1 may not look into other processes: no process may set
 * the bits, anywhere. For the calling thread and all that it starts. False: errno. */
bool agx_suid_forbid(void);

/* ---- suid.c ---- */

/* Call it before start: files on that mount may have the bits. */
void agx_suid_allow(int mount_fd);
/* In PID 1 while it has all powers over the sandbox: starts the thread, which keeps `caps` and what
 * it needs itself. False: errno. */
bool agx_suid_start(uint64_t caps);
/* Installs the filter for the calling thread and all that it starts: the listener, or -1 and
 * errno. */
int agx_suid_install(void);
/* Calls are answered from here on. False: there is no /proc. */
bool agx_suid_serve(int listener_fd);

bool agx_suid_is_allowed(int fd);

/* ---- suid_caller.c ---- */

/* A call, as seen by the process that handles it. */
struct agx_suid_call {
    const struct seccomp_notif *told;
    int listener_fd, proc_fd;
    int task_fd; /* the caller's directory in /proc */
    int root_fd; /* the caller's root */
    int base_fd; /* where relative paths begin */
    int own_fd;  /* a descriptor that it named, by fchmod or by /proc/self/fd; or -1 */
    char path[SUID_PATH_MAX];
    mode_t mode;
    int flags;
    dev_t dev;
};

/* Reads the call's arguments. 0, or negative errno for the caller. */
int agx_suid_take(struct agx_suid_call *c);
/* Takes the caller's identity for file access. Same result. */
int agx_suid_become(const struct agx_suid_call *c);
/* Is the caller still waiting for this very call? */
bool agx_suid_waits(const struct agx_suid_call *c);

/* ---- suid_act.c ---- */

/* Runs in a process of its own, with these two descriptors. */
_Noreturn void agx_suid_answer(const struct seccomp_notif *told, int listener_fd, int proc_fd);
/* Reports an error to the caller. */
void agx_suid_refuse(int listener_fd, uint64_t id, int fault);

#endif
