#include "base/limits.h"
#include "core/spec.h"
#include "tests/support/test.h"

#include <stdio.h>

/* A host on which everything below /real is a file, and some names are of other kinds. */
static int look(void *user, const char *path, enum agx_path_kind *ret, struct agx_error **err)
{
    (void)user;
    if (strstr(path, "missing"))
        return agx_error_set(err, AGX_NOT_FOUND, "lstat %s: no such file or directory", path);
    *ret = strstr(path, "link")     ? AGX_PATH_SYMLINK
           : strstr(path, "device") ? AGX_PATH_OTHER
           : strstr(path, "sock")   ? AGX_PATH_SOCKET
                                    : AGX_PATH_DIRECTORY;
    return 0;
}

static const struct agx_spec_host host = { "/home/me", "/home/agbox", look, NULL };

static void minimal(struct agx_spec *s)
{
    agx_spec_init(s);
    ASSERT_OK(agx_text_set(&s->image, "debian:12", NULL));
}

static void word(struct agx_words *w, const char *text)
{
    ASSERT_OK(agx_words_add(w, agx_str_from(text), NULL));
}

static void pair(struct agx_pairs *p, const char *key, const char *value)
{
    ASSERT_OK(agx_pairs_set(p, agx_str_from(key), agx_str_from(value), NULL));
}

static void mount(struct agx_spec *s, const char *source, const char *target)
{
    struct agx_mount *m = NULL;

    ASSERT_OK(agx_spec_add_mount(s, &m, NULL));
    ASSERT_OK(agx_text_set(&m->source, source, NULL));
    ASSERT_OK(agx_text_set(&m->target, target, NULL));
}

static void copy(struct agx_spec *s, const char *source, const char *target)
{
    struct agx_copy *c = NULL;

    ASSERT_OK(agx_spec_add_copy(s, &c, NULL));
    ASSERT_OK(agx_text_set(&c->source, source, NULL));
    ASSERT_OK(agx_text_set(&c->target, target, NULL));
}

static void port(struct agx_spec *s, uint32_t container, uint32_t on_host, int32_t protocol)
{
    struct agx_port *p = NULL;

    ASSERT_OK(agx_spec_add_port(s, &p, NULL));
    *p = (struct agx_port){ container, on_host, protocol };
}

static struct agx_companion *companion(struct agx_spec *s, const char *name)
{
    struct agx_companion *c = NULL;

    ASSERT_OK(agx_spec_add_companion(s, &c, NULL));
    ASSERT_OK(agx_text_set(&c->name, name, NULL));
    ASSERT_OK(agx_text_set(&c->image, "redis:7", NULL));
    return c;
}

/* The spec is refused with exactly these words, and freed. */
static void refuse(struct agx_spec *s, const char *want)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    char text[1024];

    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_spec_accept(s, &host, &err));
    ASSERT_CSTR(want, agx_error_format(err, text, sizeof(text)));
    agx_spec_done(s);
}

TEST(spec_accept_takes_an_image_alone)
{
    struct agx_spec s;

    minimal(&s);
    ASSERT_OK(agx_spec_accept(&s, &host, NULL));
    agx_spec_done(&s);
    agx_spec_init(&s);
    refuse(&s, "create_spec.image is required");
}

TEST(spec_accept_checks_scalars)
{
    struct agx_spec s;

    minimal(&s);
    s.idle_ttl_ns = -1;
    refuse(&s, "idle_ttl must not be negative");
    minimal(&s);
    s.idle_ttl_ns = 0;
    ASSERT_OK(agx_text_set(&s.gpus, "all", NULL));
    ASSERT_OK(agx_spec_accept(&s, &host, NULL));
    ASSERT_OK(agx_text_set(&s.gpus, "2", NULL));
    refuse(&s, "gpus '2' is not supported: use \"\" or \"all\"");
    minimal(&s);
    pair(&s.envs, "AGENTS_SANDBOX_SUPPLEMENTAL_GROUPS", "1");
    refuse(&s, "envs.AGENTS_SANDBOX_SUPPLEMENTAL_GROUPS is reserved for the daemon");
}

