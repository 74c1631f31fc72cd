#include "base/buf.h"
#include "base/cpu.h"
#include "base/duration.h"
#include "base/size.h"
#include "base/uuid.h"
#include "tests/support/fault.h"
#include "tests/support/test.h"

#include <errno.h>

TEST(error_made_without_memory_is_an_error_all_the_same)
{
    FAULT_EACH_ALLOCATION
    {
        struct agx_error *err = NULL, *copy = NULL;
        int r = agx_error_errno(&err, ENOENT, "open '%s'", "x");

        ASSERT_CODE(AGX_NOT_FOUND, r);
        agx_error_set_remote(err, "KeyError", "Traceback", NULL);
        ASSERT_CODE(AGX_NOT_FOUND, agx_error_wrap(&err, r, "read"));
        copy = agx_error_dup(err);
        ASSERT_NOT_NULL(err);
        ASSERT_NOT_NULL(copy);
        agx_error_free(err);
        agx_error_free(copy);
    }
}

TEST(buf_without_memory_keeps_its_content)
{
    FAULT_EACH_ALLOCATION
    {
        _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(1000);
        int n = 0;

        for (int i = 0; i < 300; i++) {
            int r = agx_buf_push(&b, 'x');

            ASSERT_TRUE(r == 0 || r == -AGX_RESOURCE_EXHAUSTED);
            n += r == 0;
            ASSERT_UINT(n, b.len);
        }
    }
}

TEST(parsers_without_memory_for_an_error_give_its_code_all_the_same)
{
    FAULT_EACH_ALLOCATION
    {
        struct agx_error *duration = NULL, *size = NULL, *cpu = NULL;
        int64_t v = 7;

        ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_duration_parse(AGX_STR("1x"), &v, &duration));
        ASSERT_CODE(AGX_OUT_OF_RANGE, agx_size_parse(AGX_STR("9999p"), &v, &size));
        ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_cpu_parse(AGX_STR("x"), &v, &cpu));
        ASSERT_TRUE(duration && size && cpu);
        ASSERT_INT(7, v);
        agx_error_free(duration);
        agx_error_free(size);
        agx_error_free(cpu);
    }
}

TEST(parsers_and_ids_allocate_nothing_when_they_succeed)
{
    char id[AGX_UUID_TEXT_SIZE];
    int64_t v;

    agx_fault_arm(1);
    ASSERT_OK(agx_duration_parse(AGX_STR("1h30m"), &v, NULL));
    ASSERT_OK(agx_size_parse(AGX_STR("1.5g"), &v, NULL));
    ASSERT_OK(agx_cpu_parse(AGX_STR("0.5"), &v, NULL));
    ASSERT_OK(agx_uuid_new(id, NULL));
    ASSERT_FALSE(agx_fault_disarm());
}
