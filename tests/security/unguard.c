/*
 * unguard.c: replaces agentix-init and removes guards from the daemon's plan; the rest of the plan
 * stays as it is. So a test sees which guard stops an attempt. The product has no such switch.
 *
 * In its directory are `real`, the agentix-init that carries out the remaining plan, and `off`, the
 * guards to remove, one word each. If `swap` exists, it names two paths that are exchanged first,
 * as an attacker could do between a check and its mount.
 *
 *     seccomp capabilities no-new-privs masks read-only     removed from the plan
 *     root                      mounts the host's path that the file `root` names
 *     sys shm                   mounts the host's /sys, /dev/shm over the sandbox's
 *     suid                      the setuid and setgid bits can be set everywhere
 *     mount-attributes          mounts are as on the host: writable, with devices and set-user-id
 *                               programs
 *     ptys                      as many terminals as the kernel has
 *     sources                   sources are mounted by their paths, not by their descriptors
 *     user-namespace net-namespace pid-namespace ipc-namespace    neither made nor entered
 *     dumpable                  init can be traced
 *     descriptors               one more descriptor is open and stays open
 *     environment               init has a variable of the daemon
 */
#include "codec/initproto_plan.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

/* The most that the kernel accepts for a devpts, and its default. */
#define PTYS_MAX (1u << 20)

enum { FILTER_MAX = 64, LIST_MAX = 1 << 16 };

static char here[PATH_MAX], off[4096];

static _Noreturn void die(const char *what)
{
    (void)fprintf(stderr, "unguard: %s: %s\n", what, strerror(errno));
    _exit(125);
}

/* What a file beside us holds; empty when it is missing. */
static void read_beside(const char *name, char *out, size_t size)
{
    char path[PATH_MAX + 16];
    ssize_t n = -1;
    int fd;

    (void)snprintf(path, sizeof(path), "%s/%s", here, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        n = read(fd, out, size - 1);
        (void)close(fd);
    }
    out[n > 0 ? n : 0] = '\0';
}

static bool is_off(const char *guard)
{
    const size_t len = strlen(guard);

    for (const char *at = off; (at = strstr(at, guard)); at += len) {
        if ((at == off || at[-1] == ' ') && (at[len] == ' ' || at[len] == '\0'))
            return true;
    }
    return false;
}

/* ---- the plan ---- */

static struct agx_str read_plan(int fd)
{
    struct stat st;
    void *at;

    if (fstat(fd, &st) < 0)
        die("plan");
    at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (at == MAP_FAILED)
        die("plan");
    return agx_str_bytes(at, (size_t)st.st_size);
}

/* Under the number that the first one had. */
static void write_plan(const struct agx_plan *p, int as_fd)
{
    const size_t n = agx_plan_encode(p, NULL, 0);
    uint8_t *bytes = malloc(n);
    int fd = memfd_create("plan", MFD_ALLOW_SEALING);

    if (!bytes || fd < 0)
        die("plan");
    (void)agx_plan_encode(p, bytes, n);
    if (write(fd, bytes, n) != (ssize_t)n || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) < 0 ||
        dup2(fd, as_fd) < 0)
        die("plan");
    free(bytes);
    (void)close(fd);
}

/* One more mount, behind the others. */
static void add_mount(struct agx_plan *p, const char *source, const char *target, uint32_t flags)
{
    static uint8_t bytes[LIST_MAX];
    const struct agx_plan_mount m = { flags, agx_str_from(source), agx_str_from(target),
                                      AGX_PLAN_NO_FD };
    size_t n = p->mounts.bytes.len;

    if (n + agx_plan_mount_put(NULL, 0, &m) > sizeof(bytes))
        die("mounts");
    if (p->mounts.bytes.ptr != (const char *)bytes)
        memcpy(bytes, p->mounts.bytes.ptr, n);
    n += agx_plan_mount_put(bytes + n, sizeof(bytes) - n, &m);
    p->mounts = (struct agx_init_list){ p->mounts.count + 1, agx_str_bytes(bytes, n) };
}