TEST(spec_accept_makes_paths_absolute_and_clean)
{
    struct agx_spec s;

    minimal(&s);
    mount(&s, "~", "~");
    mount(&s, "~/src/./x/../y", "~/in//");
    mount(&s, "/run/sock", "/a/../../b");
    copy(&s, "/data/", "/c/.");
    ASSERT_OK(agx_spec_accept(&s, &host, NULL));
    ASSERT_CSTR("/home/me", s.mounts[0].source);
    ASSERT_CSTR("/home/agbox", s.mounts[0].target);
    ASSERT_CSTR("/home/me/src/y", s.mounts[1].source);
    ASSERT_CSTR("/home/agbox/in", s.mounts[1].target);
    ASSERT_CSTR("/b", s.mounts[2].target);
    ASSERT_CSTR("/data", s.copies[0].source);
    ASSERT_CSTR("/c", s.copies[0].target);
    agx_spec_done(&s);
}

TEST(spec_accept_refuses_bad_mounts_in_the_order_of_the_checks)
{
    static const struct {
        const char *source, *target, *want;
    } bad[] = {
        { "", "", "mount source is required" },
        { "~bob/x", "~al/y", "~username syntax is not supported: ~bob/x" },
        { "rel", "~al/y", "~username syntax is not supported: ~al/y" },
        { "rel", "", "mount source must be absolute: rel" },
        { "/missing", "",
          "mount source path is invalid: lstat /missing: no such file or directory" },
        { "/link", "", "mount source must not be a symlink: /link" },
        { "/device", "", "mount source must be a file, directory, or unix socket: /device" },
        { "/real", "", "mount target is required" },
        { "/real", "rel", "mount target must be absolute: rel" },
        { "/real", "/first/", "conflicting target /first between mount and mount" },
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++) {
        struct agx_spec s;

        minimal(&s);
        mount(&s, "/real/one", "/first");
        mount(&s, bad[i].source, bad[i].target);
        refuse(&s, bad[i].want);
    }
}

TEST(spec_accept_knows_two_ways_of_setuid_bits_in_mounts)
{
    for (int32_t suid = -1; suid <= AGX_SUID_COUNT; suid++) {
        struct agx_spec s;

        minimal(&s);
        mount(&s, "/real/one", "/first");
        s.mounts[0].suid = suid;
        if (suid < 0)
            refuse(&s, "suid of mount \"/first\" must be deny or allow, got -1");
        else if (suid == AGX_SUID_COUNT)
            refuse(&s, "suid of mount \"/first\" must be deny or allow, got 2");
        else {
            ASSERT_OK(agx_spec_accept(&s, &host, NULL));
            agx_spec_done(&s);
        }
    }
}

TEST(spec_accept_refuses_bad_copies_in_the_order_of_the_checks)
{
    static const struct {
        const char *source, *target, *want;
    } bad[] = {
        { "", "", "copy source is required" },
        { "~bob/x", "/y", "~username syntax is not supported: ~bob/x" },
        { "rel", "", "copy source must be absolute: rel" },
        { "/missing", "",
          "copy source path is invalid: lstat /missing: no such file or directory" },
        { "/link", "", "copy source must not be a symlink: /link" },
        { "/device", "", "copy source must be a file, directory, or unix socket: /device" },
        { "/a/..", "", "copy source must not be the root directory" },
        { "/real", "", "copy target is required" },
        { "/real", "rel", "copy target must be absolute: rel" },
        { "/real", "/first", "conflicting target /first between mount and copy" },
        { "/real", "/second", "conflicting target /second between copy and copy" },
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++) {
        struct agx_spec s;

        minimal(&s);
        mount(&s, "/real/one", "/first");
        copy(&s, "/real/two", "/second");
        copy(&s, bad[i].source, bad[i].target);
        refuse(&s, bad[i].want);
    }
}

