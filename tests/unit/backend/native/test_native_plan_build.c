/* The plan of a native sandbox: what image and spec say, as init takes it; and its hosts file. */
#include "backend/native/etc.h"
#include "backend/native/plan_build.h"
#include "tests/support/test.h"

#include <linux/capability.h>
#include <sys/resource.h>

struct world {
    struct agx_image image;
    struct agx_spec spec;
    struct agx_host_view host_view;
    struct agx_cgroup_entry cgroup;
    struct agx_plan_build c;
    struct agx_buf packet;
    struct agx_plan plan;
};

static void word(struct agx_words *w, const char *text)
{
    ASSERT_OK(agx_words_add(w, agx_str_from(text), NULL));
}

static void open_world(struct world *w)
{
    *w = (struct world){ .cgroup = AGX_CGROUP_ENTRY_INIT,
                         .packet = AGX_BUF_INIT(AGX_INIT_PACKET_MAX) };
    agx_spec_init(&w->spec);
    word(&w->image.layers, "/layers/2");
    word(&w->image.layers, "/layers/1");
    w->c = (struct agx_plan_build){ .image = &w->image,
                                    .spec = &w->spec,
                                    .sandbox_id = "web-1",
                                    .host_view = &w->host_view,
                                    .dir = "/data/boxes/web-1/0",
                                    .ground = "/data/ground",
                                    .devices = "/run/dev",
                                    .cgroup = &w->cgroup,
                                    .seccomp = AGX_STR("12345678"),
                                    .caps = 5,
                                    .host_uid = 1000,
                                    .host_gid = 100,
                                    .at_once = true };
}

static void close_world(struct world *w)
{
    agx_image_config_done(&w->image.config);
    agx_words_done(&w->image.layers);
    agx_spec_done(&w->spec);
    agx_host_view_done(&w->host_view);
    agx_buf_done(&w->packet);
}

static void build(struct world *w)
{
    struct agx_error *err = NULL;
    char text[256];

    agx_buf_clear(&w->packet);
    if (agx_plan_build_encode(&w->c, &w->packet, &err) < 0)
        FAIL("%s", agx_error_format(err, text, sizeof(text)));
    ASSERT_OK(agx_plan_decode(agx_buf_peek(&w->packet), &w->plan, NULL));
}

/* The words of a list with blanks between them. */
static void check_list(struct agx_init_list l, const char *want)
{
    _cleanup_buf_ struct agx_buf all = AGX_BUF_INIT(4096);

    for (const char *s; (s = agx_init_list_next(&l));)
        ASSERT_OK(agx_buf_printf(&all, "%s%s", all.len > 0 ? " " : "", s));
    ASSERT_STR(agx_str_from(want), agx_buf_peek(&all));
}

static bool has_word(struct agx_init_list l, const char *want)
{
    for (const char *s; (s = agx_init_list_next(&l));) {
        if (strcmp(s, want) == 0)
            return true;
    }
    return false;
}

TEST(compose_of_a_sandbox_without_a_command_runs_nothing_of_the_image)
{
    struct world w;

    open_world(&w);
    word(&w.image.config.entrypoint, "/entry");
    word(&w.image.config.command, "serve");
    build(&w);
    ASSERT_UINT(0, w.plan.argv.count);
    ASSERT_STR(AGX_STR("0"), w.plan.user);
    ASSERT_STR(AGX_STR("/"), w.plan.cwd);
    ASSERT_STR(AGX_STR("web-1"), w.plan.hostname);
    ASSERT_STR(AGX_STR("/data/boxes/web-1/0/fs"), w.plan.writable);
    ASSERT_STR(AGX_STR("/run/dev"), w.plan.devices);
    ASSERT_UINT(5, w.plan.caps);
    ASSERT_STR(AGX_STR("12345678"), w.plan.seccomp);
    ASSERT_UINT(AGX_PLAN_AT_ONCE | AGX_PLAN_NO_NEW_PRIVS | AGX_PLAN_VOLATILE, w.plan.flags);
    ASSERT_UINT(AGX_PLAN_NO_FD, w.plan.cgroup_fd);
    check_list(w.plan.layers, "/layers/2 /layers/1 /data/ground");
    ASSERT_TRUE(has_word(w.plan.masked, "/proc/kcore"));
    ASSERT_TRUE(has_word(w.plan.frozen, "/proc/sys"));
    ASSERT_STR(AGX_STR(""), w.plan.log_dir);
    close_world(&w);
}

