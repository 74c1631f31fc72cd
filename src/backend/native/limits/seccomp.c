/*
 * seccomp.c: compiles the list to a filter with libseccomp.
 *
 * Where one argument value is allowed, all 64 bits are compared: a value that differs in bits that
 * the kernel ignores is then refused, never allowed.
 */
#include "backend/native/limits/seccomp.h"

#include "backend/native/limits/seccomp_internal.h"
#include "base/fd.h"

#include <linux/sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/socket.h>

#include "base/banned.h"

/* A call on no list is newer than the list: it is reported as missing. */
#define DEFAULT_FAULT ENOSYS

enum { NAME_SIZE = 40 };

/* The namespaces that clone and unshare can make. CLONE_NEWTIME is only for unshare: for clone
 * those bits are the exit signal. */
static const unsigned namespaces[] = { CLONE_NEWNS,   CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
                                       CLONE_NEWUSER, CLONE_NEWPID,    CLONE_NEWNET };

static int failed(int r, const char *what, struct agx_error **err)
{
    return agx_error_errno(err, -r, "system call filter: %s", what);
}

static int add_word(scmp_filter_ctx ctx, uint32_t action, struct agx_str word,
                    struct agx_error **err)
{
    char name[NAME_SIZE];
    int number;
    int r;

    (void)snprintf(name, sizeof(name), "%.*s", AGX_STR_ARG(word));
    number = seccomp_syscall_resolve_name(name);
    if (number == __NR_SCMP_ERROR)
        return agx_error_set(err, AGX_INTERNAL, "system call filter: libseccomp does not know '%s'",
                             name);
    if (number < 0)
        return 0; /* a call of another architecture */
    r = seccomp_rule_add(ctx, action, number, 0);
    return r < 0 ? failed(r, name, err) : 0;
}

static int add_names(scmp_filter_ctx ctx, uint32_t action, const char *names,
                     struct agx_error **err)
{
    struct agx_str rest = agx_str_from(names), word;

    while (agx_str_split(&rest, ' ', &word)) {
        int r = word.len > 0 ? add_word(ctx, action, word, err) : 0;

        if (r < 0)
            return r;
    }
    return 0;
}

/* Allowed with none of these bits in its first argument; otherwise EPERM. */
static int add_without_namespaces(scmp_filter_ctx ctx, int number, unsigned more,
                                  struct agx_error **err)
{
    unsigned all = more;
    int r = 0;

    for (size_t i = 0; i < AGX_ARRAY_LEN(namespaces); i++)
        all |= namespaces[i];
    for (unsigned bit = 1; r >= 0 && bit; bit <<= 1) {
        if (all & bit)
            r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), number, 1,
                                 SCMP_A0(SCMP_CMP_MASKED_EQ, bit, bit));
    }
    if (r >= 0)
        r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, number, 1, SCMP_A0(SCMP_CMP_MASKED_EQ, all, 0));
    return r < 0 ? failed(r, "namespaces", err) : 0;
}

/* The query, what gcc and gdb set (no address randomisation), and what `linux32` sets. Others would
 * make pages executable or allow mapping address 0. */
static int add_personality(scmp_filter_ctx ctx, struct agx_error **err)
{
    static const unsigned values[] = { 0xffffffff, PER_LINUX, PER_LINUX32, ADDR_NO_RANDOMIZE };
    int r = 0;

    for (size_t i = 0; r >= 0 && i < AGX_ARRAY_LEN(values); i++)
        r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(personality), 1,
                             SCMP_A0(SCMP_CMP_EQ, values[i]));
    return r < 0 ? failed(r, "personality", err) : 0;
}

/* Only the caller itself, as process 0: by number a process could change the limits of
 * agentix-init, which has the same user, and the filter cannot know the caller's own number. */
static int add_prlimit(scmp_filter_ctx ctx, struct agx_error **err)
{
    int r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(prlimit64), 1, SCMP_A0(SCMP_CMP_EQ, 0));

    if (r >= 0)
        r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(prlimit64), 1,
                             SCMP_A0(SCMP_CMP_NE, 0));
    return r < 0 ? failed(r, "prlimit64", err) : 0;
}

/* The other families reach past the network namespace (AF_VSOCK: the hypervisor), or are drivers
 * that an ordinary program never uses. */
static int add_socket(scmp_filter_ctx ctx, struct agx_error **err)
{
    int r = 0;

    for (int family = 0; r >= 0 && family < AF_MAX; family++) {
        bool common =
            family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK;

        r = seccomp_rule_add(ctx, common ? SCMP_ACT_ALLOW : SCMP_ACT_ERRNO(EAFNOSUPPORT),
                             SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)family));
    }
    return r < 0 ? failed(r, "socket", err) : 0;
}

static int add_all(scmp_filter_ctx ctx, struct agx_error **err)
{
    int r = add_names(ctx, SCMP_ACT_ALLOW, agx_seccomp_allowed, err);

    for (size_t i = 0; r >= 0 && i < agx_seccomp_n_refusals; i++) {
        const struct agx_seccomp_refusal *f = &agx_seccomp_refusals[i];

        /* libseccomp refuses a rule that repeats the default. */
        if (f->fault != DEFAULT_FAULT)
            r = add_names(ctx, SCMP_ACT_ERRNO((unsigned)f->fault), f->names, err);
    }
    if (r >= 0)
        r = add_without_namespaces(ctx, SCMP_SYS(clone), 0, err);
    if (r >= 0)
        r = add_without_namespaces(ctx, SCMP_SYS(unshare), CLONE_NEWTIME, err);
    if (r >= 0)
        r = add_personality(ctx, err);
    if (r >= 0)
        r = add_prlimit(ctx, err);
    return r < 0 ? r : add_socket(ctx, err);
}

static int export(scmp_filter_ctx ctx, struct agx_buf *out, struct agx_error **err)
{
    _cleanup_close_ int fd = memfd_create("seccomp", MFD_CLOEXEC);
    int r;

    if (fd < 0)
        return agx_error_errno(err, errno, "system call filter: memfd_create");
    r = seccomp_export_bpf(ctx, fd);
    if (r < 0)
        return failed(r, "export", err);
    if (lseek(fd, 0, SEEK_SET) < 0)
        return agx_error_errno(err, errno, "system call filter: lseek");
    return agx_fd_read_all(fd, out, err);
}

int agx_seccomp_compile(struct agx_buf *out, struct agx_error **err)
{
    scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(DEFAULT_FAULT));
    int r;

    if (!ctx)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "system call filter: out of memory");
    r = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    /* A binary tree: installing it in a sandbox takes a third of the time of a plain list. */
    if (r >= 0)
        r = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    r = r < 0 ? failed(r, "attributes", err) : add_all(ctx, err);
    if (r >= 0)
        r = export(ctx, out, err);
    seccomp_release(ctx);
    return r < 0 ? r : 0;
}