TEST(spec_accept_checks_ports)
{
    static const struct {
        uint32_t container, on_host;
        int32_t protocol;
        const char *want;
    } bad[] = {
        { 0, 0, 0, "port container_port must be between 1 and 65535, got 0" },
        { 70000, 1, 0, "port container_port must be between 1 and 65535, got 70000" },
        { 1, 65536, 9, "port host_port must be between 1 and 65535, got 65536" },
        { 1, 1, 3, "port protocol must be TCP, UDP, or SCTP, got 3" },
        { 1, 1, -1, "port protocol must be TCP, UDP, or SCTP, got -1" },
        { 1, 80, 0, "duplicate host_port 80 with protocol tcp" },
        { 1, 53, 1, "duplicate host_port 53 with protocol udp" },
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++) {
        struct agx_spec s;

        minimal(&s);
        port(&s, 8080, 80, AGX_PROTOCOL_TCP);
        port(&s, 8080, 80, AGX_PROTOCOL_UDP); /* another protocol is another port */
        port(&s, 8080, 53, AGX_PROTOCOL_UDP);
        port(&s, bad[i].container, bad[i].on_host, bad[i].protocol);
        refuse(&s, bad[i].want);
    }
}

TEST(spec_accept_checks_companions)
{
    static const struct {
        const char *test[3], *want;
    } bad[] = {
        { { NULL }, "companion_containers[db].healthcheck.test is required" },
        { { "RUN", "x" },
          "companion_containers[db].healthcheck.test must begin with CMD, CMD-SHELL or NONE, got "
          "'RUN'" },
        { { "NONE", "x" }, "companion_containers[db].healthcheck.test: NONE takes no arguments" },
        { { "CMD" }, "companion_containers[db].healthcheck.test: CMD needs a command" },
        { { "CMD-SHELL" }, "companion_containers[db].healthcheck.test: CMD-SHELL needs a command" },
    };
    struct agx_companion *c;
    struct agx_spec s;

    minimal(&s);
    (void)companion(&s, "");
    refuse(&s, "companion_containers[0].name is required");
    minimal(&s);
    ASSERT_OK(agx_text_set(&companion(&s, "db")->image, "", NULL));
    refuse(&s, "companion_containers[db].image is required");
    minimal(&s);
    (void)companion(&s, "db");
    (void)companion(&s, "db");
    refuse(&s, "duplicate companion container name 'db'");
    minimal(&s);
    word(&companion(&s, "db")->post_start_on_primary, "echo");
    refuse(&s, "companion_containers[db].post_start_on_primary needs a healthcheck");
    minimal(&s);
    c = companion(&s, "db");
    word(&c->command, "a");
    word(&c->command, "");
    refuse(&s, "companion_containers[db].command[1]: empty string entry is not allowed");
    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++) {
        minimal(&s);
        c = companion(&s, "db");
        c->healthcheck.set = true;
        for (size_t k = 0; k < 3 && bad[i].test[k]; k++)
            word(&c->healthcheck.test, bad[i].test[k]);
        refuse(&s, bad[i].want);
    }
}

static void name_companion(struct agx_spec *s, const char *name)
{
    minimal(s);
    (void)companion(s, "db");
    (void)companion(s, name);
}

TEST(spec_accept_refuses_a_name_of_a_companion_that_breaks_a_hosts_file)
{
    static const char *const bad[] = {
        "a\n10.0.0.1 example.org", "a b", " a", "a\t", "a\r", "a#b", "\v", "\x01", "\x7f"
    };
    struct agx_spec_host any = host;
    char want[256];
    struct agx_spec s;

    any.any_companion_names = true;
    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++) {
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;

        (void)snprintf(want, sizeof(want),
                       "companion_containers[1].name '%s' must not contain blanks, control "
                       "characters or '#'",
                       bad[i]);
        name_companion(&s, bad[i]);
        refuse(&s, want);
        name_companion(&s, bad[i]);
        ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_spec_accept(&s, &any, &err));
        ASSERT_MESSAGE(err, want);
        agx_spec_done(&s);
    }
}

