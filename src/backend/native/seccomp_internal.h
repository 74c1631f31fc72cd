/* seccomp_internal.h: the list, apart from what makes a filter of it. */
#ifndef AGX_BACKEND_NATIVE_SECCOMP_INTERNAL_H
#define AGX_BACKEND_NATIVE_SECCOMP_INTERNAL_H

#include <stddef.h>

/* Names separated by blanks; some are unknown to one architecture or the other. */
extern const char agx_seccomp_allowed[];

struct agx_seccomp_refusal {
    const char *names;
    int fault; /* the errno that the caller sees */
};

extern const struct agx_seccomp_refusal agx_seccomp_refusals[];
extern const size_t agx_seccomp_n_refusals;

#endif
