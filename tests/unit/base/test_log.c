#include "base/fd.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/utf8.h"
#include "tests/support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>

/* Sends the log to a file in memory; lines_of() then gives what was written. */
static int capture(enum agx_log_format format)
{
    struct agx_log_config c = AGX_LOG_CONFIG_INIT;

    c.format = format;
    c.fd = memfd_create("log", MFD_CLOEXEC);
    ASSERT_TRUE(c.fd >= 0);
    ASSERT_INT(0, fcntl(c.fd, F_SETFL, O_APPEND));
    agx_log_setup(&c);
    return c.fd;
}

static struct agx_str lines_of(int fd, struct agx_buf *b)
{
    agx_buf_clear(b);
    ASSERT_INT(0, lseek(fd, 0, SEEK_SET));
    ASSERT_OK(agx_fd_read_all(fd, b, NULL));
    return agx_buf_peek(b);
}

/* The one line of the log, after `time=...Z` with which it begins. */
static struct agx_str after_time(struct agx_str line, struct agx_str before)
{
    ASSERT_TRUE(agx_str_starts(line, before));
    ASSERT_TRUE(line.len > before.len + 24 && line.ptr[before.len + 23] == 'Z');
    return agx_str_skip(line, before.len + 24);
}

static struct agx_str logfmt_of(int fd, struct agx_buf *b)
{
    return after_time(lines_of(fd, b), AGX_STR("time="));
}

static struct agx_str json_of(int fd, struct agx_buf *b)
{
    return after_time(lines_of(fd, b), AGX_STR("{\"time\":\""));
}

TEST(log_logfmt_prints_each_kind_of_field)
{
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(10000);
    _cleanup_close_ int fd = capture(AGX_LOG_LOGFMT);

    AGX_LOG(AGX_LOG_WARN, "a.b", AGX_F_STR("id", "x-1"), AGX_F_STR("why", "two words"),
            AGX_F_INT("i", INT64_MIN), AGX_F_UINT("u", UINT64_MAX), AGX_F_BOOL("ok", true),
            AGX_F_STR("empty", ""), AGX_F_STR("none", NULL), AGX_F_TEXT("t", AGX_STR("a=b")));
    ASSERT_STR(AGX_STR(" level=warn event=a.b id=x-1 why=\"two words\" i=-9223372036854775808 "
                       "u=18446744073709551615 ok=true empty=\"\" none=null t=\"a=b\"\n"),
               logfmt_of(fd, &b));
}

TEST(log_json_prints_each_kind_of_field)
{
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(10000);
    _cleanup_close_ int fd = capture(AGX_LOG_JSON);

    AGX_LOG(AGX_LOG_INFO, "a.b", AGX_F_STR("id", "x"), AGX_F_INT("i", -1), AGX_F_UINT("u", 2),
            AGX_F_BOOL("ok", false), AGX_F_STR("none", NULL));
    ASSERT_STR(AGX_STR("\",\"level\":\"info\",\"event\":\"a.b\",\"id\":\"x\",\"i\":-1,\"u\":2,"
                       "\"ok\":false,\"none\":null}\n"),
               json_of(fd, &b));
}

TEST(log_of_a_named_daemon_has_name_and_version_in_each_line)
{
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(10000);
    _cleanup_close_ int fd = capture(AGX_LOG_JSON);
    const struct agx_log_config c = { .format = AGX_LOG_JSON, .fd = fd, .daemon = "agboxd" };

    agx_log_setup(&c);
    AGX_LOG(AGX_LOG_INFO, "a.b");
    ASSERT_STR(AGX_STR("\",\"level\":\"info\",\"daemon\":\"agboxd\",\"version\":\"" AGX_VERSION
                       "\",\"event\":\"a.b\"}\n"),
               json_of(fd, &b));
}

TEST(log_error_prints_the_code_and_the_whole_chain)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(10000);
    _cleanup_close_ int fd = capture(AGX_LOG_LOGFMT);

    (void)agx_error_errno(&err, ENOENT, "open 'a\nb'");
    AGX_LOG(AGX_LOG_ERROR, "x", AGX_F_ERR(err));
    ASSERT_STR(AGX_STR(" level=error event=x code=NOT_FOUND "
                       "error=\"open 'a\\nb': No such file or directory\"\n"),
               logfmt_of(fd, &b));
    ASSERT_INT(0, ftruncate(fd, 0));
    AGX_LOG(AGX_LOG_ERROR, "x", AGX_F_ERR(NULL));
    ASSERT_STR(AGX_STR(" level=error event=x error=null\n"), logfmt_of(fd, &b));
}

/* Quote, backslash, newline, NUL, ESC, DEL, a C1 control, a line separator, a lone byte, text. */
#define NASTY "\"\\\n\r\t\0\x1b\x7f\xc2\x9b\xe2\x80\xa8\xff\xc3\xa4"