TEST(spec_accept_wants_dns_labels_as_names_of_companions_except_where_any_will_do)
{
    static const char *const good[] = {
        "a", "DB-1", "0", "a--b", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde"
    };
    static const char *const bad[] = {
        "my_db",
        "a.b",
        "-a",
        "a-",
        "b\xc3\xa4r",
        "a/b",
        "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
    };
    struct agx_spec_host any = host;
    char want[256];
    struct agx_spec s;

    any.any_companion_names = true;
    for (size_t i = 0; i < AGX_ARRAY_LEN(good); i++) {
        name_companion(&s, good[i]);
        ASSERT_OK(agx_spec_accept(&s, &host, NULL));
        agx_spec_done(&s);
    }
    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++) {
        (void)snprintf(want, sizeof(want),
                       "companion_containers[1].name '%s' must be 1 to 63 letters, digits or '-', "
                       "with a letter or digit at both ends",
                       bad[i]);
        name_companion(&s, bad[i]);
        refuse(&s, want);
        name_companion(&s, bad[i]);
        ASSERT_OK(agx_spec_accept(&s, &any, NULL));
        agx_spec_done(&s);
    }
}

TEST(spec_accept_checks_command_limits_and_tools)
{
    struct agx_spec s;

    minimal(&s);
    word(&s.command, "a");
    word(&s.command, "");
    refuse(&s, "command[1]: empty string entry is not allowed");
    minimal(&s);
    ASSERT_OK(agx_text_set(&companion(&s, "db")->limits.memory, "1x", NULL));
    ASSERT_OK(agx_text_set(&s.limits.disk, "-1g", NULL));
    {
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;

        ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_spec_accept(&s, &host, &err));
        ASSERT_MESSAGE(err, "disk_limit: disk_limit \"-1g\": ");
        err = agx_error_free(err);
        ASSERT_OK(agx_text_set(&s.limits.disk, "1g", NULL));
        ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_spec_accept(&s, &host, &err));
        ASSERT_MESSAGE(err, "companion_containers[db].memory_limit: "
                            "companion_containers[db].memory_limit \"1x\": ");
        err = agx_error_free(err);
        ASSERT_OK(agx_text_set(&s.limits.cpu, "9e99", NULL));
        ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_spec_accept(&s, &host, &err));
        ASSERT_INT(AGX_INVALID_ARGUMENT, err->code);
    }
    agx_spec_done(&s);
    minimal(&s);
    word(&s.builtin_tools, "");
    refuse(&s, "builtin resource id is required");
    minimal(&s);
    word(&s.builtin_tools, "uv");
    word(&s.builtin_tools, "uv");
    refuse(&s, "duplicate builtin resource \"uv\"");
    minimal(&s);
    word(&s.builtin_tools, "zz");
    refuse(&s, "unknown builtin resource \"zz\"");
}

TEST(spec_has_parts_of_tools_but_not_where_tools_are_whole)
{
    struct agx_spec_host whole = host;
    struct agx_error *err = NULL;
    struct agx_spec s;

    minimal(&s);
    word(&s.builtin_tools, "claude");
    word(&s.builtin_tools, "claude:settings");
    ASSERT_OK(agx_spec_accept(&s, &host, NULL));
    whole.whole_tools = true;
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_spec_accept(&s, &whole, &err));
    ASSERT_MESSAGE(err, "unknown builtin resource \"claude:settings\"");
    agx_error_free(err);
    agx_spec_done(&s);
}

