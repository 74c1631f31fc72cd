/*
 * initproto_plan.h: what the daemon hands to `agentix-init --nssets` and `--plan`, and what they
 * answer. docs/design/init.md
 *
 * A plan is all that makes a sandbox, as data: a sealed memfd that holds one packet in the manner
 * of codec/initproto.h. Paths of the host are absolute; one may be /proc/self/fd/N, for a
 * descriptor that init inherits. Descriptors are named by their numbers in the new process.
 *
 * Reports go over a SOCK_SEQPACKET socket, in this order:
 *
 *     --gate FD PROGRAM...           nothing; GO, and it becomes the program.
 *     --hold FD                      MADE {pid} by an ordinary user's process in a user namespace
 *                                    of its own. Its ids are mapped, GO; READY in mount and network
 *                                    namespaces too. It closes the socket and stays.
 *     --nssets FD [NAME=VALUE...]    After each GO an nsset: MADE {pid}, of a process of its own,
 *                                    and three descriptors: user namespace, network namespace, a
 *                                    NETLINK_ROUTE socket in it. The daemon writes the id maps of
 *                                    that process and answers GO; then the settings (below
 *                                    /proc/sys/, "net/ipv6/conf/all/disable_ipv6=1") are written,
 *                                    it exits, and READY says so.
 *     --plan FD                      CLONED {pid} and one descriptor, the pidfd of PID 1, by a
 *                                    process that then exits with 0; READY by PID 1 when the root
 *                                    stands, unless the plan says AT_ONCE; it waits for GO.
 *                                    RUNNING when its control channel can be taken and the main
 *                                    process is started; it then closes the socket.
 *
 * Instead of any of them FAILED {stage, sys_errno, what}, and the process exits. A socket that ends
 * without RUNNING: the process was killed, or what it was given is no plan (it exits with 125). A
 * daemon that goes away before GO ends the process.
 */
#ifndef AGX_CODEC_INITPROTO_PLAN_H
#define AGX_CODEC_INITPROTO_PLAN_H

#include "codec/initproto.h"

#define AGX_PLAN_NO_FD UINT32_MAX

/* Files of `log_dir`; those of the last start have ".1" behind. */
#define AGX_PLAN_LOG "main.log"
#define AGX_PLAN_LOG_INDEX "main.index"

/* Flags of a plan. The list numbers them: AGX_PLAN_AT_ONCE is the first bit, and so on. */
#define AGX_PLAN_FLAGS(F)                                                                          \
    F(AT_ONCE)      /* nothing is put into the root: the main process does not wait */             \
    F(NO_NEW_PRIVS) /* no program gives its caller rights that he did not have */                  \
    F(VOLATILE)     /* the overlay never syncs: what is written dies with the host */              \
    F(KEEP_HOME)    /* HOME of `env` counts; else it is that of the user */                        \
    F(CGROUP2)      /* /sys/fs/cgroup shows its own cgroup, read-only (host has v2) */             \
    F(LIST_USER)    /* /etc/passwd and /etc/group get lines for root and `user` */                 \
    F(SHIFTED)      /* layers have the nsset's ids on disk: nothing is mapped */

/* Flags of a mount, likewise. */
#define AGX_PLAN_MOUNT_FLAGS(F)                                                                    \
    F(READ_ONLY)                                                                                   \
    F(IDMAP)     /* ids on disk are those inside; else what is mapped is base + id */              \
    F(RECURSIVE) /* with what is mounted below the source */                                       \
    F(NO_SUID)   /* no file there gets the setuid or setgid bit */                                 \
    F(LAYERED)   /* a directory, below a layer of the sandbox's own: what is written there stays   \
                    there, in `writable`. The source is READ_ONLY, and not RECURSIVE */

#define AGX_PLAN_BIT(name) AGX_PLAN_BIT_##name,
#define AGX_PLAN_FLAG(name) AGX_PLAN_##name = 1u << AGX_PLAN_BIT_##name,
enum { AGX_PLAN_FLAGS(AGX_PLAN_BIT) };
enum { AGX_PLAN_FLAGS(AGX_PLAN_FLAG) };
enum { AGX_PLAN_MOUNT_FLAGS(AGX_PLAN_BIT) };
enum { AGX_PLAN_MOUNT_FLAGS(AGX_PLAN_FLAG) };
#undef AGX_PLAN_BIT
#undef AGX_PLAN_FLAG

/* A part of the host that is seen inside: file, directory or socket. Never with devices, and
 * set-user-id programs there are ordinary ones. */