TEST(log_escapes_whatever_could_break_a_line_or_a_terminal)
{
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(10000);
    _cleanup_close_ int fd = capture(AGX_LOG_LOGFMT), json = -1;

    AGX_LOG(AGX_LOG_INFO, "x", AGX_F_TEXT("v", AGX_STR(NASTY)), AGX_F_INT("a b=\"", 1));
    ASSERT_STR(AGX_STR(" level=info event=x v=\"\\\"\\\\\\n\\r\\t\\u0000\\u001b\\u007f\\u009b"
                       "\\u2028\\xff\xc3\xa4\" a_b__=1\n"),
               logfmt_of(fd, &b));
    json = capture(AGX_LOG_JSON);
    AGX_LOG(AGX_LOG_INFO, "x", AGX_F_TEXT("v", AGX_STR(NASTY)));
    ASSERT_STR(AGX_STR("\",\"level\":\"info\",\"event\":\"x\",\"v\":\"\\\"\\\\\\n\\r\\t\\u0000"
                       "\\u001b\\u007f\\u009b\\u2028\\ufffd\xc3\xa4\"}\n"),
               json_of(json, &b));
}

static unsigned evaluated;

static int64_t evaluate(void)
{
    return ++evaluated;
}

TEST(log_below_the_level_writes_and_evaluates_nothing)
{
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(10000);
    _cleanup_close_ int fd = capture(AGX_LOG_LOGFMT);

    AGX_LOG(AGX_LOG_DEBUG, "x", AGX_F_INT("n", evaluate()));
    ASSERT_UINT(0, lines_of(fd, &b).len);
    ASSERT_UINT(0, evaluated);
    AGX_LOG(AGX_LOG_INFO, "bare");
    ASSERT_STR(AGX_STR(" level=info event=bare\n"), logfmt_of(fd, &b));
}

/* Whatever the length of the value: one line of UTF-8, not past the limit, with `end` if it was
 * cut. */
static void check_cut(enum agx_log_format format, char fill, const char *end)
{
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(10000);
    static char value[AGX_LOG_LINE_MAX + 100];

    memset(value, fill, sizeof(value));
    for (size_t n = AGX_LOG_LINE_MAX / 6 - 150; n < sizeof(value); n += n % 7 + 1) {
        _cleanup_close_ int fd = capture(format);
        struct agx_str line, tail = agx_str_from(end);

        AGX_LOG(AGX_LOG_INFO, "x", AGX_F_TEXT("v", agx_str_bytes(value, n)), AGX_F_INT("n", 5));
        line = lines_of(fd, &b);
        ASSERT_TRUE(line.len <= AGX_LOG_LINE_MAX && agx_utf8_valid(line));
        ASSERT_UINT(line.len - 1, agx_str_find(line, '\n'));
        if (line.ptr[line.len - 2] == '5' || line.ptr[line.len - 3] == '5')
            continue; /* all of it fitted */
        ASSERT_STR(tail, agx_str_skip(line, line.len - tail.len));
        ASSERT_TRUE(line.len > AGX_LOG_LINE_MAX - 32);
    }
}

TEST(log_line_past_the_limit_is_cut_with_a_mark_and_still_parses)
{
    check_cut(AGX_LOG_LOGFMT, 'a', "\" cut=true\n");
    check_cut(AGX_LOG_LOGFMT, '\n', "\" cut=true\n");
    check_cut(AGX_LOG_JSON, 'a', "\",\"cut\":true}\n");
    check_cut(AGX_LOG_JSON, '\x01', "\",\"cut\":true}\n");
}

static void *log_some(void *user)
{
    for (int i = 0; i < 200; i++)
        AGX_LOG(AGX_LOG_INFO, "x", AGX_F_STR("v", user));
    return NULL;
}

TEST(log_lines_of_two_threads_do_not_mix)
{
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(1 << 20);
    _cleanup_close_ int fd = capture(AGX_LOG_LOGFMT);
    char first[1000], second[1000];
    size_t lines = 0;
    struct agx_str rest, line;
    pthread_t t;

    memset(first, 'a', sizeof(first));
    memset(second, 'b', sizeof(second));
    first[999] = second[999] = '\0';
    ASSERT_INT(0, pthread_create(&t, NULL, log_some, first));
    (void)log_some(second);
    ASSERT_INT(0, pthread_join(t, NULL));
    rest = lines_of(fd, &b);
    while (agx_str_split(&rest, '\n', &line) && line.len > 0) {
        const char *v = line.ptr + line.len - 1000; /* 999 letters and a quote */

        ASSERT_TRUE(memcmp(v, first, 999) == 0 || memcmp(v, second, 999) == 0);
        lines++;
    }
    ASSERT_UINT(400, lines);
}

TEST(log_that_cannot_be_written_is_dropped_and_keeps_errno)
{
    struct agx_log_config c = AGX_LOG_CONFIG_INIT;

    c.fd = -1;
    agx_log_setup(&c);
    errno = ENOTTY;
    AGX_LOG(AGX_LOG_ERROR, "x");
    ASSERT_INT(ENOTTY, errno);
}

TEST(log_level_and_format_are_read_from_their_names)
{
    enum agx_log_level level = AGX_LOG_WARN;
    enum agx_log_format format = AGX_LOG_LOGFMT;

    ASSERT_TRUE(agx_log_level_parse(AGX_STR("debug"), &level));
    ASSERT_INT(AGX_LOG_DEBUG, level);
    ASSERT_FALSE(agx_log_level_parse(AGX_STR("DEBUG"), &level));
    ASSERT_FALSE(agx_log_level_parse(AGX_STR(""), &level));
    ASSERT_TRUE(agx_log_format_parse(AGX_STR("json"), &format));
    ASSERT_INT(AGX_LOG_JSON, format);
    ASSERT_FALSE(agx_log_format_parse(AGX_STR("xml"), &format));
}