static void mount_by_path(struct agx_plan *p)
{
    static uint8_t bytes[LIST_MAX];
    struct agx_plan_mount m;
    uint32_t count = p->mounts.count;
    size_t n = 0;

    while (agx_plan_mount_next(&p->mounts, &m)) {
        m.fd = AGX_PLAN_NO_FD;
        if (n + agx_plan_mount_put(NULL, 0, &m) > sizeof(bytes))
            die("mounts");
        n += agx_plan_mount_put(bytes + n, sizeof(bytes) - n, &m);
    }
    p->mounts = (struct agx_init_list){ count, agx_str_bytes(bytes, n) };
}

static void swap_paths(void)
{
    static char paths[2 * PATH_MAX];
    char *other;

    read_beside("swap", paths, sizeof(paths));
    if (paths[0] == '\0')
        return;
    other = strchr(paths, '\n');
    if (!other)
        die("swap");
    *other++ = '\0';
    if (renameat2(AT_FDCWD, paths, AT_FDCWD, other, RENAME_EXCHANGE) < 0)
        die("swap");
}

/* The same mounts, on which files may have any mode. */
static void allow_suid(struct agx_plan *p)
{
    static uint8_t bytes[LIST_MAX];
    struct agx_init_list mounts = p->mounts;
    struct agx_plan_mount m;
    size_t n = 0;

    if (mounts.bytes.len > sizeof(bytes))
        die("mounts");
    while (agx_plan_mount_next(&mounts, &m)) {
        m.flags &= ~AGX_PLAN_NO_SUID;
        n += agx_plan_mount_put(bytes + n, sizeof(bytes) - n, &m);
    }
    p->mounts.bytes = agx_str_bytes(bytes, n);
}

static void change_plan(struct agx_plan *p)
{
    static char root[PATH_MAX];

    if (is_off("seccomp"))
        p->seccomp = AGX_STR("");
    if (is_off("capabilities"))
        p->caps = UINT64_MAX;
    if (is_off("no-new-privs"))
        p->flags &= ~AGX_PLAN_NO_NEW_PRIVS;
    if (is_off("masks"))
        p->masked = (struct agx_init_list){ 0 };
    if (is_off("read-only"))
        p->frozen = (struct agx_init_list){ 0 };
    if (is_off("sources"))
        mount_by_path(p);
    if (is_off("ptys"))
        p->ptys = PTYS_MAX;
    if (is_off("suid"))
        allow_suid(p);
    read_beside("root", root, sizeof(root));
    if (is_off("root"))
        add_mount(p, root, root, 0);
    if (is_off("sys"))
        add_mount(p, "/sys", "/sys", AGX_PLAN_RECURSIVE);
    if (is_off("shm"))
        add_mount(p, "/dev/shm", "/dev/shm", 0);
}

/* ---- system calls ---- */

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define UNLESS(value, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, (skip))
#define DO(action) BPF_STMT(BPF_RET | BPF_K, (action))
/* It is not made, and its caller is told that it was. */
#define PRETEND (SECCOMP_RET_ERRNO | 0)

struct filter {
    struct sock_filter code[FILTER_MAX];
    unsigned short len;
};

static void add_code(struct filter *f, const struct sock_filter *code, size_t n)
{
    memcpy(f->code + f->len, code, n * sizeof(*code));
    f->len = (unsigned short)(f->len + n);
}

#define ADD(f, ...)                                                                                \
    do {                                                                                           \
        const struct sock_filter code[] = { __VA_ARGS__ };                                         \
        add_code((f), code, sizeof(code) / sizeof(code[0]));                                       \
    } while (0)

/* In the namespaces of agentix-init it stays with all that it starts, but none of these calls is
 * one that an attempt makes. */
