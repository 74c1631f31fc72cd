/* test_cli_show.c: output for people: texts, times, tables, and the exit status. */
#include "base/macros.h"
#include "cli/attach.h"
#include "cli/show.h"
#include "cli/table.h"
#include "tests/support/test.h"

#include <stdio.h>

#define NS_PER_S INT64_C(1000000000)

static void expect_text(struct agx_str given, const char *want)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(1000);

    ASSERT_OK(agx_show_text(&out, given));
    ASSERT_STR(agx_str_from(want), agx_buf_peek(&out));
}

TEST(show_text_leaves_nothing_that_a_terminal_obeys)
{
    expect_text(AGX_STR("plain text"), "plain text");
    expect_text(AGX_STR("\x1b[31mred\x1b[0m"), "\\u{1b}[31mred\\u{1b}[0m");
    expect_text(AGX_STR("a\nb\tc\r\x7f"), "a\\u{a}b\\u{9}c\\u{d}\\u{7f}");
    expect_text(AGX_STR("\xc2\x9b"
                        "31m"),
                "\\u{9b}31m");
    expect_text(AGX_STR("a\xe2\x80\xae"
                        "b"),
                "a\\u{202e}b");
    expect_text(AGX_STR("\xff\xc3"), "\\xff\\xc3");
    expect_text(AGX_STR("gr\xc3\xbc\xc3\x9f \xe6\xbc\xa2"), "gr\xc3\xbc\xc3\x9f \xe6\xbc\xa2");
    expect_text(agx_str_bytes("\0", 1), "\\u{0}");
}

static void expect_pull(const struct agx_pull *pull, const char *want)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(1000);

    ASSERT_OK(agx_show_pull(&out, pull));
    ASSERT_STR(agx_str_from(want), agx_buf_peek(&out));
}

TEST(show_pull_says_what_is_known)
{
    expect_pull(&(struct agx_pull){ .image = "redis:7" }, "Pulling redis:7");
    expect_pull(&(struct agx_pull){ "redis:7", 3, 5, 0, 0 }, "Pulling redis:7: 3/5 layers");
    expect_pull(&(struct agx_pull){ "redis:7", 3, 5, 12345678, 40000000 },
                "Pulling redis:7: 3/5 layers, 12.3/40.0 MB");
    expect_pull(&(struct agx_pull){ .image = "registry.example/some/where/deep/coding-runtime:1" },
                "Pulling ...some/where/deep/coding-runtime:1");
    expect_pull(&(struct agx_pull){ .image = "a\x1b[31m" }, "Pulling a\\u{1b}[31m");
}

TEST(show_bytes_has_one_digit_behind_the_point)
{
    char out[AGX_SHOW_SIZE];

    ASSERT_CSTR("0 B", agx_show_bytes(0, out));
    ASSERT_CSTR("999 B", agx_show_bytes(999, out));
    ASSERT_CSTR("1.0 kB", agx_show_bytes(1000, out));
    ASSERT_CSTR("1.0 MB", agx_show_bytes(999950, out));
    ASSERT_CSTR("12.3 MB", agx_show_bytes(12345678, out));
    ASSERT_CSTR("18.4 EB", agx_show_bytes(UINT64_MAX, out));
}

TEST(show_image_id_is_short)
{
    ASSERT_STR(AGX_STR("0123456789ab"), agx_show_image_id("sha256:0123456789abcdef"));
    ASSERT_STR(AGX_STR("0123"), agx_show_image_id("sha256:0123"));
    ASSERT_STR(AGX_STR("something else"), agx_show_image_id("something else"));
}

static void expect_bar(uint64_t done, uint64_t total, const char *want)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(100);

    ASSERT_OK(agx_show_bar(&out, done, total));
    ASSERT_STR(agx_str_from(want), agx_buf_peek(&out));
}

TEST(show_bar_grows)
{
    expect_bar(0, 0, "");
    expect_bar(0, 10, "[>         ]");
    expect_bar(49, 100, "[====>     ]");
    expect_bar(UINT64_MAX - 1, UINT64_MAX, "[==========]");
    expect_bar(95, 100, "[=========>]");
    expect_bar(10, 10, "[==========]");
    expect_bar(11, 10, "[==========]");
}

