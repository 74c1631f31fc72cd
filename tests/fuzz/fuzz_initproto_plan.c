/* fuzz_initproto_plan.c: decoded plans and reports encode to their original bytes, and reading
 * their lists stays within them. */
#include "codec/initproto_plan.h"
#include "tests/support/fuzz.h"

static uint8_t again[1 << 16];

static void check_words(struct agx_str in, struct agx_init_list list)
{
    const char *word;

    while ((word = agx_init_list_next(&list)))
        FUZZ_CHECK(word > in.ptr && word + strlen(word) < in.ptr + in.len);
    FUZZ_CHECK(list.bytes.len == 0);
}

static void check_plan(struct agx_str in)
{
    struct agx_plan_mount mount;
    struct agx_plan p;
    uint32_t number;

    if (agx_plan_decode(in, &p, NULL) < 0)
        return;
    FUZZ_CHECK(agx_plan_encode(&p, again, sizeof(again)) == in.len);
    FUZZ_CHECK(memcmp(again, in.ptr, in.len) == 0);
    check_words(in, p.layers);
    check_words(in, p.masked);
    check_words(in, p.frozen);
    check_words(in, p.argv);
    check_words(in, p.env);
    while (agx_plan_mount_next(&p.mounts, &mount))
        FUZZ_CHECK(mount.source.ptr[0] == '/' && mount.target.ptr[mount.target.len] == '\0');
    FUZZ_CHECK(p.mounts.bytes.len == 0);
    while (agx_plan_number_next(&p.tasks_fds, &number))
        FUZZ_CHECK(p.tasks_fds.count < 64);
}

static void check_report(struct agx_str in)
{
    struct agx_error *err = NULL;
    struct agx_plan_report r;

    if (agx_plan_report_decode(in, &r, NULL) < 0)
        return;
    FUZZ_CHECK(agx_plan_report_encode(&r, again, sizeof(again)) == in.len);
    FUZZ_CHECK(in.len <= AGX_PLAN_REPORT_MAX);
    FUZZ_CHECK(memcmp(again, in.ptr, in.len) == 0);
    if (r.kind == AGX_PLAN_FAILED)
        FUZZ_CHECK(agx_plan_failed(&r, &err) < 0);
    (void)agx_error_free(err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > sizeof(again))
        return 0;
    check_plan(agx_str_bytes(data, size));
    check_report(agx_str_bytes(data, size));
    return 0;
}
