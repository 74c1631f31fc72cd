/*
 * Asks the filter for its answer to each call (tests/support/bpf.h), without making the call. Then
 * loads the filter into the kernel.
 */
#include "backend/native/limits/seccomp.h"

#include "backend/native/limits/caps.h"
#include "backend/native/limits/seccomp_internal.h"
#include "tests/support/bpf.h"

#include <linux/capability.h>
#include <linux/sched.h>
#include <sched.h>
#include <seccomp.h>
#include <stdlib.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

struct program {
    struct agx_buf bytes;
};

static void compile(struct program *p)
{
    p->bytes = (struct agx_buf)AGX_BUF_INIT(AGX_SECCOMP_BYTES_MAX);
    ASSERT_OK(agx_seccomp_compile(&p->bytes, NULL));
    ASSERT_UINT(0, p->bytes.len % sizeof(struct sock_filter));
}

/* What the kernel would do. */
static uint32_t verdict(const struct program *p, const struct seccomp_data *data)
{
    return test_bpf_run((const void *)p->bytes.data, p->bytes.len / sizeof(struct sock_filter),
                        data);
}

static uint32_t says(const struct program *p, int number, uint64_t first)
{
    const struct seccomp_data data = { .nr = number, .arch = TEST_BPF_ARCH, .args = { first } };

    return verdict(p, &data);
}

/* Calls `each` for every name of the list that this architecture has. */
static size_t expect(const struct program *p, const char *names, uint32_t want)
{
    struct agx_str rest = agx_str_from(names), word;
    size_t n = 0;

    while (agx_str_split(&rest, ' ', &word)) {
        char *name = agx_str_dup(word);
        int number = seccomp_syscall_resolve_name(name);
        uint32_t got = number >= 0 ? says(p, number, 0) : want;

        if (got != want)
            FAIL("%s: %#x, expected %#x", name, got, want);
        free(name);
        n += number >= 0;
    }
    return n;
}

TEST(filter_allows_what_is_on_the_list)
{
    struct program p;

    compile(&p);
    ASSERT_TRUE(expect(&p, agx_seccomp_allowed, SECCOMP_RET_ALLOW) > 200);
    agx_buf_done(&p.bytes);
}

TEST(filter_refuses_each_refused_call_with_its_errno)
{
    struct program p;

    compile(&p);
    for (size_t i = 0; i < agx_seccomp_n_refusals; i++)
        ASSERT_TRUE(expect(&p, agx_seccomp_refusals[i].names,
                           TEST_BPF_REFUSED(agx_seccomp_refusals[i].fault)) > 0);
    agx_buf_done(&p.bytes);
}

/* Whatever becomes of the lists: these have let somebody out of a container before. */
TEST(filter_refuses_the_ways_out)
{
    static const int never[] = {
        SYS_mount,       SYS_umount2,     SYS_pivot_root,      SYS_open_tree,
        SYS_move_mount,  SYS_fsopen,      SYS_mount_setattr,   SYS_setns,
        SYS_bpf,         SYS_keyctl,      SYS_add_key,         SYS_request_key,
        SYS_userfaultfd, SYS_init_module, SYS_finit_module,    SYS_open_by_handle_at,
        SYS_kexec_load,  SYS_syslog,      SYS_perf_event_open, SYS_reboot,
        SYS_swapon,      SYS_acct,        SYS_settimeofday,    SYS_pidfd_getfd,
    };
    struct program p;

    compile(&p);
    for (size_t i = 0; i < AGX_ARRAY_LEN(never); i++)
        ASSERT_UINT(TEST_BPF_REFUSED(EPERM), says(&p, never[i], 0));
    ASSERT_UINT(TEST_BPF_REFUSED(ENOSYS), says(&p, SYS_clone3, 0));
    ASSERT_UINT(TEST_BPF_REFUSED(ENOSYS), says(&p, SYS_io_uring_setup, 0));
    ASSERT_UINT(TEST_BPF_REFUSED(ENOSYS), says(&p, SYS_io_setup, 1));
    agx_buf_done(&p.bytes);
}

