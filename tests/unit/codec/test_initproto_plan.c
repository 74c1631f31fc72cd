#include "codec/initproto_plan.h"
#include "tests/support/initproto.h"

static uint8_t room[1 << 16];

struct parts {
    struct test_words layers, masked, frozen, argv, env;
    uint8_t mounts[512], numbers[64], limit[AGX_INIT_RLIMIT_SIZE];
};

static struct agx_init_list make_mounts(struct parts *w)
{
    const struct agx_plan_mount one = { AGX_PLAN_IDMAP, AGX_STR("/srv/data"), AGX_STR("/data"),
                                        17 };
    const struct agx_plan_mount two = { AGX_PLAN_READ_ONLY, AGX_STR("/run/s"), AGX_STR("/s"),
                                        AGX_PLAN_NO_FD };
    size_t n = agx_plan_mount_put(w->mounts, sizeof(w->mounts), &one);

    n += agx_plan_mount_put(w->mounts + n, sizeof(w->mounts) - n, &two);
    return (struct agx_init_list){ 2, agx_str_bytes(w->mounts, n) };
}

static struct agx_plan make_plan(struct parts *w)
{
    size_t n = agx_plan_number_put(w->numbers, sizeof(w->numbers), 9);

    n += agx_plan_number_put(w->numbers + n, sizeof(w->numbers) - n, 10);
    agx_init_rlimit_put(w->limit, &(struct agx_init_rlimit){ 7, 1024, 4096 });
    return (struct agx_plan){
        .flags = AGX_PLAN_AT_ONCE,
        .report_fd = 4,
        .user_fd = 5,
        .net_fd = 6,
        .cgroup_fd = AGX_PLAN_NO_FD,
        .tasks_fds = { 2, agx_str_bytes(w->numbers, n) },
        .layers = TEST_WORDS(&w->layers, "/images/b", "/images/a"),
        .writable = AGX_STR("/boxes/1"),
        .devices = AGX_STR("/run/dev"),
        .shm_bytes = UINT64_C(64) << 20,
        .ptys = 256,
        .mounts = make_mounts(w),
        .masked = TEST_WORDS(&w->masked, "/proc/kcore"),
        .frozen = TEST_WORDS(&w->frozen, "/proc/sys"),
        .hostname = AGX_STR("box"),
        .caps = UINT64_C(1) << 38,
        .seccomp = AGX_STR("\x06\0\0\0\0\0\xff\x7f"),
        .rlimits = { 1, agx_str_bytes(w->limit, sizeof(w->limit)) },
        .oom_score_adj = (uint32_t)-5,
        .user = AGX_STR("agbox"),
        .groups = AGX_STR("44"),
        .await_user_ms = 7,
        .commands = 8,
        .cwd = AGX_STR("/work"),
        .argv = TEST_WORDS(&w->argv, "sh", "-c", "true"),
        .env = TEST_WORDS(&w->env, "A=1"),
        .log_dir = AGX_STR("/boxes/1/0"),
        .log_head = 5,
        .log_tail = UINT64_C(1) << 33,
    };
}

static int decode_again(const struct agx_plan *in, struct agx_plan *ret, struct agx_error **err)
{
    size_t n = agx_plan_encode(in, room, sizeof(room));

    ASSERT_TRUE(n <= sizeof(room));
    return agx_plan_decode(agx_str_bytes(room, n), ret, err);
}

TEST(plan_carries_a_whole_sandbox)
{
    struct agx_plan_mount mount;
    struct parts parts;
    struct agx_plan in = make_plan(&parts), p;
    uint32_t number;

    ASSERT_OK(decode_again(&in, &p, NULL));
    ASSERT_INT(4, p.report_fd);
    ASSERT_UINT(AGX_PLAN_NO_FD, p.cgroup_fd);
    ASSERT_TRUE(agx_plan_number_next(&p.tasks_fds, &number));
    ASSERT_INT(9, number);
    ASSERT_TRUE(agx_plan_number_next(&p.tasks_fds, &number));
    ASSERT_INT(10, number);
    ASSERT_FALSE(agx_plan_number_next(&p.tasks_fds, &number));
    ASSERT_CSTR("/images/b", agx_init_list_next(&p.layers));
    ASSERT_CSTR("/boxes/1", p.writable.ptr);
    ASSERT_UINT(UINT64_C(64) << 20, p.shm_bytes);
    ASSERT_UINT(256, p.ptys);
    ASSERT_TRUE(agx_plan_mount_next(&p.mounts, &mount));
    ASSERT_INT(AGX_PLAN_IDMAP, mount.flags);
    ASSERT_CSTR("/srv/data", mount.source.ptr);
    ASSERT_CSTR("/data", mount.target.ptr);
    ASSERT_TRUE(agx_plan_mount_next(&p.mounts, &mount));
    ASSERT_CSTR("/s", mount.target.ptr);
    ASSERT_FALSE(agx_plan_mount_next(&p.mounts, &mount));
    ASSERT_UINT(UINT64_C(1) << 38, p.caps);
    ASSERT_INT(8, p.seccomp.len);
    ASSERT_INT(-5, (int32_t)p.oom_score_adj);
    ASSERT_CSTR("A=1", agx_init_list_next(&p.env));
}

