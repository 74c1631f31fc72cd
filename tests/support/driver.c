/* driver.c: see driver.h. */
#include "tests/support/driver.h"

#include "base/macros.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void test_driver_say(const char *what, struct agx_error *error)
{
    char text[1024];

    (void)printf("%s\n", error ? agx_error_format(error, text, sizeof(text)) : what);
    (void)fflush(stdout);
    agx_error_free(error);
}

void test_driver_must(bool good, const char *what)
{
    if (good)
        return;
    (void)fprintf(stderr, "%s: cannot do '%s'\n", program_invocation_short_name, what);
    exit(2);
}

size_t test_driver_split(char *line, char *ret_words[TEST_DRIVER_WORDS])
{
    char *end = line + strlen(line), *save = NULL;
    size_t n = 0;

    for (size_t i = 0; i < TEST_DRIVER_WORDS; i++)
        ret_words[i] = end;
    for (char *w = strtok_r(line, " ", &save); w && n < TEST_DRIVER_WORDS;
         w = strtok_r(NULL, " ", &save))
        ret_words[n++] = w;
    return n;
}

static void on_alloc(uv_handle_t *h, size_t size, uv_buf_t *buf)
{
    struct test_driver *d = container_of((uv_pipe_t *)h, struct test_driver, in);

    (void)size;
    *buf = uv_buf_init(d->text + d->len, (unsigned)(sizeof(d->text) - 1 - d->len));
}

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
    struct test_driver *d = container_of((uv_pipe_t *)s, struct test_driver, in);
    char *end;

    (void)buf;
    if (n < 0) {
        uv_close((uv_handle_t *)s, NULL);
        d->end();
        return;
    }
    d->len += (size_t)n;
    d->text[d->len] = '\0';
    while ((end = strchr(d->text, '\n'))) {
        size_t used = (size_t)(end + 1 - d->text);

        *end = '\0';
        d->line(d->text);
        d->len -= used;
        memmove(d->text, end + 1, d->len + 1);
    }
}

int test_driver_run(struct test_driver *d)
{
    struct agx_error *err = NULL;

    (void)uv_pipe_init(agx_loop_uv(d->loop), &d->in, 0);
    (void)uv_pipe_open(&d->in, 0);
    (void)uv_read_start((uv_stream_t *)&d->in, on_alloc, on_read);
    agx_loop_run(d->loop);
    if (agx_loop_close(d->loop, &err) == 0)
        return 0;
    test_driver_say("", err);
    return 1;
}
