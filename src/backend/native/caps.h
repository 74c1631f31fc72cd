/*
 * caps.h: the capabilities that root of a sandbox has over its own user namespace: what package
 * managers and servers need, and nothing that reaches the kernel itself. docs/design/native.md
 * ("Powers") has the reasons.
 */
#ifndef AGX_BACKEND_NATIVE_CAPS_H
#define AGX_BACKEND_NATIVE_CAPS_H

#include <stdint.h>

/* Bit n stands for capability number n: bounding, permitted and effective set of a main process or
 * command that runs as root; for any other user only the bounding set. */
uint64_t agx_caps_kept(void);

/* Those by which a file is made that gives power to who runs or opens it: not where the host sees
 * the file. */
uint64_t agx_caps_of_files(void);

#endif