TEST(plan_without_layers_command_and_mounts_is_a_plan)
{
    const struct agx_plan in = { .writable = AGX_STR("/w"), .devices = AGX_STR("/d") };
    struct agx_plan p;

    ASSERT_OK(decode_again(&in, &p, NULL));
    ASSERT_INT(0, p.argv.count);
}

TEST(every_prefix_of_a_plan_is_refused_and_so_is_a_byte_behind_it)
{
    struct parts parts;
    struct agx_plan in = make_plan(&parts), p;
    size_t n = agx_plan_encode(&in, room, sizeof(room));

    for (size_t i = 0; i < n; i++)
        ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_plan_decode(agx_str_bytes(room, i), &p, NULL));
    room[n] = 0;
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_plan_decode(agx_str_bytes(room, n + 1), &p, NULL));
}

TEST(packets_of_other_kinds_are_no_plans_and_no_reports)
{
    _cleanup_(agx_error_freep) struct agx_error *one = NULL, *two = NULL;
    struct agx_plan_report r;
    struct agx_plan p;

    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_plan_decode(AGX_STR("AX\x01\x03"), &p, &one));
    ASSERT_MESSAGE(one, "not a plan");
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_plan_report_decode(AGX_STR("AX\x01\x80"), &r, &two));
    ASSERT_MESSAGE(two, "unknown report");
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_plan_report_decode(AGX_STR("AX\x01\x00"), &r, NULL));
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_plan_report_decode(AGX_STR("GO"), &r, NULL));
}

/* Each sets one thing that no plan has. */
static void set_relative_target(struct agx_plan *p, struct parts *w)
{
    const struct agx_plan_mount m = { 0, AGX_STR("/srv"), AGX_STR("data"), AGX_PLAN_NO_FD };

    p->mounts.count = 1;
    p->mounts.bytes =
        agx_str_bytes(w->mounts, agx_plan_mount_put(w->mounts, sizeof(w->mounts), &m));
}

static void set_relative_layer(struct agx_plan *p, struct parts *w)
{
    p->layers = TEST_WORDS(&w->layers, "/a", "b");
}

static void set_relative_mask(struct agx_plan *p, struct parts *w)
{
    p->masked = TEST_WORDS(&w->masked, "proc");
}

static void set_empty_writable(struct agx_plan *p, struct parts *w)
{
    (void)w;
    p->writable = AGX_STR("");
}

static void set_relative_cwd(struct agx_plan *p, struct parts *w)
{
    (void)w;
    p->cwd = AGX_STR("work");
}

static void set_relative_log(struct agx_plan *p, struct parts *w)
{
    (void)w;
    p->log_dir = AGX_STR("logs");
}

static void set_half_filter(struct agx_plan *p, struct parts *w)
{
    (void)w;
    p->seccomp = AGX_STR("1234567");
}

static void set_bad_env(struct agx_plan *p, struct parts *w)
{
    p->env = TEST_WORDS(&w->env, "A");
}

static void set_bad_score(struct agx_plan *p, struct parts *w)
{
    (void)w;
    p->oom_score_adj = 1001;
}

