/*
 * initproto_plan.h: the messages from the daemon to `agentix-init --nssets` and `--plan`, and their
 * reports. docs/design/init.md
 *
 * A plan describes a sandbox completely, as data: a sealed memfd that holds one packet in the
 * format of codec/initproto.h. Paths of the host are absolute; one may be /proc/self/fd/N, for a
 * descriptor that init inherits. Descriptors are named by their numbers in the new process.
 *
 * Reports go over a SOCK_SEQPACKET socket, in this order:
 *
 *     --gate FD PROGRAM...           No report; after GO the process becomes the program.
 *     --hold FD                      MADE {pid} by an ordinary user's process in a user namespace
 *                                    of its own. Its ids are mapped, GO; READY when it is in mount
 *                                    and network namespaces too. It closes the socket and stays.
 *     --nssets FD [NAME=VALUE...]    Each GO makes an nsset: MADE {pid}, of a new process, and
 *                                    three descriptors: user namespace, network namespace, a
 *                                    NETLINK_ROUTE socket in it. The daemon writes the id maps of
 *                                    that process and answers GO. The process then writes the
 *                                    settings (below /proc/sys/,
 *                                    "net/ipv6/conf/all/disable_ipv6=1") and exits; READY reports
 *                                    that.
 *     --plan FD                      CLONED {pid} and one descriptor, the pidfd of PID 1, by a
 *                                    process that then exits with 0; READY by PID 1 when the root
 *                                    is complete, unless the plan says AT_ONCE; it waits for GO.
 *                                    RUNNING when its control channel can be taken and the main
 *                                    process is started; it then closes the socket.
 *
 * Each report may be FAILED {stage, sys_errno, what} instead; the process then exits. If the socket
 * ends without RUNNING, the process was killed, or did not get a valid plan (it exits with 125). If
 * the daemon goes away before GO, the process ends.
 */
#ifndef AGX_CODEC_INITPROTO_PLAN_H
#define AGX_CODEC_INITPROTO_PLAN_H

#include "codec/initproto.h"

#define AGX_PLAN_NO_FD UINT32_MAX

/* Files of `log_dir`; those of the previous start have the suffix ".1". */
#define AGX_PLAN_LOG "main.log"
#define AGX_PLAN_LOG_INDEX "main.index"

/* Flags of a plan. The list numbers them: AGX_PLAN_AT_ONCE is the first bit, and so on. */
#define AGX_PLAN_FLAGS(F)                                                                          \
    F(AT_ONCE)      /* nothing is copied into the root: the main process does not wait */          \
    F(NO_NEW_PRIVS) /* no program gives its caller more privileges */                              \
    F(VOLATILE)     /* the overlay never syncs: writes do not outlive the host */                  \
    F(KEEP_HOME)    /* HOME comes from `env`; otherwise it is that of the user */                  \
    F(CGROUP2)      /* /sys/fs/cgroup shows its own cgroup, read-only (host has v2) */             \
    F(LIST_USER)    /* /etc/passwd and /etc/group get lines for root and `user` */                 \
    F(SHIFTED)      /* layers have the nsset's ids on disk, and are not idmapped */

/* Flags of a mount, numbered in the same way. */
#define AGX_PLAN_MOUNT_FLAGS(F)                                                                    \
    F(READ_ONLY)                                                                                   \
    F(IDMAP)     /* ids on disk are those inside; else id X inside is base + X on disk */          \
    F(RECURSIVE) /* with the mounts below the source */                                            \
    F(NO_SUID)   /* no file in it gets the setuid or setgid bit */                                 \
    F(OVER_LINK) /* a dead symlink at the target, which is in no other mount, is removed */        \
    F(LAYERED)   /* a directory, below a layer of the sandbox's own: writes go to that layer, in   \
                    `writable`. The source is READ_ONLY, and not RECURSIVE */

#define AGX_PLAN_BIT(name) AGX_PLAN_BIT_##name,
#define AGX_PLAN_FLAG(name) AGX_PLAN_##name = 1u << AGX_PLAN_BIT_##name,
enum { AGX_PLAN_FLAGS(AGX_PLAN_BIT) };
enum { AGX_PLAN_FLAGS(AGX_PLAN_FLAG) };
enum { AGX_PLAN_MOUNT_FLAGS(AGX_PLAN_BIT) };
enum { AGX_PLAN_MOUNT_FLAGS(AGX_PLAN_FLAG) };
#undef AGX_PLAN_BIT
#undef AGX_PLAN_FLAG

/* A file, directory or socket of the host that is visible inside. Devices in it do not work, and
 * set-user-id programs run as ordinary ones. */
struct agx_plan_mount {
    uint32_t flags;
    struct agx_str source;
    struct agx_str target; /* absolute, in the sandbox; created if it is missing */
    uint32_t fd;           /* of the source; AGX_PLAN_NO_FD: init opens the path */
};

/* Everything is borrowed: from the caller that encodes, or from the packet. */
struct agx_plan {
    uint32_t flags;
    uint32_t report_fd;
    uint32_t user_fd, net_fd;       /* the nsset: namespaces whose ids are mapped */
    uint32_t cgroup_fd;             /* v2: the directory; or AGX_PLAN_NO_FD */
    struct agx_init_list tasks_fds; /* v1: `tasks` of each controller, for writing */

