/* macros.h: the few macros that every file may use. */
#ifndef AGX_BASE_MACROS_H
#define AGX_BASE_MACROS_H

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

/* The object that contains member `m` of type `type` at `ptr`. */
#define container_of(ptr, type, m) ((type *)(void *)((char *)(ptr)-offsetof(type, m)))

#define AGX_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define AGX_MIN(a, b) ((a) < (b) ? (a) : (b))
#define AGX_MAX(a, b) ((a) > (b) ? (a) : (b))

#define AGX_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#define AGX_MUST_CHECK __attribute__((warn_unused_result))

/* Moves ownership out of a variable: yields its value and sets it to NULL (or -1). */
#define AGX_TAKE_PTR(p)                                                                            \
    __extension__({                                                                                \
        __typeof__(p) *agx_take_at_ = &(p);                                                        \
        __typeof__(p) agx_take_val_ = *agx_take_at_;                                               \
        *agx_take_at_ = NULL;                                                                      \
        agx_take_val_;                                                                             \
    })
#define AGX_TAKE_FD(fd)                                                                            \
    __extension__({                                                                                \
        int *agx_take_at_ = &(fd);                                                                 \
        int agx_take_val_ = *agx_take_at_;                                                         \
        *agx_take_at_ = -1;                                                                        \
        agx_take_val_;                                                                             \
    })

/* Runs `fn(&variable)` when the variable goes out of scope; initialise it at its declaration. */
#define _cleanup_(fn) __attribute__((cleanup(fn)))

static inline void agx_freep(void *p)
{
    free(*(void **)p);
}

/* Keeps errno, so that an error path can close before it reports. */
static inline void agx_closep(int *fd)
{
    int saved = errno;

    if (*fd >= 0)
        (void)close(*fd);
    errno = saved;
}

#define _cleanup_free_ _cleanup_(agx_freep)
#define _cleanup_close_ _cleanup_(agx_closep)

#endif
