/* test.c: main() of every C test program: runs the registered tests and prints TAP. */
#include "tests/support/test.h"

#include "tests/support/threads.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct agx_test *first, **last = &first;
static jmp_buf back; /* jumps from a failed test to run_one() */
enum outcome { PASSED, FAILED, SKIPPED };

void agx_test_register(struct agx_test *t)
{
    *last = t;
    last = &t->next;
}

void agx_test_fail(const char *file, int line, const char *fmt, ...)
{
    va_list ap;

    printf("# %s:%d: ", file, line);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf("\n");
    fflush(stdout);
    longjmp(back, FAILED);
}

void agx_test_skip(const char *file, int line, const char *why)
{
    const char *must = getenv("AGX_MUST_WORK");

    printf("# %s:%d: cannot run here: %s\n", file, line, why);
    longjmp(back, must && strcmp(must, "1") == 0 ? FAILED : SKIPPED);
}

static void print_bytes(const char *what, struct agx_str s)
{
    printf("#   %s (%zu bytes): ", what, s.len);
    for (size_t i = 0; i < s.len && i < 400; i++) {
        unsigned char c = (unsigned char)s.ptr[i];

        if (c >= 0x20 && c < 0x7f && c != '\\')
            printf("%c", c);
        else
            printf("\\x%02x", c);
    }
    printf("%s\n", s.len > 400 ? "..." : "");
}

void agx_test_eq_str(const char *file, int line, const char *expr, struct agx_str want,
                     struct agx_str got)
{
    if (agx_str_eq(want, got))
        return;
    print_bytes("expected", want);
    print_bytes("got", got);
    agx_test_fail(file, line, "%s differs", expr);
}

static enum outcome run_one(struct agx_test *t)
{
    int how = setjmp(back);

    if (how != 0)
        return (enum outcome)how;
    t->run();
    return PASSED;
}

static bool wanted(const struct agx_test *t, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strstr(t->name, argv[i]))
            return true;
    }
    return argc < 2;
}

int main(int argc, char **argv)
{
    int number = 0, failed = 0;

    for (struct agx_test *t = first; t; t = t->next) {
        enum outcome how;

        if (!wanted(t, argc, argv))
            continue;
        how = run_one(t);
        printf("%sok %d - %s%s\n", how == FAILED ? "not " : "", ++number, t->name,
               how == SKIPPED ? " # SKIP" : "");
        fflush(stdout);
        failed += how == FAILED;
    }
    if (!agx_test_threads_check()) {
        printf("not ok %d - a program with threads is in the suite threads\n", ++number);
        failed++;
    }
    printf("1..%d\n", number);
    return failed > 0 || number == 0;
}
