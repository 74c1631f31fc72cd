/* threads.h: whether a C test program has started a thread. */
#ifndef AGX_TESTS_THREADS_H
#define AGX_TESTS_THREADS_H

#include <stdbool.h>

/*
 * Prints which programs `make tsan` would miss: false when this program has started a thread, and
 * AGX_TEST_THREADS=0 says that ThreadSanitizer does not run it (tests/meson.build sets it for what
 * is not in the suite `threads`). Threads of child processes do not count.
 */
bool agx_test_threads_check(void);

#endif
