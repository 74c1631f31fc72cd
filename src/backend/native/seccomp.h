/*
 * seccomp.h: the system calls that a sandbox may make, as a filter for the kernel.
 *
 * An allow-list: what ordinary programs use. What is refused on purpose (mounts, new namespaces,
 * keys, bpf, modules, ...) fails with EPERM; clone3 and calls that are newer than the list fail
 * with ENOSYS, so that libraries fall back on what they did before; calls of another architecture's
 * numbers end the process. docs/design/native.md ("Powers") has the reasons.
 */
#ifndef AGX_BACKEND_NATIVE_SECCOMP_H
#define AGX_BACKEND_NATIVE_SECCOMP_H

#include "base/buf.h"

/* More than the kernel takes: 4096 instructions of 8 bytes. */
#define AGX_SECCOMP_BYTES_MAX 32768

/*
 * Appends the filter, an array of struct sock_filter, to `out` (of max AGX_SECCOMP_BYTES_MAX or
 * more). Takes some milliseconds: once, when the backend opens. The same for all sandboxes.
 */
int agx_seccomp_compile(struct agx_buf *out, struct agx_error **err) AGX_MUST_CHECK;

#endif
