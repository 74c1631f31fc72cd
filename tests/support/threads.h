/* threads.h: detects whether a C test program has started a thread. */
#ifndef AGX_TESTS_THREADS_H
#define AGX_TESTS_THREADS_H

#include <stdbool.h>

/*
 * Detects programs that `make tsan` would miss. Returns false and prints a message if this program
 * has started a thread although AGX_TEST_THREADS is 0, which means that ThreadSanitizer does not
 * run it (tests/meson.build sets it for tests outside the suite `threads`). Threads of child
 * processes do not count.
 */
bool agx_test_threads_check(void);

#endif
