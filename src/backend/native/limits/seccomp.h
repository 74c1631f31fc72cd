/*
 * seccomp.h: the system calls that a sandbox may make, as a seccomp filter.
 *
 * It is an allow-list of what ordinary programs use. Deliberately refused calls (mounts, new
 * namespaces, keys, bpf, modules, ...) fail with EPERM. clone3 and calls newer than the list fail
 * with ENOSYS, so that libraries fall back to older ones. Calls by another architecture's numbers
 * kill the process. docs/design/native.md ("Powers") has the reasons.
 */
#ifndef AGX_BACKEND_NATIVE_LIMITS_SECCOMP_H
#define AGX_BACKEND_NATIVE_LIMITS_SECCOMP_H

#include "base/buf.h"

/* The kernel's limit: 4096 instructions of 8 bytes. */
#define AGX_SECCOMP_BYTES_MAX 32768

/*
 * Appends the filter, an array of struct sock_filter, to `out` (of max AGX_SECCOMP_BYTES_MAX or
 * more). Takes some milliseconds; done once when the backend opens. The same filter for all
 * sandboxes.
 */
int agx_seccomp_compile(struct agx_buf *out, struct agx_error **err) AGX_MUST_CHECK;

#endif