TEST(filter_refuses_new_namespaces_and_allows_threads)
{
    static const unsigned kinds[] = { CLONE_NEWNS,   CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
                                      CLONE_NEWUSER, CLONE_NEWPID,    CLONE_NEWNET };
    const unsigned thread = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
                            CLONE_SYSVSEM | CLONE_SETTLS | CLONE_PARENT_SETTID |
                            CLONE_CHILD_CLEARTID;
    struct program p;

    compile(&p);
    ASSERT_UINT(SECCOMP_RET_ALLOW, says(&p, SYS_clone, SIGCHLD));
    ASSERT_UINT(SECCOMP_RET_ALLOW, says(&p, SYS_clone, thread));
    ASSERT_UINT(SECCOMP_RET_ALLOW, says(&p, SYS_unshare, CLONE_FILES | CLONE_FS));
    for (size_t i = 0; i < AGX_ARRAY_LEN(kinds); i++) {
        ASSERT_UINT(TEST_BPF_REFUSED(EPERM), says(&p, SYS_clone, kinds[i] | SIGCHLD));
        ASSERT_UINT(TEST_BPF_REFUSED(EPERM), says(&p, SYS_clone, kinds[i] | thread));
        ASSERT_UINT(TEST_BPF_REFUSED(EPERM), says(&p, SYS_unshare, kinds[i]));
        ASSERT_UINT(TEST_BPF_REFUSED(EPERM), says(&p, SYS_unshare, UINT64_C(1) << 40 | kinds[i]));
    }
    ASSERT_UINT(TEST_BPF_REFUSED(EPERM), says(&p, SYS_unshare, CLONE_NEWTIME));
    agx_buf_done(&p.bytes);
}

TEST(filter_allows_sockets_of_common_families_only)
{
    struct program p;

    compile(&p);
    for (unsigned family = 0; family < AF_MAX; family++) {
        bool common =
            family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK;

        ASSERT_UINT(common ? SECCOMP_RET_ALLOW : TEST_BPF_REFUSED(EAFNOSUPPORT),
                    says(&p, SYS_socket, family));
    }
    /* The kernel looks at 32 bits: those above must not hide a family. */
    ASSERT_UINT(TEST_BPF_REFUSED(ENOSYS), says(&p, SYS_socket, UINT64_C(1) << 32 | AF_VSOCK));
    agx_buf_done(&p.bytes);
}

TEST(filter_allows_a_few_personalities)
{
    struct program p;

    compile(&p);
    ASSERT_UINT(SECCOMP_RET_ALLOW, says(&p, SYS_personality, 0xffffffff));
    ASSERT_UINT(SECCOMP_RET_ALLOW, says(&p, SYS_personality, ADDR_NO_RANDOMIZE));
    ASSERT_UINT(TEST_BPF_REFUSED(ENOSYS), says(&p, SYS_personality, READ_IMPLIES_EXEC));
    ASSERT_UINT(TEST_BPF_REFUSED(ENOSYS), says(&p, SYS_personality, MMAP_PAGE_ZERO));
    agx_buf_done(&p.bytes);
}

TEST(filter_allows_limits_of_the_caller_itself_only)
{
    static const uint64_t others[] = { 1, 2, 0x7fffffff, 0xffffffff, UINT64_MAX };
    struct program p;

    compile(&p);
    ASSERT_UINT(SECCOMP_RET_ALLOW, says(&p, SYS_prlimit64, 0));
    for (size_t i = 0; i < AGX_ARRAY_LEN(others); i++)
        ASSERT_UINT(TEST_BPF_REFUSED(EPERM), says(&p, SYS_prlimit64, others[i]));
    for (unsigned bit = 0; bit < 64; bit++)
        ASSERT_UINT(TEST_BPF_REFUSED(EPERM), says(&p, SYS_prlimit64, UINT64_C(1) << bit));
    agx_buf_done(&p.bytes);
}