TEST(compose_of_a_command_has_the_entrypoint_before_it_and_the_images_user_and_place)
{
    struct world w;

    open_world(&w);
    word(&w.image.config.entrypoint, "/entry");
    word(&w.image.config.command, "serve");
    word(&w.spec.command, "run");
    word(&w.spec.command, "it");
    ASSERT_OK(agx_text_set(&w.image.config.user, "app:web", NULL));
    ASSERT_OK(agx_text_set(&w.image.config.workdir, "/srv", NULL));
    w.cgroup.dir_fd = 99;
    w.c.at_once = false;
    w.c.first = true;
    build(&w);
    check_list(w.plan.argv, "/entry run it");
    ASSERT_STR(AGX_STR("/data/boxes/web-1/0"), w.plan.log_dir);
    ASSERT_TRUE(w.plan.log_head > 0 && w.plan.log_tail > 0);
    ASSERT_UINT(AGX_NATIVE_PTYS, w.plan.ptys);
    ASSERT_STR(AGX_STR("app:web"), w.plan.user);
    ASSERT_STR(AGX_STR("/srv"), w.plan.cwd);
    ASSERT_CSTR("app:web", agx_plan_build_user(&w.c));
    ASSERT_CSTR("/srv", agx_plan_build_cwd(&w.c));
    ASSERT_UINT(AGX_PLAN_BUILD_FD_CGROUP, w.plan.cgroup_fd);
    ASSERT_TRUE(w.plan.flags & AGX_PLAN_CGROUP2);
    ASSERT_TRUE(w.plan.flags & AGX_PLAN_LIST_USER);
    ASSERT_FALSE(w.plan.flags & AGX_PLAN_AT_ONCE);
    close_world(&w);
}

/* With 0 the kernel would still hand a core to a program that the host named for them. */
TEST(compose_lets_nobody_have_a_core_taken_neither_as_a_file_nor_by_a_program)
{
    struct agx_init_rlimit x;
    struct world w;
    bool found = false;

    open_world(&w);
    build(&w);
    while (agx_init_rlimit_next(&w.plan.rlimits, &x)) {
        if (x.resource != RLIMIT_CORE)
            continue;
        found = true;
        ASSERT_UINT(1, x.soft);
        ASSERT_UINT(1, x.hard);
    }
    ASSERT_TRUE(found);
    close_world(&w);
}

TEST(compose_in_compatibility_mode_idles_behind_the_entrypoint_and_waits_for_the_user)
{
    struct world w;

    open_world(&w);
    word(&w.image.config.entrypoint, "/entry");
    w.c.compat = true;
    build(&w);
    ASSERT_UINT(4, w.plan.argv.count);
    ASSERT_TRUE(has_word(w.plan.argv, "/entry"));
    ASSERT_TRUE(has_word(w.plan.argv, "-lc"));
    ASSERT_CSTR("agbox", agx_plan_build_user(&w.c));
    ASSERT_STR(AGX_STR("0"), w.plan.user); /* the entrypoint makes the other */
    ASSERT_STR(AGX_STR("/workspace"), w.plan.cwd);
    ASSERT_TRUE(w.plan.await_user_ms > 0);
    ASSERT_FALSE(w.plan.flags & AGX_PLAN_NO_NEW_PRIVS);
    close_world(&w);
}