static void set_long_name(struct agx_plan *p, struct parts *w)
{
    (void)w;
    p->hostname =
        AGX_STR("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
}

TEST(plans_that_make_no_sense_are_refused)
{
    static void (*const spoil[])(struct agx_plan *, struct parts *) = {
        set_relative_target, set_relative_layer, set_relative_mask, set_empty_writable,
        set_relative_cwd,    set_half_filter,    set_bad_env,       set_bad_score,
        set_long_name,       set_relative_log,
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(spoil); i++) {
        struct parts parts;
        struct agx_plan in = make_plan(&parts), p;

        spoil[i](&in, &parts);
        ASSERT_CODE(AGX_INVALID_ARGUMENT, decode_again(&in, &p, NULL));
    }
}

TEST(more_layers_than_an_overlay_takes_are_resource_exhausted)
{
    static uint8_t words[501 * 8];
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_plan in = { .writable = AGX_STR("/w"), .devices = AGX_STR("/d") }, p;
    size_t n = 0;

    for (; in.layers.count < 501; in.layers.count++)
        n += agx_init_word_put(words + n, sizeof(words) - n, AGX_STR("/l"));
    in.layers.bytes = agx_str_bytes(words, n);
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, decode_again(&in, &p, &err));
    ASSERT_MESSAGE(err, "501 layers");
    in.layers = (struct agx_init_list){ 0 };
    in.tasks_fds.count = 65;
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, decode_again(&in, &p, NULL));
}

static struct agx_plan_report passed_on(const struct agx_plan_report *in)
{
    struct agx_plan_report r;
    size_t n = agx_plan_report_encode(in, room, sizeof(room));

    ASSERT_TRUE(n <= AGX_PLAN_REPORT_MAX);
    ASSERT_OK(agx_plan_report_decode(agx_str_bytes(room, n), &r, NULL));
    ASSERT_INT(in->kind, r.kind);
    return r;
}

TEST(reports_carry_pid_and_failure)
{
    static const enum agx_plan_kind empty[] = { AGX_PLAN_READY, AGX_PLAN_RUNNING, AGX_PLAN_GO };
    struct agx_plan_report r =
        passed_on(&(struct agx_plan_report){ .kind = AGX_PLAN_CLONED, .pid = 77 });

    ASSERT_INT(77, r.pid);
    for (size_t i = 0; i < AGX_ARRAY_LEN(empty); i++)
        (void)passed_on(&(struct agx_plan_report){ .kind = empty[i] });
    r = passed_on(&(struct agx_plan_report){ .kind = AGX_PLAN_FAILED,
                                             .stage = AGX_STAGE_OVERLAY,
                                             .sys_errno = ENOSPC,
                                             .what = AGX_STR("/") });
    ASSERT_INT(AGX_STAGE_OVERLAY, r.stage);
    ASSERT_STR(AGX_STR("/"), r.what);
}

TEST(failures_are_told_in_words)
{
    _cleanup_(agx_error_freep) struct agx_error *one = NULL, *two = NULL, *three = NULL;

    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED,
                agx_plan_failed(&(struct agx_plan_report){ .stage = AGX_STAGE_OVERLAY,
                                                           .sys_errno = ENOSPC,
                                                           .what = AGX_STR("/") },
                                &one));
    ASSERT_MESSAGE(one, "mount overlay on '/': No space left on device");
    (void)agx_plan_failed(
        &(struct agx_plan_report){ .stage = AGX_STAGE_CLONE, .sys_errno = EAGAIN }, &two);
    ASSERT_MESSAGE(two, "start PID 1 of the sandbox: ");
    ASSERT_CODE(AGX_INTERNAL, agx_plan_failed(&(struct agx_plan_report){ .stage = 999 }, &three));
    ASSERT_MESSAGE(three, "make the sandbox");
}

TEST(file_system_without_idmapped_mounts_is_a_failed_precondition)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;

    ASSERT_CODE(AGX_FAILED_PRECONDITION,
                agx_plan_failed(&(struct agx_plan_report){ .stage = AGX_STAGE_IDMAP,
                                                           .sys_errno = EINVAL,
                                                           .what = AGX_STR("/mnt/share") },
                                &err));
    ASSERT_MESSAGE(err, "'/mnt/share': its file system");
}

TEST(every_stage_has_words)
{
    for (uint32_t i = 1; i < AGX_STAGE_END; i++) {
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;
        char text[256];

        (void)agx_plan_failed(&(struct agx_plan_report){ .stage = i, .sys_errno = EPERM }, &err);
        ASSERT_NULL(strstr(agx_error_format(err, text, sizeof(text)), "make the sandbox"));
    }
}
