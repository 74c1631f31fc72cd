/*
 * mem.h: small allocations in our own programs, which abort the process without memory, since an
 * untested error path for each would be worse. Never use them in base/, codec/ or the SDK, and
 * never for a size that a peer chose.
 */
#ifndef AGX_BASE_MEM_H
#define AGX_BASE_MEM_H

#include <stdlib.h>

static inline void *agx_alloc(size_t n)
{
    void *p = calloc(1, n);

    if (!p)
        abort();
    return p;
}

/* A zeroed object of that type. */
#define agx_new(type) ((type *)agx_alloc(sizeof(type)))

#endif
