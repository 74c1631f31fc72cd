/*
 * test.h: a small TAP harness. A test program is one .c file with TEST() blocks; the name is a
 * sentence: <function or object>_<condition>_<result>. A failed ASSERT_* prints the place and ends
 * that test only.
 *
 *     TEST(buf_append_past_max_is_resource_exhausted)
 *     {
 *         ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_buf_append(&b, AGX_STR("too long")));
 *     }
 *
 * `prog NAME...` runs only the tests whose name contains one of the words.
 */
#ifndef AGX_TESTS_TEST_H
#define AGX_TESTS_TEST_H

#include "base/error.h"
#include "base/str.h"

#include <stdint.h>

struct agx_test {
    const char *name;
    void (*run)(void);
    struct agx_test *next;
};

void agx_test_register(struct agx_test *t);
_Noreturn void agx_test_fail(const char *file, int line, const char *fmt, ...) AGX_PRINTF(3, 4);
/* Skips the running test because it cannot run here; with AGX_MUST_WORK=1 that is a failure. */
_Noreturn void agx_test_skip(const char *file, int line, const char *why);
void agx_test_eq_str(const char *file, int line, const char *expr, struct agx_str want,
                     struct agx_str got);

#define TEST(id)                                                                                   \
    static void id(void);                                                                          \
    static struct agx_test agx_test_##id = { #id, id, NULL };                                      \
    __attribute__((constructor)) static void agx_test_register_##id(void)                          \
    {                                                                                              \
        agx_test_register(&agx_test_##id);                                                         \
    }                                                                                              \
    static void id(void)

#define FAIL(...) agx_test_fail(__FILE__, __LINE__, __VA_ARGS__)
#define SKIP(why) agx_test_skip(__FILE__, __LINE__, why)

#define ASSERT_TRUE(e)                                                                             \
    do {                                                                                           \
        if (!(e))                                                                                  \
            FAIL("%s", #e);                                                                        \
    } while (0)
#define ASSERT_FALSE(e) ASSERT_TRUE(!(e))
#define ASSERT_NULL(e) ASSERT_TRUE((e) == NULL)
#define ASSERT_NOT_NULL(e) ASSERT_TRUE((e) != NULL)

#define ASSERT_INT(want, got)                                                                      \
    do {                                                                                           \
        intmax_t want_ = (intmax_t)(want), got_ = (intmax_t)(got);                                 \
        if (want_ != got_)                                                                         \
            FAIL("%s is %jd, expected %jd", #got, got_, want_);                                    \
    } while (0)
#define ASSERT_UINT(want, got)                                                                     \
    do {                                                                                           \
        uintmax_t want_ = (uintmax_t)(want), got_ = (uintmax_t)(got);                              \
        if (want_ != got_)                                                                         \
            FAIL("%s is %ju, expected %ju", #got, got_, want_);                                    \
    } while (0)
/* Asserts that the call succeeded: its value is 0 or more. */
#define ASSERT_OK(e)                                                                               \
    do {                                                                                           \
        intmax_t got_ = (intmax_t)(e);                                                             \
        if (got_ < 0)                                                                              \
            FAIL("%s failed with %s", #e, agx_code_name((enum agx_code) - got_));                  \
    } while (0)
/* Asserts that the call failed with this code. */
#define ASSERT_CODE(code, e)                                                                       \
    do {                                                                                           \
        intmax_t got_ = (intmax_t)(e);                                                             \
        if (got_ != -(intmax_t)(code))                                                             \
            FAIL("%s gave %jd, expected -%s", #e, got_, agx_code_name(code));                      \
    } while (0)
/* Compares bytes; the failure message shows both. */
#define ASSERT_STR(want, got) agx_test_eq_str(__FILE__, __LINE__, #got, (want), (got))
#define ASSERT_CSTR(want, got) ASSERT_STR(agx_str_from(want), agx_str_from(got))
/* Asserts that the error's whole text ("outer: cause") contains these words. */
#define ASSERT_MESSAGE(err, words)                                                                 \
    do {                                                                                           \
        char text_[1024];                                                                          \
        if (!strstr(agx_error_format((err), text_, sizeof(text_)), (words)))                       \
            FAIL("the message '%s' lacks '%s'", text_, (words));                                   \
    } while (0)

#endif