TEST(spec_accept_checks_the_network)
{
    struct agx_spec s;

    minimal(&s);
    s.network = 3;
    refuse(&s, "network must be nat, none or egress, got 3");
    minimal(&s);
    word(&s.egress, "10.0.0.0/8");
    refuse(&s, "egress entries need network egress");
    minimal(&s);
    s.network = AGX_NETWORK_NONE;
    port(&s, 1, 1, 0);
    refuse(&s, "ports need a network, and network is none");
    minimal(&s);
    s.network = AGX_NETWORK_EGRESS;
    ASSERT_OK(agx_spec_accept(&s, &host, NULL)); /* an empty list: nothing is allowed */
    word(&s.egress, "10.0.0.0/8:443");
    ASSERT_OK(agx_spec_accept(&s, &host, NULL));
    word(&s.egress, "pypi.org:443");
    ASSERT_OK(agx_spec_accept(&s, &host, NULL));
    word(&s.egress, "*.pypi.org");
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_spec_accept(&s, &host, NULL));
    agx_words_done(&s.egress);
    for (size_t i = 0; i <= AGX_SPEC_ITEMS_MAX; i++)
        word(&s.egress, "10.0.0.0/8");
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_spec_accept(&s, &host, NULL));
    agx_spec_done(&s);
}

TEST(spec_limits_are_numbers_when_accepted)
{
    struct agx_limit_texts texts = { (char *)"0.5", (char *)"512m", NULL };
    struct agx_limits limits;

    ASSERT_OK(agx_limits_parse(&texts, "", &limits, NULL));
    ASSERT_INT(500, limits.cpu_millicores);
    ASSERT_INT(512 << 20, limits.memory_bytes);
    ASSERT_INT(0, limits.disk_bytes);
}

static void fill(struct agx_spec *s)
{
    struct agx_companion *c;

    minimal(s);
    mount(s, "/a", "/b");
    s->mounts[0].writable = true;
    s->mounts[0].suid = AGX_SUID_ALLOW;
    copy(s, "/c", "/d");
    word(&s->copies[0].exclude_patterns, "*.o");
    port(s, 1, 2, AGX_PROTOCOL_SCTP);
    c = companion(s, "db");
    pair(&c->envs, "K", "V");
    c->healthcheck.set = true;
    word(&c->healthcheck.test, "NONE");
    c->healthcheck.timeout_ns = 5;
    c->healthcheck.retries = 2;
    word(&c->post_start_on_primary, "true");
    word(&c->command, "redis");
    ASSERT_OK(agx_text_set(&c->limits.disk, "1g", NULL));
    word(&s->builtin_tools, "git");
    word(&s->builtin_tools, "git");
    pair(&s->labels, "l", "1");
    pair(&s->envs, "e", "1");
    s->idle_ttl_ns = 0;
    word(&s->command, "sh");
    ASSERT_OK(agx_text_set(&s->limits.cpu, "2", NULL));
    ASSERT_OK(agx_text_set(&s->gpus, "all", NULL));
    s->network = AGX_NETWORK_EGRESS;
    word(&s->egress, "::1");
}

TEST(spec_copy_shares_nothing_and_keeps_all)
{
    struct agx_spec s, t;
    const struct agx_companion *c;

    fill(&s);
    ASSERT_OK(agx_spec_copy(&t, &s, NULL));
    agx_spec_done(&s);
    ASSERT_CSTR("debian:12", t.image);
    ASSERT_CSTR("/b", t.mounts[0].target);
    ASSERT_TRUE(t.mounts[0].writable);
    ASSERT_INT(AGX_SUID_ALLOW, t.mounts[0].suid);
    ASSERT_CSTR("*.o", t.copies[0].exclude_patterns.items[0]);
    ASSERT_INT(AGX_PROTOCOL_SCTP, t.ports[0].protocol);
    c = &t.companions[0];
    ASSERT_CSTR("V", agx_pairs_get(&c->envs, "K"));
    ASSERT_TRUE(c->healthcheck.set);
    ASSERT_CSTR("NONE", c->healthcheck.test.items[0]);
    ASSERT_INT(5, c->healthcheck.timeout_ns);
    ASSERT_INT(AGX_NS_UNSET, c->healthcheck.interval_ns);
    ASSERT_INT(2, c->healthcheck.retries);
    ASSERT_CSTR("true", c->post_start_on_primary.items[0]);
    ASSERT_CSTR("redis", c->command.items[0]);
    ASSERT_CSTR("1g", c->limits.disk);
    ASSERT_UINT(2, t.builtin_tools.len);
    ASSERT_CSTR("1", agx_pairs_get(&t.labels, "l"));
    ASSERT_CSTR("1", agx_pairs_get(&t.envs, "e"));
    ASSERT_INT(0, t.idle_ttl_ns);
    ASSERT_CSTR("sh", t.command.items[0]);
    ASSERT_CSTR("2", t.limits.cpu);
    ASSERT_CSTR("all", t.gpus);
    ASSERT_INT(AGX_NETWORK_EGRESS, t.network);
    ASSERT_CSTR("::1", t.egress.items[0]);
    agx_spec_done(&t);
}