struct agx_plan_mount {
    uint32_t flags;
    struct agx_str source;
    struct agx_str target; /* absolute, in the sandbox; made when it is missing */
    uint32_t fd;           /* of the source; AGX_PLAN_NO_FD: its path is ours and is opened */
};

/* Everything is borrowed: of the caller who encodes, or of the packet. */
struct agx_plan {
    uint32_t flags;
    uint32_t report_fd;
    uint32_t user_fd, net_fd;       /* the nsset: namespaces whose ids are mapped */
    uint32_t cgroup_fd;             /* v2: the directory; or AGX_PLAN_NO_FD */
    struct agx_init_list tasks_fds; /* v1: `tasks` of each controller, for writing */

    struct agx_init_list layers; /* words: directories, the uppermost first; idmapped. May be 0 */
    struct agx_str writable;     /* a directory that holds `upper` and `work`; all three belong to
                                    root of the sandbox (the first id of the nsset) */
    struct agx_str devices;      /* what agx_devices_open() made: /dev */
    uint64_t shm_bytes;
    struct agx_init_list mounts; /* in this order, over the image, /proc, /sys and /dev */
    struct agx_init_list masked; /* words: absolute; nothing is seen there. May be missing */
    struct agx_init_list frozen; /* words: absolute; read-only. May be missing */
    struct agx_str hostname;

    uint64_t caps;                /* bit n: CAP n; nobody inside ever has another */
    struct agx_str seccomp;       /* struct sock_filter[]; empty: none */
    struct agx_init_list rlimits; /* of everybody inside; what is not named is the spawner's */
    uint32_t oom_score_adj;       /* int32_t, as it is written */

    /* As the options of the same name; docs/design/init.md. */
    struct agx_str user, groups;
    uint64_t await_user_ms;
    uint32_t commands; /* 0: the default */
    struct agx_str cwd;
    struct agx_init_list argv; /* of the main process; empty: none, init idles */
    struct agx_init_list env;  /* NAME=value: of the main process and of commands that inherit */

    /* What the main process writes, in the manner of base/caplog.h: a directory for AGX_PLAN_LOG
     * and AGX_PLAN_LOG_INDEX. Empty: it goes nowhere. */
    struct agx_str log_dir;
    uint64_t log_head, log_tail;
};

enum agx_plan_kind {
    AGX_PLAN_MADE = 1, /* pid; descriptors: user, net, netlink */
    AGX_PLAN_CLONED,   /* pid; descriptor: pidfd */
    AGX_PLAN_READY,
    AGX_PLAN_RUNNING,
    AGX_PLAN_FAILED, /* stage, sys_errno, what */
    AGX_PLAN_GO,     /* to init: make an nsset; its maps are written; what was copied is there */
};

/* Where it failed; agx_plan_failed() says it in words. */
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
    uint32_t pid;       /* as the sender's namespace counts: the host's */
    uint32_t stage;     /* enum agx_plan_stage */
    uint32_t sys_errno; /* of the host's kernel */
    struct agx_str what;
};

/* -AGX_INVALID_ARGUMENT, or -AGX_RESOURCE_EXHAUSTED past a limit. Strings have a NUL behind them.
 */
int agx_plan_decode(struct agx_str packet, struct agx_plan *ret,
                    struct agx_error **err) AGX_MUST_CHECK;
/* The length; written when that is at most `size`. What decode would refuse is the caller's fault.
 */
size_t agx_plan_encode(const struct agx_plan *p, uint8_t *out, size_t size);

/* One mount, one number, as a list holds them: as agx_init_word_put(). */
size_t agx_plan_mount_put(uint8_t *out, size_t size, const struct agx_plan_mount *m);
size_t agx_plan_number_put(uint8_t *out, size_t size, uint32_t number);
/* The next one; false at the end of the list. */
bool agx_plan_mount_next(struct agx_init_list *l, struct agx_plan_mount *ret);
bool agx_plan_number_next(struct agx_init_list *l, uint32_t *ret);

int agx_plan_report_decode(struct agx_str packet, struct agx_plan_report *ret,
                           struct agx_error **err) AGX_MUST_CHECK;
size_t agx_plan_report_encode(const struct agx_plan_report *r, uint8_t *out, size_t size);

/* The error that a FAILED is: "mount overlay on '/': no space left on device". */
int agx_plan_failed(const struct agx_plan_report *r, struct agx_error **err);

#endif