static void filter_calls(bool traced)
{
    struct filter f = { .len = 0 };
    struct sock_fprog prog = { .filter = f.code };

    ADD(&f, LOAD(arch), UNLESS(AUDIT_ARCH_X86_64, 1), BPF_JUMP(BPF_JMP | BPF_JA, 1, 0, 0),
        DO(SECCOMP_RET_ALLOW));
    if (is_off("user-namespace"))
        ADD(&f, LOAD(nr), UNLESS(SYS_setns, 3), LOAD(args[1]), UNLESS(CLONE_NEWUSER, 1),
            DO(PRETEND));
    if (is_off("net-namespace"))
        ADD(&f, LOAD(nr), UNLESS(SYS_setns, 3), LOAD(args[1]), UNLESS(CLONE_NEWNET, 1),
            DO(PRETEND));
    if (is_off("dumpable"))
        ADD(&f, LOAD(nr), UNLESS(SYS_prctl, 3), LOAD(args[0]), UNLESS(PR_SET_DUMPABLE, 1),
            DO(PRETEND));
    if (is_off("mount-attributes"))
        ADD(&f, LOAD(nr), UNLESS(SYS_mount_setattr, 1), DO(PRETEND));
    if (is_off("descriptors"))
        ADD(&f, LOAD(nr), UNLESS(SYS_close_range, 1), DO(PRETEND));
    if (traced)
        ADD(&f, LOAD(nr), UNLESS(SYS_clone3, 1), DO(SECCOMP_RET_TRACE));
    ADD(&f, DO(SECCOMP_RET_ALLOW));
    prog.len = f.len;
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0)
        die("filter");
}

/* Namespaces that are made with PID 1: their flags are in the memory of who clones it. */
static uint64_t unwanted(void)
{
    return (is_off("pid-namespace") ? CLONE_NEWPID : 0) |
           (is_off("ipc-namespace") ? CLONE_NEWIPC : 0);
}

/* Waits for the clone of `pid`, takes flags out of it, and is done. */
static _Noreturn void change_clone(pid_t pid, int attached_fd)
{
    struct user_regs_struct regs;
    uint64_t flags;
    int status = 0;

    if (ptrace(PTRACE_SEIZE, pid, NULL, PTRACE_O_TRACESECCOMP | PTRACE_O_EXITKILL) < 0)
        die("seize");
    (void)close(attached_fd);
    while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status) &&
           status >> 8 != (SIGTRAP | (PTRACE_EVENT_SECCOMP << 8)))
        (void)ptrace(PTRACE_CONT, pid, NULL, NULL);
    if (!WIFSTOPPED(status) || ptrace(PTRACE_GETREGS, pid, NULL, &regs) < 0)
        die("no clone");
    /* Not by libc: numbers are addresses there. */
    if (syscall(SYS_ptrace, PTRACE_PEEKDATA, pid, regs.rdi, &flags) < 0 ||
        syscall(SYS_ptrace, PTRACE_POKEDATA, pid, regs.rdi, flags & ~unwanted()) < 0)
        die("change the clone");
    (void)ptrace(PTRACE_DETACH, pid, NULL, NULL);
    _exit(0);
}

/* The tracer is a child of ours: whoever starts us waits for agentix-init itself. */
static void have_clone_changed(void)
{
    int attached[2];
    pid_t pid, tracee = getpid();
    char none;

    if (pipe2(attached, O_CLOEXEC) < 0 || (pid = fork()) < 0)
        die("tracer");
    if (pid == 0) {
        (void)close(attached[0]);
        (void)syscall(SYS_close_range, 3, attached[1] - 1, 0);
        (void)syscall(SYS_close_range, attached[1] + 1, ~0u, 0);
        change_clone(tracee, attached[1]);
    }
    (void)close(attached[1]);
    (void)!read(attached[0], &none, 1);
    (void)close(attached[0]);
}

static void leave_out(int plan_fd)
{
    struct agx_plan plan;

    if (agx_plan_decode(read_plan(plan_fd), &plan, NULL) < 0)
        die("no plan");
    swap_paths();
    change_plan(&plan);
    write_plan(&plan, plan_fd);
    if (is_off("descriptors"))
        (void)open("/dev/null", O_RDONLY); /* not closed by exec */
    if (is_off("environment"))
        (void)setenv("DAEMON", "secret", 1);
    if (unwanted() != 0)
        have_clone_changed();
    filter_calls(unwanted() != 0);
}

int main(int argc, char **argv)
{
    char real[PATH_MAX + 16];
    ssize_t n = readlink("/proc/self/exe", here, sizeof(here) - 1);

    if (n < 0)
        die("/proc/self/exe");
    *strrchr(here, '/') = '\0';
    (void)snprintf(real, sizeof(real), "%s/real", here);
    read_beside("off", off, sizeof(off));
    if (argc == 3 && strcmp(argv[1], "--plan") == 0)
        leave_out(atoi(argv[2]));
    execv(real, argv);
    die(real);
}
