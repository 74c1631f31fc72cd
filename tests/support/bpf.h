/*
 * bpf.h: interprets the few instructions of system call filters, so that a test sees the filter's
 * answer on any kernel, without making the call.
 */
#ifndef AGX_TESTS_BPF_H
#define AGX_TESTS_BPF_H

#include "tests/support/test.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#if defined(__x86_64__)
#define TEST_BPF_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define TEST_BPF_ARCH AUDIT_ARCH_AARCH64
#endif

#define TEST_BPF_REFUSED(fault) (SECCOMP_RET_ERRNO | (unsigned)(fault))

static inline bool test_bpf_jumps(const struct sock_filter *i, uint32_t a)
{
    switch (BPF_OP(i->code)) {
    case BPF_JEQ:
        return a == i->k;
    case BPF_JGT:
        return a > i->k;
    case BPF_JGE:
        return a >= i->k;
    case BPF_JSET:
        return (a & i->k) != 0;
    default:
        FAIL("jump %#x", i->code);
    }
}

/* Returns the filter's answer, as the kernel would compute it. */
static inline uint32_t test_bpf_run(const struct sock_filter *code, size_t n,
                                    const struct seccomp_data *data)
{
    uint32_t a = 0;

    for (size_t at = 0; at < n; at++) {
        const struct sock_filter *i = &code[at];

        switch (BPF_CLASS(i->code)) {
        case BPF_LD:
            ASSERT_UINT(BPF_LD | BPF_W | BPF_ABS, i->code);
            ASSERT_TRUE(i->k % 4 == 0 && i->k < sizeof(*data));
            memcpy(&a, (const char *)data + i->k, sizeof(a));
            break;
        case BPF_ALU:
            ASSERT_UINT(BPF_ALU | BPF_AND | BPF_K, i->code);
            a &= i->k;
            break;
        case BPF_JMP:
            if (BPF_OP(i->code) == BPF_JA)
                at += i->k;
            else
                at += test_bpf_jumps(i, a) ? i->jt : i->jf;
            break;
        case BPF_RET:
            return i->k;
        default:
            FAIL("instruction %#x", i->code);
        }
    }
    FAIL("the program does not end");
}

#endif
