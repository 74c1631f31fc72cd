/* The filter that reports calls which would set the setuid or setgid bit. */
#include "init/suid.h"

#include "base/macros.h"
#include "tests/support/bpf.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

static uint32_t says(int number, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    const struct seccomp_data data = { .nr = number,
                                       .arch = TEST_BPF_ARCH,
                                       .args = { a, b, c, d } };
    struct sock_filter code[SUID_FILTER_MAX];
    size_t n = agx_suid_filter(SECCOMP_RET_USER_NOTIF, code);

    ASSERT_TRUE(n > 0 && n <= SUID_FILTER_MAX);
    return test_bpf_run(code, n, &data);
}

/* The answer to a call whose mode is argument `at`, the others being 0 but `flags` before it. */
static uint32_t says_mode(int number, unsigned at, uint64_t flags, uint64_t mode)
{
    uint64_t args[5] = { 0 };

    args[at] = mode;
    args[at - 1] = flags;
    return says(number, args[0], args[1], args[2], args[3]);
}

static void expect_mode(int number, unsigned at, uint64_t flags)
{
    static const unsigned set[] = { 04000, 02000, 06000, 04755, 02755, 07777 },
                          unset[] = { 0, 0755, 01777, 0777 };

    for (size_t i = 0; i < AGX_ARRAY_LEN(set); i++) {
        ASSERT_UINT(SECCOMP_RET_USER_NOTIF, says_mode(number, at, flags, set[i]));
        ASSERT_UINT(SECCOMP_RET_USER_NOTIF,
                    says_mode(number, at, flags, UINT64_C(0xdead) << 32 | set[i]));
    }
    for (size_t i = 0; i < AGX_ARRAY_LEN(unset); i++) {
        ASSERT_UINT(SECCOMP_RET_ALLOW, says_mode(number, at, flags, unset[i]));
        /* The kernel does not look there. */
        ASSERT_UINT(SECCOMP_RET_ALLOW,
                    says_mode(number, at, flags, UINT64_C(04755) << 32 | unset[i]));
    }
}

TEST(suid_filter_hears_of_modes_with_the_bits)
{
#ifdef SYS_chmod
    expect_mode(SYS_chmod, 1, 0);
    expect_mode(SYS_creat, 1, 0);
    expect_mode(SYS_mknod, 1, 0);
#endif
    expect_mode(SYS_fchmod, 1, 0);
    expect_mode(SYS_fchmodat, 2, 0);
    expect_mode(SYS_fchmodat2, 2, 0);
    expect_mode(SYS_mknodat, 2, 0);
}

TEST(suid_filter_hears_of_files_that_are_made_with_them)
{
    static const int makes[] = { O_CREAT, O_TMPFILE, O_CREAT | O_EXCL | O_WRONLY,
                                 O_TMPFILE & ~O_DIRECTORY };

    for (size_t i = 0; i < AGX_ARRAY_LEN(makes); i++) {
#ifdef SYS_open
        expect_mode(SYS_open, 2, (uint64_t)makes[i]);
#endif
        expect_mode(SYS_openat, 3, (uint64_t)makes[i]);
    }
    /* What is not made has no mode, whatever stands in the register. */
    ASSERT_UINT(SECCOMP_RET_ALLOW, says_mode(SYS_openat, 3, O_RDWR | O_DIRECTORY, 07777));
    ASSERT_UINT(SECCOMP_RET_ALLOW, says_mode(SYS_openat, 3, O_RDWR | O_TRUNC, 07777));
}

TEST(suid_filter_knows_neither_openat2_nor_io_uring_and_allows_all_others)
{
    ASSERT_UINT(TEST_BPF_REFUSED(ENOSYS), says(SYS_openat2, 0, 0, 0, 0));
    ASSERT_UINT(TEST_BPF_REFUSED(ENOSYS), says(SYS_io_uring_setup, 0, 0, 0, 0));
    for (int number = 0; number < 460; number++) {
        if (number != SYS_openat2 && number != SYS_io_uring_setup)
            ASSERT_UINT(SECCOMP_RET_ALLOW, says(number, 0, 0, 0, 0));
    }
    ASSERT_UINT(SECCOMP_RET_ALLOW, says(SYS_write, 04755, 04755, 04755, 04755));
    ASSERT_UINT(SECCOMP_RET_ALLOW, says(SYS_mkdirat, 0, 0, 06755, 06755));
}

TEST(suid_filter_refuses_the_numbers_of_other_tables)
{
    const struct seccomp_data old = { .nr = 15, .arch = AUDIT_ARCH_I386, .args = { 0, 04755 } };
    struct sock_filter code[SUID_FILTER_MAX];
    size_t n = agx_suid_filter(SECCOMP_RET_USER_NOTIF, code);

    ASSERT_UINT(TEST_BPF_REFUSED(ENOSYS), test_bpf_run(code, n, &old));
#if defined(__x86_64__)
    ASSERT_UINT(TEST_BPF_REFUSED(ENOSYS), says(0x40000000 | SYS_chmod, 0, 04755, 0, 0));
#endif
}

TEST(suid_filter_has_the_answer_that_was_asked_for)
{
    const struct seccomp_data data = { .nr = SYS_fchmod,
                                       .arch = TEST_BPF_ARCH,
                                       .args = { 0, 04755 } };
    struct sock_filter code[SUID_FILTER_MAX];
    size_t n = agx_suid_filter(TEST_BPF_REFUSED(EPERM), code);

    ASSERT_UINT(TEST_BPF_REFUSED(EPERM), test_bpf_run(code, n, &data));
}
