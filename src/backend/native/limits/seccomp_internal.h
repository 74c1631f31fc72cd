/* seccomp_internal.h: the list, separate from the code that compiles it. */
#ifndef AGX_BACKEND_NATIVE_LIMITS_SECCOMP_INTERNAL_H
#define AGX_BACKEND_NATIVE_LIMITS_SECCOMP_INTERNAL_H

#include <stddef.h>

/* Names separated by blanks; some exist only on one architecture. */
extern const char agx_seccomp_allowed[];

struct agx_seccomp_refusal {
    const char *names;
    int fault; /* the errno that the caller sees */
};

extern const struct agx_seccomp_refusal agx_seccomp_refusals[];
extern const size_t agx_seccomp_n_refusals;

#endif