    struct agx_init_list layers; /* words: directories, uppermost first; idmapped. May be 0 */
    struct agx_str writable;     /* a directory that holds `upper` and `work`; all three belong to
                                    root of the sandbox (the first id of the nsset) */
    struct agx_str devices;      /* what agx_devices_open() made: /dev */
    uint64_t shm_bytes;
    uint32_t ptys;               /* terminals in /dev/pts, open at a time */
    struct agx_init_list mounts; /* mounted in this order, over the image, /proc, /sys and /dev */
    struct agx_init_list masked; /* words: absolute; hidden inside. May not exist */
    struct agx_init_list frozen; /* words: absolute; read-only. May not exist */
    struct agx_str hostname;

    uint64_t caps;                /* bit n: CAP n; no process inside ever has others */
    struct agx_str seccomp;       /* struct sock_filter[]; empty: none */
    struct agx_init_list rlimits; /* of all processes; others are those of the spawner */
    uint32_t oom_score_adj;       /* int32_t, as it is written */

    /* As the options of the same name; docs/design/init.md. */
    struct agx_str user, groups;
    uint64_t await_user_ms;
    uint32_t commands; /* 0: the default */
    struct agx_str cwd;
    struct agx_init_list argv; /* of the main process; empty: none, init only waits */
    struct agx_init_list env;  /* NAME=value: of the main process and of commands that inherit */

    /* The directory for the main process's output, AGX_PLAN_LOG and AGX_PLAN_LOG_INDEX, in the
     * format of base/caplog.h. Empty: the output is dropped. */
    struct agx_str log_dir;
    uint64_t log_head, log_tail;
};

enum agx_plan_kind {
    AGX_PLAN_MADE = 1, /* pid; descriptors: user, net, netlink */
    AGX_PLAN_CLONED,   /* pid; descriptor: pidfd */
    AGX_PLAN_READY,
    AGX_PLAN_RUNNING,
    AGX_PLAN_FAILED, /* stage, sys_errno, what */
    AGX_PLAN_GO,     /* to init: make an nsset; its maps are written; the copies are complete */
};

/* Where it failed; agx_plan_failed() has the words. */
enum agx_plan_stage {
    AGX_STAGE_LIMITS = 1,
    AGX_STAGE_CGROUP,
    AGX_STAGE_SOURCE,
    AGX_STAGE_IDMAP,
    AGX_STAGE_NSSET,
    AGX_STAGE_SETTING,
    AGX_STAGE_CLONE,
    AGX_STAGE_IDENTITY,
    AGX_STAGE_STAGE,
    AGX_STAGE_OVERLAY,
    AGX_STAGE_MOUNT,
    AGX_STAGE_MASK,
    AGX_STAGE_ROOT,
    AGX_STAGE_HOSTNAME,
    AGX_STAGE_CAPS,
    AGX_STAGE_SECCOMP,
    AGX_STAGE_CONTROL,
    AGX_STAGE_END
};

#define AGX_PLAN_WHAT_MAX 512
#define AGX_PLAN_REPORT_MAX (4 + 4 + 4 + 4 + 4 + AGX_PLAN_WHAT_MAX + 1)
#define AGX_PLAN_REPORT_FDS_MAX 3

struct agx_plan_report {
    enum agx_plan_kind kind;
    uint32_t pid;       /* in the sender's namespace: the host's */
    uint32_t stage;     /* enum agx_plan_stage */
    uint32_t sys_errno; /* of the host's kernel */
    struct agx_str what;
};

/* -AGX_INVALID_ARGUMENT, or -AGX_RESOURCE_EXHAUSTED past a limit. A NUL follows each string. */
int agx_plan_decode(struct agx_str packet, struct agx_plan *ret,
                    struct agx_error **err) AGX_MUST_CHECK;
/* Returns the length, and writes the packet if that is at most `size`. The caller must not pass a
 * plan that decode would refuse. */
size_t agx_plan_encode(const struct agx_plan *p, uint8_t *out, size_t size);

/* One mount, one number of a list; otherwise like agx_init_word_put(). */
size_t agx_plan_mount_put(uint8_t *out, size_t size, const struct agx_plan_mount *m);
size_t agx_plan_number_put(uint8_t *out, size_t size, uint32_t number);
/* The next of a list; false at its end. */
bool agx_plan_mount_next(struct agx_init_list *l, struct agx_plan_mount *ret);
bool agx_plan_number_next(struct agx_init_list *l, uint32_t *ret);

int agx_plan_report_decode(struct agx_str packet, struct agx_plan_report *ret,
                           struct agx_error **err) AGX_MUST_CHECK;
size_t agx_plan_report_encode(const struct agx_plan_report *r, uint8_t *out, size_t size);

/* The error of a FAILED report: "mount overlay on '/': no space left on device". */
int agx_plan_failed(const struct agx_plan_report *r, struct agx_error **err);

#endif