TEST(compose_environment_is_the_images_then_ours_then_the_callers)
{
    struct world w;

    open_world(&w);
    word(&w.image.config.env, "A=image");
    word(&w.image.config.env, "B=image=1");
    word(&w.image.config.env, "EMPTY");
    word(&w.image.config.env, "HOST_UID=image");
    ASSERT_OK(agx_pairs_set(&w.spec.envs, AGX_STR("A"), AGX_STR("spec"), NULL));
    ASSERT_OK(agx_pairs_set(&w.host_view.envs, AGX_STR("TOOL"), AGX_STR("/t"), NULL));
    build(&w);
    ASSERT_TRUE(has_word(w.plan.env, "A=spec"));
    ASSERT_TRUE(has_word(w.plan.env, "B=image=1"));
    ASSERT_TRUE(has_word(w.plan.env, "EMPTY="));
    ASSERT_TRUE(has_word(w.plan.env, "HOST_UID=1000"));
    ASSERT_TRUE(has_word(w.plan.env, "HOST_GID=100"));
    ASSERT_TRUE(has_word(w.plan.env, "TOOL=/t"));
    ASSERT_FALSE(w.plan.flags & AGX_PLAN_KEEP_HOME);
    ASSERT_OK(agx_pairs_set(&w.spec.envs, AGX_STR("HOME"), AGX_STR("/h"), NULL));
    build(&w);
    ASSERT_TRUE(w.plan.flags & AGX_PLAN_KEEP_HOME);
    close_world(&w);
}

TEST(compose_mounts_are_its_own_files_then_those_of_the_host)
{
    static const struct {
        const char *source, *target;
        uint32_t flags;
    } want[] = {
        { "/data/boxes/web-1/0/fs/etc/hosts", "/etc/hosts", AGX_PLAN_OVER_LINK },
        { "/data/boxes/web-1/0/fs/etc/resolv.conf", "/etc/resolv.conf", AGX_PLAN_OVER_LINK },
        { "/data/boxes/web-1/0/fs/etc/hostname", "/etc/hostname", AGX_PLAN_OVER_LINK },
        { "/src", "/work", AGX_PLAN_IDMAP | AGX_PLAN_RECURSIVE | AGX_PLAN_NO_SUID },
        { "/ref", "/ref", AGX_PLAN_IDMAP | AGX_PLAN_RECURSIVE | AGX_PLAN_READ_ONLY },
        { "/cache", "/c", AGX_PLAN_IDMAP | AGX_PLAN_LAYERED | AGX_PLAN_READ_ONLY },
        { "/own", "/own", AGX_PLAN_IDMAP | AGX_PLAN_RECURSIVE },
    };
    struct agx_plan_mount m;
    struct world w;

    open_world(&w);
    ASSERT_OK(agx_binds_add(&w.host_view.binds, "/src", "/work", true, NULL));
    ASSERT_OK(agx_binds_add(&w.host_view.binds, "/ref", "/ref", false, NULL));
    ASSERT_OK(agx_binds_add(&w.host_view.binds, "/cache", "/c", false, NULL));
    w.host_view.binds.items[2].layered = true;
    ASSERT_OK(agx_binds_add(&w.host_view.binds, "/own", "/own", true, NULL));
    w.host_view.binds.items[3].suid = true;
    build(&w);
    ASSERT_UINT(AGX_ARRAY_LEN(want), w.plan.mounts.count);
    for (size_t i = 0; i < AGX_ARRAY_LEN(want); i++) {
        ASSERT_TRUE(agx_plan_mount_next(&w.plan.mounts, &m));
        ASSERT_STR(agx_str_from(want[i].source), m.source);
        ASSERT_STR(agx_str_from(want[i].target), m.target);
        ASSERT_UINT(want[i].flags, m.flags);
    }
    close_world(&w);
}

TEST(compose_takes_the_capabilities_of_files_where_the_host_would_see_them)
{
    const uint64_t of_files = UINT64_C(1) << CAP_SETFCAP | UINT64_C(1) << CAP_MKNOD,
                   chown = UINT64_C(1) << CAP_CHOWN;
    struct world w;

    open_world(&w);
    w.c.caps = of_files | chown;
    ASSERT_OK(agx_binds_add(&w.host_view.binds, "/ref", "/ref", false, NULL));
    ASSERT_OK(agx_binds_add(&w.host_view.binds, "/own", "/own", true, NULL));
    w.host_view.binds.items[1].suid = true;
    build(&w);
    ASSERT_UINT(of_files | chown, w.plan.caps);
    ASSERT_OK(agx_binds_add(&w.host_view.binds, "/src", "/work", true, NULL));
    build(&w);
    ASSERT_UINT(chown, w.plan.caps);
    close_world(&w);
}