TEST(filter_lets_calls_that_it_does_not_know_be_absent)
{
    struct program p;

    compile(&p);
    for (int number = 480; number < 2000; number += 7)
        ASSERT_UINT(TEST_BPF_REFUSED(ENOSYS), says(&p, number, 0));
    agx_buf_done(&p.bytes);
}

TEST(filter_ends_a_process_that_uses_other_numbers)
{
    const struct seccomp_data old = { .nr = 20, .arch = AUDIT_ARCH_I386 };
    struct program p;

    compile(&p);
    ASSERT_UINT(SECCOMP_RET_KILL_PROCESS, verdict(&p, &old));
#if defined(__x86_64__)
    /* x32: the bit __X32_SYSCALL_BIT */
    ASSERT_UINT(SECCOMP_RET_KILL_PROCESS, says(&p, 0x40000000 | SYS_getpid, 0));
#endif
    agx_buf_done(&p.bytes);
}

TEST(filter_into_a_buffer_that_is_too_small_is_an_error)
{
    _cleanup_buf_ struct agx_buf small = AGX_BUF_INIT(16);
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;

    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_seccomp_compile(&small, &err));
    ASSERT_UINT(0, small.len);
}

/* -- the kernel takes it */

static void install(const struct program *p)
{
    const struct sock_fprog prog = {
        .len = (unsigned short)(p->bytes.len / sizeof(struct sock_filter)),
        .filter = (void *)p->bytes.data,
    };

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0)
        _exit(99);
}

TEST(process_under_the_filter_sees_the_errors)
{
    struct rlimit limit;
    struct program p;
    int status;
    pid_t child;

    compile(&p);
    child = fork();
    if (child == 0) {
        install(&p);
        if (unshare(CLONE_NEWUSER) == 0 || errno != EPERM)
            _exit(1);
        if (socket(AF_VSOCK, SOCK_STREAM, 0) >= 0 || errno != EAFNOSUPPORT)
            _exit(2);
        if (syscall(SYS_keyctl, 0, 0, 0) >= 0 || errno != EPERM)
            _exit(3);
        if (syscall(SYS_clone3, NULL, 0) >= 0 || errno != ENOSYS)
            _exit(4);
        if (prlimit(0, RLIMIT_CORE, NULL, &limit) < 0)
            _exit(5);
        if (prlimit(getpid(), RLIMIT_CORE, NULL, &limit) == 0 || errno != EPERM)
            _exit(6);
        _exit(socket(AF_UNIX, SOCK_STREAM, 0) >= 0 ? 0 : 7);
    }
    ASSERT_TRUE(child > 0);
    ASSERT_INT(child, waitpid(child, &status, 0));
    ASSERT_TRUE(WIFEXITED(status));
    ASSERT_INT(0, WEXITSTATUS(status));
    agx_buf_done(&p.bytes);
}

/* -- capabilities */

TEST(caps_have_nothing_that_reaches_the_host)
{
    static const int never[] = { CAP_SYS_ADMIN,       CAP_SYS_PTRACE,    CAP_SYS_MODULE,
                                 CAP_NET_ADMIN,       CAP_NET_RAW,       CAP_MKNOD,
                                 CAP_SYS_RAWIO,       CAP_SYS_BOOT,      CAP_SYS_TIME,
                                 CAP_SYSLOG,          CAP_BPF,           CAP_PERFMON,
                                 CAP_AUDIT_WRITE,     CAP_AUDIT_CONTROL, CAP_SYS_RESOURCE,
                                 CAP_DAC_READ_SEARCH, CAP_MAC_ADMIN,     CAP_CHECKPOINT_RESTORE };

    for (size_t i = 0; i < AGX_ARRAY_LEN(never); i++)
        ASSERT_FALSE(agx_caps_kept() >> never[i] & 1);
    ASSERT_INT(11, __builtin_popcountll(agx_caps_kept()));
    ASSERT_TRUE(agx_caps_kept() >> CAP_CHOWN & 1);
}
