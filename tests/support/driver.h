/*
 * driver.h: a program of the integration tests that does what the lines on its standard input say,
 * and answers each by a line: "ok", with what there is to tell, or the error. Its loop ends when
 * the input has ended and nothing of the program is left on it.
 */
#ifndef AGX_TESTS_DRIVER_H
#define AGX_TESTS_DRIVER_H

#include "loop/loop.h"

#include <uv.h>

enum { TEST_DRIVER_WORDS = 64 };

struct test_driver {
    struct agx_loop *loop;
    void (*line)(char *line); /* may be written to; it answers */
    void (*end)(void);        /* of the input: whatever keeps the loop running is to be closed */
    uv_pipe_t in;
    char text[1 << 16];
    size_t len;
};

/* Answers: the error, or these words. Takes the error. */
void test_driver_say(const char *what, struct agx_error *error);
/* A line that makes no sense is the test's own mistake: it ends the program. */
void test_driver_must(bool good, const char *what);
/* Cuts a line into words, all that are missing empty; returns how many there are. */
size_t test_driver_split(char *line, char *ret_words[TEST_DRIVER_WORDS]);

/* Reads and runs the loop to its end, and closes it. Returns what to exit with. */
int test_driver_run(struct test_driver *d);

#endif
