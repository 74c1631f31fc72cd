/*
 * caps.h: the capabilities of a sandbox's root in its own user namespace: what package managers and
 * servers need, and nothing that reaches the kernel itself. docs/design/native.md ("Powers") has
 * the reasons.
 */
#ifndef AGX_BACKEND_NATIVE_LIMITS_CAPS_H
#define AGX_BACKEND_NATIVE_LIMITS_CAPS_H

#include <stdint.h>

/* Bit n is capability number n. Bounding, permitted and effective set of a main process or command
 * that runs as root; for any other user only the bounding set. */
uint64_t agx_caps_kept(void);

/* Those that allow making files which give power to whoever runs or opens them: not granted where
 * the host sees the file. */
uint64_t agx_caps_of_files(void);

#endif