TEST(spec_merge_replaces_values_joins_maps_and_appends_lists)
{
    struct agx_spec base, over;

    fill(&base);
    agx_spec_init(&over);
    ASSERT_OK(agx_spec_merge(&base, &over, NULL)); /* nothing over it: but for tools, as before */
    ASSERT_CSTR("debian:12", base.image);
    ASSERT_UINT(1, base.builtin_tools.len);
    ASSERT_INT(0, base.idle_ttl_ns);
    ASSERT_UINT(1, base.command.len);
    ASSERT_INT(AGX_NETWORK_EGRESS, base.network);

    ASSERT_OK(agx_text_set(&over.image, "alpine", NULL));
    over.idle_ttl_ns = 9;
    pair(&over.labels, "l", "2");
    pair(&over.envs, "f", "2");
    mount(&over, "/x", "/b");
    word(&over.builtin_tools, "uv");
    word(&over.builtin_tools, "git");
    word(&over.command, "ls");
    word(&over.command, "-l");
    (void)companion(&over, "db");
    ASSERT_OK(agx_spec_merge(&base, &over, NULL));
    ASSERT_CSTR("alpine", base.image);
    ASSERT_INT(9, base.idle_ttl_ns);
    ASSERT_CSTR("2", agx_pairs_get(&base.labels, "l"));
    ASSERT_UINT(2, base.envs.len);
    ASSERT_UINT(2, base.mounts_len);
    ASSERT_CSTR("/x", base.mounts[1].source);
    ASSERT_UINT(2, base.builtin_tools.len);
    ASSERT_CSTR("uv", base.builtin_tools.items[1]);
    ASSERT_UINT(2, base.command.len);
    ASSERT_CSTR("ls", base.command.items[0]);
    ASSERT_CSTR("2", base.limits.cpu);
    ASSERT_UINT(2, base.companions_len);
    agx_spec_done(&base);
    agx_spec_done(&over);
}

TEST(spec_lists_are_bounded)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_port *p = NULL;
    struct agx_spec s;

    agx_spec_init(&s);
    for (int i = 0; i < AGX_SPEC_ITEMS_MAX; i++)
        ASSERT_OK(agx_spec_add_port(&s, &p, NULL));
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_spec_add_port(&s, &p, &err));
    ASSERT_MESSAGE(err, "ports has more than 1024 entries");
    agx_spec_done(&s);
}

TEST(healthcheck_budget_follows_its_settings_up_to_five_minutes)
{
    const int64_t second = 1000000000;
    struct agx_healthcheck h = { .interval_ns = AGX_NS_UNSET,
                                 .timeout_ns = AGX_NS_UNSET,
                                 .start_period_ns = AGX_NS_UNSET,
                                 .start_interval_ns = AGX_NS_UNSET };

    ASSERT_INT(120 * second, agx_healthcheck_budget_ns(&h));
    h.interval_ns = second;
    h.timeout_ns = 2 * second;
    h.retries = 1;
    ASSERT_INT(4 * second, agx_healthcheck_budget_ns(&h));
    h.start_period_ns = 10 * second;
    ASSERT_INT((10 + 5 + 4) * second, agx_healthcheck_budget_ns(&h));
    h.start_interval_ns = second;
    ASSERT_INT((10 + 2 + 4) * second, agx_healthcheck_budget_ns(&h));
    h.retries = UINT32_MAX;
    h.interval_ns = INT64_MAX;
    ASSERT_INT(300 * second, agx_healthcheck_budget_ns(&h));
}
