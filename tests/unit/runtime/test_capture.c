#include "base/buf.h"
#include "base/limits.h"
#include "loop/loop.h"
#include "runtime/capture.h"
#include "tests/support/test.h"

#include <stdlib.h>

struct seen {
    struct agx_loop *loop;
    struct agx_buf lines; /* joined by '|' */
    int n, stop_after;
};

static void on_line(void *user, struct agx_str line)
{
    struct seen *s = user;

    ASSERT_OK(agx_buf_append(&s->lines, line));
    ASSERT_OK(agx_buf_push(&s->lines, '|'));
    if (++s->n == s->stop_after)
        agx_loop_stop(s->loop);
}

static void put(const struct agx_capture *c, const char *text, size_t n)
{
    ASSERT_INT(n, write(agx_capture_fd(c), text, n));
}

TEST(capture_gives_lines_as_they_come_and_the_rest_at_the_end)
{
    struct seen s = { .lines = AGX_BUF_INIT(1 << 20), .stop_after = 3 };
    struct agx_capture *c = NULL;

    ASSERT_OK(agx_loop_open(&s.loop, NULL));
    ASSERT_OK(agx_capture_open(s.loop, on_line, &s, &c, NULL));
    put(c, "one\n\ntw", 7);
    put(c, "o\nlast", 6);
    agx_loop_run(s.loop);
    ASSERT_STR(AGX_STR("one||two|"), agx_buf_peek(&s.lines));
    agx_capture_close(c);
    ASSERT_STR(AGX_STR("one||two|last|"), agx_buf_peek(&s.lines));
    agx_loop_run(s.loop);
    ASSERT_OK(agx_loop_close(s.loop, NULL));
    agx_buf_done(&s.lines);
}

TEST(capture_cuts_a_line_that_is_too_long)
{
    struct seen s = { .lines = AGX_BUF_INIT(1 << 20), .stop_after = 2 };
    struct agx_capture *c = NULL;
    char *big = malloc(40000);

    memset(big, 'x', 40000);
    ASSERT_OK(agx_loop_open(&s.loop, NULL));
    ASSERT_OK(agx_capture_open(s.loop, on_line, &s, &c, NULL));
    put(c, big, 40000);
    s.stop_after = 1;
    put(c, big, 25000);
    ASSERT_UINT(0, s.lines.len);
    (void)uv_run(agx_loop_uv(s.loop), UV_RUN_ONCE);
    put(c, big, 25000);
    put(c, "\n", 1);
    s.stop_after = 2;
    agx_loop_run(s.loop);
    ASSERT_INT(2, s.n);
    ASSERT_UINT(40000 + 25000 + 25000 + 2, s.lines.len);
    ASSERT_INT('|', s.lines.data[AGX_LOG_TEXT_MAX]);
    agx_capture_close(c);
    agx_loop_run(s.loop);
    ASSERT_OK(agx_loop_close(s.loop, NULL));
    agx_buf_done(&s.lines);
    free(big);
}
