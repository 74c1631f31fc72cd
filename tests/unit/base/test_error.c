#include "base/error.h"
#include "tests/support/test.h"

#include <errno.h>

TEST(error_wrap_prints_outermost_first_and_keeps_code_and_errno)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    char text[200];
    int r = agx_error_errno(&err, ECONNREFUSED, "connect '%s'", "/run/x.sock");

    ASSERT_INT(-AGX_UNAVAILABLE, r);
    ASSERT_INT(r, agx_error_wrap(&err, r, "create sandbox '%s'", "a"));
    ASSERT_INT(AGX_UNAVAILABLE, err->code);
    ASSERT_INT(ECONNREFUSED, err->sys_errno);
    ASSERT_CSTR("create sandbox 'a': connect '/run/x.sock': Connection refused",
                agx_error_format(err, text, sizeof(text)));
    ASSERT_CSTR("create", agx_error_format(err, text, 7));
}

TEST(error_without_a_place_to_put_it_still_gives_the_code)
{
    ASSERT_CODE(AGX_NOT_FOUND, agx_error_set(NULL, AGX_NOT_FOUND, "x"));
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_error_errno(NULL, ENOSPC, "x"));
    ASSERT_CODE(AGX_ABORTED, agx_error_wrap(NULL, -AGX_ABORTED, "x"));
}

TEST(error_propagate_keeps_the_first)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL, *other = NULL;

    (void)agx_error_set(&other, AGX_NOT_FOUND, "first");
    agx_error_propagate(&err, &other);
    ASSERT_NULL(other);
    (void)agx_error_set(&other, AGX_ABORTED, "second");
    agx_error_propagate(&err, &other);
    ASSERT_NULL(other);
    ASSERT_CSTR("first", err->message);
}

TEST(error_dup_shares_nothing)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL, *copy = NULL;

    (void)agx_error_errno(&err, ENOENT, "open 'f'");
    copy = agx_error_dup(err);
    err = agx_error_free(err);
    ASSERT_MESSAGE(copy, "open 'f': No such file or directory");
    ASSERT_NULL(agx_error_dup(NULL));
}

TEST(error_of_another_process_keeps_its_type_through_wrap_and_dup)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL, *copy = NULL;
    int code = -9, got = 0;
    int r = agx_error_set(&err, AGX_ABORTED, "the worker died");

    ASSERT_NULL(agx_error_type(err));
    agx_error_set_remote(err, "WorkerExited", "Traceback ...", &code);
    (void)agx_error_wrap(&err, r, "call 'm::f'");
    copy = agx_error_dup(err);
    err = agx_error_free(err);
    ASSERT_INT(AGX_ABORTED, agx_error_code(copy));
    ASSERT_CSTR("WorkerExited", agx_error_type(copy));
    ASSERT_CSTR("Traceback ...", agx_error_traceback(copy));
    ASSERT_TRUE(agx_error_returncode(copy, &got));
    ASSERT_INT(-9, got);
}

TEST(error_of_our_own_has_no_type_traceback_or_returncode)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    int got = 0;

    (void)agx_error_set(&err, AGX_NOT_FOUND, "no");
    ASSERT_NULL(agx_error_type(err));
    ASSERT_NULL(agx_error_traceback(err));
    ASSERT_FALSE(agx_error_returncode(err, &got));
    agx_error_set_remote(err, "KeyError", NULL, NULL);
    ASSERT_NULL(agx_error_traceback(err));
    ASSERT_FALSE(agx_error_returncode(err, &got));
    ASSERT_INT(AGX_OK, agx_error_code(NULL));
}

TEST(code_name_is_grpcs)
{
    ASSERT_CSTR("RESOURCE_EXHAUSTED", agx_code_name(AGX_RESOURCE_EXHAUSTED));
    ASSERT_CSTR("UNKNOWN", agx_code_name((enum agx_code)99));
}
