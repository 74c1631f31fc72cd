/*
 * threads.c: replaces pthread_create(), to detect threads.
 *
 * The dynamic linker looks for a function in the program first, so calls from libraries also come
 * here. Sanitizers replace the same function: in their builds this file is empty and detects
 * nothing.
 */
#include "tests/support/threads.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static atomic_bool started;

#if defined(TEST_NOTICES_THREADS)
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>

typedef int (*create_fn)(pthread_t *id, const pthread_attr_t *attr, void *(*run)(void *),
                         void *user);

__attribute__((visibility("default"))) int pthread_create(pthread_t *restrict id,
                                                          const pthread_attr_t *restrict attr,
                                                          void *(*run)(void *), void *restrict user)
{
    /* ISO C has no conversion from an object pointer to a function pointer. */
    union {
        void *symbol;
        create_fn call;
    } real = { .symbol = dlsym(RTLD_NEXT, "pthread_create") };

    atomic_store(&started, true);
    return real.symbol ? real.call(id, attr, run, user) : ENOSYS;
}
#endif

bool agx_test_threads_check(void)
{
    const char *expected = getenv("AGX_TEST_THREADS");

    if (!atomic_load(&started) || !expected || strcmp(expected, "0") != 0)
        return true;
    printf("# this program starts threads: add it to the suite `threads` in its meson.build, so "
           "that `make tsan` runs it\n");
    return false;
}
