/*
 * cgroup.h: the cgroups of sandboxes: resource limits and resource usage.
 *
 *     agx_cgroups_open(&config, &groups, err);
 *     agx_cgroups_make(groups, "web-1", &limits, &entry, err);    before the first process
 *         init enters: tasks files (version 1), or clone3(CLONE_INTO_CGROUP) of entry.dir_fd
 *     agx_cgroup_entry_done(&entry);
 *     agx_cgroups_remove(groups, "web-1", err);                   after the last process ended
 *
 * A host has version 2, version 1, or both (then version 1 is used when it has the memory
 * controller). A group's name is a sandbox id, or that of a companion's box: letters, digits, '-',
 * '_' and '.', not starting with '.'.
 *
 * All groups are below one group of ours, named after the instance; a restarted daemon finds them
 * there, with or without a record of the sandbox (agx_cgroups_list).
 *
 * The only state is descriptors that never change: any thread may call. Each call is a few system
 * calls on files in memory (make: about 200 us); none waits.
 */
#ifndef AGX_BACKEND_NATIVE_LIMITS_CGROUP_H
#define AGX_BACKEND_NATIVE_LIMITS_CGROUP_H

#include "base/error.h"

#include <stdint.h>
#include <sys/types.h>

#define AGX_CGROUP_NAME_MAX 220

/* The most `tasks` files that a process must write itself into: cpu, cpuacct, memory, pids. */
#define AGX_CGROUP_TASKS_MAX 4

struct agx_cgroups;

struct agx_cgroups_config {
    const char *instance; /* our groups are below "agentix-" and its first 8 characters
                           * (hexadecimal) */
};

struct agx_cgroup_limits {
    int64_t cpu_millicores; /* 0: no limit */
    int64_t memory_bytes;   /* 0: no limit. Includes swap: with a limit there is none */
    int64_t pids;           /* at least 1: always limited. Threads count */
    uint32_t io_weight;     /* 1 to 10000, default 100; 0: not set. Version 2 only */
};

/* How a process enters a group. Descriptors are close-on-exec. */
struct agx_cgroup_entry {
    int dir_fd; /* version 2: for CLONE_INTO_CGROUP; else -1 */
    /* Version 1: a single-threaded process writes "0" to each, before it clones PID 1. */
    int tasks_fds[AGX_CGROUP_TASKS_MAX];
    size_t n_tasks;
};

#define AGX_CGROUP_ENTRY_INIT                                                                      \
    {                                                                                              \
        .dir_fd = -1                                                                               \
    }

struct agx_cgroup_stats {
    uint64_t cpu_usec;     /* CPU time since the group was made */
    uint64_t memory_bytes; /* including the page cache that is charged to it */
    uint64_t memory_peak;  /* the maximum; 0 where has_peak is false (Linux < 5.19) */
    bool has_peak;
    uint64_t pids;          /* processes and threads now */
    uint64_t io_read_bytes; /* 0 where has_io is false (version 1) */
    uint64_t io_write_bytes;
    bool has_io;
    uint64_t oom_kills; /* processes that the kernel killed because of the memory limit */
};

/*
 * Finds the controllers and makes the parent of our groups. -AGX_FAILED_PRECONDITION when cpu,
 * memory or pids is missing or may not be used; the message says what the administrator can do.
 */
int agx_cgroups_open(const struct agx_cgroups_config *config, struct agx_cgroups **ret_groups,
                     struct agx_error **err) AGX_MUST_CHECK;

/* For hosts without usable cgroups: making and removing does nothing, and limits are refused. */
int agx_cgroups_open_none(struct agx_cgroups **ret_groups, struct agx_error **err) AGX_MUST_CHECK;

/* The groups stay; their parent is removed when it is empty. Accepts NULL. */
struct agx_cgroups *agx_cgroups_close(struct agx_cgroups *g);

static inline void agx_cgroups_closep(struct agx_cgroups **g)
{
    *g = agx_cgroups_close(*g);
}

/* Whether make() could set these limits: -AGX_FAILED_PRECONDITION or -AGX_INVALID_ARGUMENT names
 * the limit. Changes nothing. */
int agx_cgroups_check(const struct agx_cgroups *g, const struct agx_cgroup_limits *limits,
                      struct agx_error **err) AGX_MUST_CHECK;

/*
 * A new group with its limits set. An empty group of that name is removed first, so that counters
 * begin at 0; one with processes in it is -AGX_ALREADY_EXISTS. A failure leaves nothing behind.
 */
int agx_cgroups_make(struct agx_cgroups *g, const char *name,
                     const struct agx_cgroup_limits *limits, struct agx_cgroup_entry *ret_entry,
                     struct agx_error **err) AGX_MUST_CHECK;

void agx_cgroup_entry_done(struct agx_cgroup_entry *entry);

/* Succeeds when there is no such group. -AGX_UNAVAILABLE while a process is in it (even one that
 * was just killed): try again. */
int agx_cgroups_remove(struct agx_cgroups *g, const char *name,
                       struct agx_error **err) AGX_MUST_CHECK;

/* Sends SIGKILL to all processes in it, at once or (version 1) one by one, so that a process forked
 * meanwhile may be missed: kill again until remove() works. 0 when there is no process. A group
 * that was killed accepts no new process: make it anew. */
int agx_cgroups_kill(struct agx_cgroups *g, const char *name,
                     struct agx_error **err) AGX_MUST_CHECK;

/* Calls `each` with every group's name, in no order; the first negative result ends it and is
 * returned. */
typedef int (*agx_cgroups_fn)(void *user, const char *name);
int agx_cgroups_list(struct agx_cgroups *g, agx_cgroups_fn each, void *user,
                     struct agx_error **err) AGX_MUST_CHECK;

/* -AGX_NOT_FOUND: there is no such group. */
int agx_cgroups_stats(struct agx_cgroups *g, const char *name, struct agx_cgroup_stats *ret_stats,
                      struct agx_error **err) AGX_MUST_CHECK;

/* Whether that process is in the group; false also when there is no such process. */
bool agx_cgroups_holds(struct agx_cgroups *g, const char *name, pid_t pid);

#endif