TEST(show_width_counts_columns)
{
    ASSERT_UINT(0, agx_show_width(AGX_STR("")));
    ASSERT_UINT(5, agx_show_width(AGX_STR("gr\xc3\xbc\xc3\x9f"
                                          "e")));
    ASSERT_UINT(4, agx_show_width(AGX_STR("\xe6\xbc\xa2\xe5\xad\x97")));
    ASSERT_UINT(1, agx_show_width(AGX_STR("e\xcc\x81")));
}

TEST(show_span_is_in_whole_units)
{
    char out[AGX_SHOW_SIZE];

    ASSERT_CSTR("0s", agx_show_span(-5 * NS_PER_S, out));
    ASSERT_CSTR("59s", agx_show_span(60 * NS_PER_S - 1, out));
    ASSERT_CSTR("5m", agx_show_span(5 * 60 * NS_PER_S, out));
    ASSERT_CSTR("2h", agx_show_span(2 * 3600 * NS_PER_S, out));
    ASSERT_CSTR("47h", agx_show_span(47 * 3600 * NS_PER_S, out));
    ASSERT_CSTR("2d", agx_show_span(48 * 3600 * NS_PER_S, out));
    ASSERT_CSTR("106751d", agx_show_span(INT64_MAX, out));
}

TEST(show_times_as_people_and_programs_read_them)
{
    char out[AGX_SHOW_SIZE];

    ASSERT_CSTR("1970-01-01T00:00:01Z", agx_show_time(NS_PER_S + 999, out));
    ASSERT_CSTR("0.0s", agx_show_seconds(1, out));
    ASSERT_CSTR("61.2s", agx_show_seconds(UINT64_C(61290000000), out));
}

TEST(show_states_by_name_both_ways)
{
    ASSERT_CSTR("Ready", agx_show_state(AGX_STATE_READY));
    ASSERT_CSTR("Unknown", agx_show_state((enum agx_state)99));
    ASSERT_INT(AGX_STATE_STOPPED, agx_show_find_state("STOPPED"));
    ASSERT_INT(AGX_STATE_NONE, agx_show_find_state("unknown"));
    ASSERT_CSTR("Cancelled", agx_show_exec_state(AGX_EXEC_CANCELLED));
}

static void expect_table(const struct agx_table *t, const char *want)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    ASSERT_NOT_NULL(out);
    agx_table_print(t, out);
    ASSERT_INT(0, fclose(out));
    ASSERT_STR(agx_str_from(want), agx_str_bytes(text, len));
    free(text);
}

TEST(table_columns_are_as_wide_as_their_widest_cell)
{
    static const char *const titles[] = { "ID", "LABELS", "ERROR" };
    struct agx_table t;

    ASSERT_OK(agx_table_init(&t, titles, AGX_ARRAY_LEN(titles)));
    ASSERT_OK(agx_table_add(
        &t, (struct agx_str[]){ AGX_STR("a-long-id"), AGX_STR("k=\xc3\xbc"), AGX_STR("") }));
    ASSERT_OK(
        agx_table_add(&t, (struct agx_str[]){ AGX_STR("b"), AGX_STR(""), AGX_STR("x\033y") }));
    expect_table(&t, "ID         LABELS  ERROR\n"
                     "a-long-id  k=\xc3\xbc\n"
                     "b                  x\\u{1b}y\n");
    agx_table_done(&t);
}

static int status_of(enum agx_exec_state state, int32_t code, int signal)
{
    return agx_attach_status(&(struct agx_exec){ .state = state, .exit_code = code }, signal);
}

TEST(exit_status_is_the_command_s_own_where_it_has_one)
{
    ASSERT_INT(0, status_of(AGX_EXEC_FINISHED, 0, 0));
    ASSERT_INT(7, status_of(AGX_EXEC_FAILED, 7, 0));
    ASSERT_INT(137, status_of(AGX_EXEC_FAILED, 137, 0));
    ASSERT_INT(125, status_of(AGX_EXEC_FAILED, 0, 0));
    ASSERT_INT(125, status_of(AGX_EXEC_FAILED, -1, 0));
    ASSERT_INT(125, status_of(AGX_EXEC_FAILED, 256, 0));
    ASSERT_INT(125, status_of(AGX_EXEC_CANCELLED, 0, 0));
    ASSERT_INT(130, status_of(AGX_EXEC_CANCELLED, 0, 2));
    ASSERT_INT(143, status_of(AGX_EXEC_CANCELLED, 0, 15));
    ASSERT_INT(7, status_of(AGX_EXEC_FAILED, 7, 2));
}
