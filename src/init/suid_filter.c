/* suid_filter.c: which calls would set the setuid or setgid bit. */
#include "init/suid.h"

#include "base/macros.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/banned.h"

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#endif

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

/* For open: without these bits the mode is ignored. */
#define CREATES (O_CREAT | (O_TMPFILE & ~O_DIRECTORY))

enum { NO_FLAGS = -1 };

/* Which argument is the mode and, for calls that create only on request, which one says so. */
static const struct {
    unsigned number;
    int mode, flags;
} calls[] = {
#ifdef SYS_chmod
    { SYS_chmod, 1, NO_FLAGS },   { SYS_creat, 1, NO_FLAGS },    { SYS_mknod, 1, NO_FLAGS },
    { SYS_open, 2, 1 },
#endif
    { SYS_fchmod, 1, NO_FLAGS },  { SYS_fchmodat, 2, NO_FLAGS }, { SYS_fchmodat2, 2, NO_FLAGS },
    { SYS_mknodat, 2, NO_FLAGS }, { SYS_openat, 3, 2 },
};

#define ADD(...)                                                                                   \
    do {                                                                                           \
        const struct sock_filter code[] = { __VA_ARGS__ };                                         \
        memcpy(out + n, code, sizeof(code));                                                       \
        n += AGX_ARRAY_LEN(code);                                                                  \
    } while (0)
#define LOAD(at) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)(at))
/* The lower half of an argument: the kernel ignores the rest of modes and flags. */
#define LOAD_ARG(i) LOAD(offsetof(struct seccomp_data, args) + 8 * (size_t)(i))
#define IF_EQ(value, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, (skip))
#define IF_ANY(bits, skip) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (bits), 0, (skip))
#define RETURN(action) BPF_STMT(BPF_RET | BPF_K, (action))

/* Calls of other architectures are not covered: a native sandbox kills their callers; engines allow
 * both. */
size_t agx_suid_filter(uint32_t action, struct sock_filter out[SUID_FILTER_MAX])
{
    size_t n = 0;

    ADD(LOAD(offsetof(struct seccomp_data, arch)), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0),
        RETURN(SECCOMP_RET_ERRNO | ENOSYS), LOAD(offsetof(struct seccomp_data, nr)),
        IF_EQ(SYS_openat2, 1), RETURN(SECCOMP_RET_ERRNO | ENOSYS), IF_EQ(SYS_io_uring_setup, 1),
        RETURN(SECCOMP_RET_ERRNO | ENOSYS));
#ifdef __X32_SYSCALL_BIT
    ADD(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, __X32_SYSCALL_BIT, 0, 1),
        RETURN(SECCOMP_RET_ERRNO | ENOSYS));
#endif
    for (size_t i = 0; i < AGX_ARRAY_LEN(calls); i++) {
        const bool asks = calls[i].flags != NO_FLAGS;

        ADD(IF_EQ(calls[i].number, asks ? 6 : 4));
        if (asks)
            ADD(LOAD_ARG(calls[i].flags), IF_ANY(CREATES, 3));
        ADD(LOAD_ARG(calls[i].mode), IF_ANY(SUID_BITS, 1), RETURN(action),
            RETURN(SECCOMP_RET_ALLOW));
    }
    ADD(RETURN(SECCOMP_RET_ALLOW));
    return n;
}

bool agx_suid_forbid(void)
{
    struct sock_filter code[SUID_FILTER_MAX];
    const struct sock_fprog prog = {
        .len = (unsigned short)agx_suid_filter(SECCOMP_RET_ERRNO | EPERM, code), .filter = code
    };

    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) == 0;
}