TEST(compose_of_a_companion_needs_a_command_and_shows_nothing_of_the_host)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_companion *c;
    struct world w;

    open_world(&w);
    ASSERT_OK(agx_spec_add_companion(&w.spec, &c, NULL));
    ASSERT_OK(agx_text_set(&c->name, "db", NULL));
    ASSERT_OK(agx_text_set(&c->image, "postgres", NULL));
    ASSERT_OK(agx_pairs_set(&c->envs, AGX_STR("A"), AGX_STR("db"), NULL));
    ASSERT_OK(agx_pairs_set(&w.spec.envs, AGX_STR("A"), AGX_STR("primary"), NULL));
    ASSERT_OK(agx_binds_add(&w.host_view.binds, "/src", "/work", true, NULL));
    w.c.companion = c;
    ASSERT_CODE(AGX_FAILED_PRECONDITION, agx_plan_build_encode(&w.c, &w.packet, &err));
    ASSERT_MESSAGE(err, "companion_containers[db]");
    word(&w.image.config.command, "serve");
    build(&w);
    check_list(w.plan.argv, "serve");
    ASSERT_UINT(3, w.plan.mounts.count);
    ASSERT_TRUE(has_word(w.plan.env, "A=db"));
    ASSERT_FALSE(has_word(w.plan.env, "HOST_UID=1000"));
    ASSERT_STR(AGX_STR("db"), w.plan.hostname);
    ASSERT_UINT(AGX_NATIVE_COMPANION_PTYS, w.plan.ptys);
    word(&c->command, "other");
    build(&w);
    check_list(w.plan.argv, "other");
    close_world(&w);
}

/* What is left of the kernel's default for other sandboxes. */
TEST(compose_leaves_terminals_to_others_with_all_companions)
{
    const int members = AGX_NATIVE_PTYS + (AGX_NSSET_MEMBERS_MAX - 1) * AGX_NATIVE_COMPANION_PTYS;

    ASSERT_TRUE(members < 4096 - 1024);
}

/* ---- /etc/hosts ---- */

TEST(etc_hosts_names_everybody_on_its_network_and_leads_nowhere_on_the_host)
{
    struct agx_nsset_member members[2] = { { .address = "10.213.0.2" },
                                           { .address = "10.213.0.3" } };
    const struct agx_nsset nsset = { .n = 2, .members = members };
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(4096);
    _cleanup_(agx_words_done) struct agx_words hosts = { 0 };
    struct agx_companion *c;
    struct agx_spec spec;
    const struct agx_etc etc = { "web-1", &spec, &nsset, &hosts };

    agx_spec_init(&spec);
    ASSERT_OK(agx_spec_add_companion(&spec, &c, NULL));
    ASSERT_OK(agx_text_set(&c->name, "db", NULL));
    word(&hosts, "pypi.org:151.101.0.223");
    ASSERT_OK(agx_etc_hosts(&etc, 0, &text));
    ASSERT_STR(AGX_STR("127.0.0.1\tlocalhost\n"
                       "::1\tlocalhost ip6-localhost ip6-loopback\n"
                       "0.0.0.0\thost.docker.internal gateway.docker.internal\n"
                       "10.213.0.2\tweb-1\n"
                       "10.213.0.3\tdb\n"
                       "151.101.0.223\tpypi.org\n"),
               agx_buf_peek(&text));
    agx_spec_done(&spec);
}

TEST(etc_hosts_without_a_network_knows_its_own_name)
{
    struct agx_nsset_member member = { 0 };
    const struct agx_nsset nsset = { .n = 1, .members = &member };
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(4096);
    const struct agx_words none = { 0 };
    const struct agx_etc etc = { "web-1", NULL, &nsset, &none };
    char name[AGX_NATIVE_HOSTNAME_MAX + 1];

    ASSERT_OK(agx_etc_hosts(&etc, 0, &text));
    ASSERT_NOT_NULL(memmem(text.data, text.len, "127.0.1.1\tweb-1\n", 16));
    ASSERT_CSTR("web-1", agx_etc_hostname(&etc, 0, name));
}
