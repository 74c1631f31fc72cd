/*
 * driver.h: a program of the integration tests that carries out the commands on its standard input,
 * one per line, and answers each with a line: "ok" and the result, or the error. Its loop ends when
 * the input has ended and the program has no handle left on it.
 */
#ifndef AGX_TESTS_DRIVER_H
#define AGX_TESTS_DRIVER_H

#include "loop/loop.h"

#include <uv.h>

enum { TEST_DRIVER_WORDS = 64 };

struct test_driver {
    struct agx_loop *loop;
    void (*line)(char *line); /* carries out a line and answers; may change it */
    void (*end)(void);        /* end of the input: closes all handles on the loop */
    uv_pipe_t in;
    char text[1 << 16];
    size_t len;
};

/* Answers with the error, or with these words. Takes the error. */
void test_driver_say(const char *what, struct agx_error *error);
/* Ends the program if a line is wrong, since that is a mistake in the test. */
void test_driver_must(bool good, const char *what);
/* Splits a line into words and returns their number; missing words are empty. */
size_t test_driver_split(char *line, char *ret_words[TEST_DRIVER_WORDS]);

/* Runs the loop to its end and closes it. Returns the exit status. */
int test_driver_run(struct test_driver *d);

#endif
