#include "base/limits.h"
#include "core/spec_yaml.h"
#include "core/yaml.h"
#include "tests/support/test.h"

#include <stdio.h>

static void take(struct agx_spec *s, const char *yaml)
{
    struct agx_error *err = NULL;
    char text[512];

    if (agx_spec_from_yaml(s, agx_str_from(yaml), &err) < 0)
        FAIL("%s", agx_error_format(err, text, sizeof(text)));
}

static void refuse(struct agx_str yaml, const char *words)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_spec s;

    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_spec_from_yaml(&s, yaml, &err));
    ASSERT_CSTR("invalid config_yaml", err->message);
    ASSERT_MESSAGE(err, words);
}

TEST(spec_yaml_reads_every_key)
{
    const struct agx_companion *c;
    struct agx_spec s;

    take(&s, "image: debian:12\n"
             "mounts:\n"
             "  - {source: ~/src, target: /src, writable: yes, suid: allow}\n"
             "  - source: /data\n"
             "    target: /data\n"
             "copies:\n"
             "  - source: /etc/hosts\n"
             "    target: /tmp\n"
             "    exclude_patterns: ['*.o', build]\n"
             "ports:\n"
             "  - {container_port: 80, host_port: 0x1F90, protocol: ' UDP '}\n"
             "  - {container_port: 81.9, host_port: 0o17}\n"
             "builtin_tools: [uv, uv]\n"
             "companion_containers:\n"
             "  web: {image: nginx}\n"
             "  db:\n"
             "    image: postgres\n"
             "    envs: {A: true, B: null, C: 007}\n"
             "    healthcheck: {test: [CMD, pg], interval: 1s, timeout: 1m30s, retries: 3,\n"
             "                  start_period: 2s, start_interval: 100ms}\n"
             "    post_start_on_primary: [echo ready]\n"
             "    command: [postgres, -c, 5]\n"
             "    cpu_limit: 0.5\n"
             "    memory_limit: 512m\n"
             "    disk_limit: 1g\n"
             "labels: {team: a, n: 1}\n"
             "envs:\n"
             "  TEXT: |\n"
             "    two\n"
             "    lines\n"
             "idle_ttl: 0\n"
             "command: [sh, -c, \"echo \\\"x\\\"\"]\n"
             "cpu_limit: 2\n"
             "memory_limit: 4g\n"
             "disk_limit: 10 GiB\n"
             "gpus: all\n"
             "network: egress\n"
             "egress: [10.0.0.0/8]\n");
    ASSERT_CSTR("debian:12", s.image);
    ASSERT_UINT(2, s.mounts_len);
    ASSERT_CSTR("~/src", s.mounts[0].source);
    ASSERT_TRUE(s.mounts[0].writable);
    ASSERT_INT(AGX_SUID_ALLOW, s.mounts[0].suid);
    ASSERT_FALSE(s.mounts[1].writable);
    ASSERT_INT(AGX_SUID_DENY, s.mounts[1].suid);
    ASSERT_CSTR("build", s.copies[0].exclude_patterns.items[1]);
    ASSERT_UINT(8080, s.ports[0].host_port);
    ASSERT_INT(AGX_PROTOCOL_UDP, s.ports[0].protocol);
    ASSERT_UINT(81, s.ports[1].container_port);
    ASSERT_UINT(15, s.ports[1].host_port);
    ASSERT_UINT(2, s.builtin_tools.len);
    ASSERT_UINT(2, s.companions_len);
    c = &s.companions[0];
    ASSERT_CSTR("db", c->name); /* by name, not as written */
    ASSERT_CSTR("web", s.companions[1].name);
    ASSERT_FALSE(s.companions[1].healthcheck.set);
    ASSERT_CSTR("true", agx_pairs_get(&c->envs, "A"));
    ASSERT_CSTR("", agx_pairs_get(&c->envs, "B"));
    ASSERT_CSTR("007", agx_pairs_get(&c->envs, "C"));
    ASSERT_INT(90000000000, c->healthcheck.timeout_ns);
    ASSERT_INT(100000000, c->healthcheck.start_interval_ns);
    ASSERT_UINT(3, c->healthcheck.retries);
    ASSERT_CSTR("5", c->command.items[2]);
    ASSERT_CSTR("0.5", c->limits.cpu);
    ASSERT_CSTR("1", agx_pairs_get(&s.labels, "n"));
    ASSERT_CSTR("two\nlines\n", agx_pairs_get(&s.envs, "TEXT"));
    ASSERT_INT(0, s.idle_ttl_ns);
    ASSERT_CSTR("echo \"x\"", s.command.items[2]);
    ASSERT_CSTR("2", s.limits.cpu);
    ASSERT_CSTR("10 GiB", s.limits.disk);
    ASSERT_CSTR("all", s.gpus);
    ASSERT_INT(AGX_NETWORK_EGRESS, s.network);
    ASSERT_CSTR("10.0.0.0/8", s.egress.items[0]);
    agx_spec_done(&s);
}

TEST(spec_yaml_null_is_unset)
{
    struct agx_spec s;

    take(&s, "image: ~\nmounts:\ncommand: null\nidle_ttl: \"\"\nenvs:\nlabels: {a: }\n"
             "companion_containers: {db: }\n");
    ASSERT_NULL(s.image);
    ASSERT_UINT(0, s.mounts_len);
    ASSERT_UINT(0, s.command.len);
    ASSERT_INT(AGX_NS_UNSET, s.idle_ttl_ns);
    ASSERT_CSTR("", agx_pairs_get(&s.labels, "a"));
    ASSERT_UINT(1, s.companions_len);
    ASSERT_CSTR("db", s.companions[0].name);
    agx_spec_done(&s);
    take(&s, "image: \"null\"\ngpus: !!str ~\n");
    ASSERT_CSTR("null", s.image);
    ASSERT_CSTR("~", s.gpus);
    agx_spec_done(&s);
}

TEST(spec_yaml_reads_the_first_document_only)
{
    struct agx_spec s;

    take(&s, "---\nimage: a\n---\nimage: b\nunknown: 1\n");
    ASSERT_CSTR("a", s.image);
    agx_spec_done(&s);
}

TEST(spec_yaml_follows_aliases_and_merge_keys)
{
    struct agx_spec s;

    take(&s, "envs: &e {A: 1, B: 2}\n"
             "labels:\n"
             "  <<: *e\n"
             "  B: 3\n"
             "companion_containers:\n"
             "  one: &base {image: x, cpu_limit: 1, envs: *e}\n"
             "  two: {<<: [{image: y}, *base], cpu_limit: 2}\n"
             "  three: *base\n");
    ASSERT_UINT(2, s.labels.len);
    ASSERT_CSTR("1", agx_pairs_get(&s.labels, "A"));
    ASSERT_CSTR("3", agx_pairs_get(&s.labels, "B"));
    ASSERT_UINT(3, s.companions_len);
    ASSERT_CSTR("three", s.companions[1].name);
    ASSERT_CSTR("x", s.companions[1].image);
    ASSERT_CSTR("two", s.companions[2].name);
    ASSERT_CSTR("y", s.companions[2].image);      /* the first of the list wins */
    ASSERT_CSTR("2", s.companions[2].limits.cpu); /* and the mapping's own over all */
    ASSERT_CSTR("2", agx_pairs_get(&s.companions[2].envs, "B"));
    agx_spec_done(&s);
}

TEST(spec_yaml_refuses_what_it_does_not_know)
{
    static const struct {
        const char *yaml, *words;
    } bad[] = {
        { "imag: x\n", "line 1: field imag not found" },
        { "image: x\n\nmounts:\n- {source: a, mode: rw}\n", "line 4: field mode not found" },
        { "companion_containers: {db: {name: x}}\n", "field name not found" },
        { "companion_containers: {db: {healthcheck: {tests: []}}}\n", "field tests not found" },
        { "image: a\nimage: b\n", "line 2: mapping key \"image\" is already defined" },
        { "labels: {a: 1, b: 2, a: 3}\n", "mapping key \"a\" is already defined" },
        { "- image\n", "expected a mapping" },
        { "image\n", "expected a mapping" },
        { "null\n", "expected a mapping" },
        { "# nothing\n", "EOF" },
        { "", "EOF" },
        { "   \n\n", "EOF" },
        { "image: [x]\n", "line 1: expected a string" },
        { "command: ls -l\n", "expected a list" },
        { "command: {a: b}\n", "expected a list" },
        { "command: []\n", "command: empty array is not allowed" },
        { "command: [a, '']\n", "command[1]: empty string entry is not allowed" },
        { "command: [a, ~]\n", "command[1]: empty string entry is not allowed" },
        { "companion_containers: {db: {command: []}}\n",
          "companion_containers[db].command: empty array is not allowed" },
        { "companion_containers: {db: {command: [x, '']}}\n",
          "companion_containers[db].command[1]: empty string" },
        { "companion_containers: [a]\n", "expected a mapping" },
        { "mounts: [x]\n", "expected a mapping" },
        { "mounts: {}\n", "expected a list" },
        { "mounts: [{writable: maybe}]\n", "expected true or false" },
        { "mounts: [{suid: maybe}]\n", "unknown word 'maybe'" },
        { "mounts: [{writable: 'yes'}]\n", "expected true or false" },
        { "ports: [{host_port: -1}]\n", "expected a whole number" },
        { "ports: [{host_port: 4294967296}]\n", "expected a whole number" },
        { "ports: [{host_port: '80'}]\n", "expected a whole number" },
        { "ports: [{host_port: 0xg}]\n", "expected a whole number" },
        { "ports: [{protocol: icmp}]\n", "unknown word 'icmp'" },
        { "network: host\n", "unknown word 'host'" },
        { "idle_ttl: 5\n", "line 1" },
        { "companion_containers: {db: {healthcheck: {interval: 5}}}\n", "line 1" },
        { "labels: {a: [1]}\n", "expected a string" },
        { "labels: {[a]: 1}\n", "a mapping key must be a scalar" },
        { "envs: *nothing\n", "line 1: unknown anchor" },
        { "envs: &e {A: *e}\n", "an anchor contains itself" },
        { "<<: 5\n", "a merge key needs a mapping" },
        { "<<: [5]\n", "a merge key needs a mapping" },
        { "image: \"a\\0b\"\n", "a NUL character is not allowed" },
        { "image: 'a\n", "line" },
        { "image: [\n", "line" },
        { "image: x\n\tcommand: y\n", "line" },
        { "{{{{", "line" },
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++)
        refuse(agx_str_from(bad[i].yaml), bad[i].words);
    refuse(AGX_STR("image: \xff\n"), "not UTF-8");
}

TEST(spec_yaml_negative_idle_time_passes_here)
{
    struct agx_spec s;

    take(&s, "idle_ttl: -5s\n");
    ASSERT_INT(-5000000000, s.idle_ttl_ns);
    agx_spec_done(&s);
}

TEST(spec_yaml_alias_bomb_ends_at_the_budget)
{
    char yaml[4096];
    size_t used = 0;

    /* Nine merges of the mapping in front of it, nine levels: 9^9 visits without a budget. */
    used += (size_t)snprintf(yaml, sizeof(yaml), "companion_containers:\n  a0: &a0 {image: x}\n");
    for (int i = 1; i < 10; i++) {
        used += (size_t)snprintf(yaml + used, sizeof(yaml) - used, "  a%d: &a%d {<<: [", i, i);
        for (int k = 0; k < 9; k++)
            used += (size_t)snprintf(yaml + used, sizeof(yaml) - used, "*a%d,", i - 1);
        used += (size_t)snprintf(yaml + used, sizeof(yaml) - used, "]}\n");
    }
    refuse(agx_str_bytes(yaml, used), "aliases counted each time");
}

TEST(spec_yaml_merge_chain_is_bounded)
{
    char yaml[8192];
    size_t used = (size_t)snprintf(yaml, sizeof(yaml), "companion_containers:\n  a0: &a0 {}\n");

    for (int i = 1; i < 30; i++)
        used += (size_t)snprintf(yaml + used, sizeof(yaml) - used, "  a%d: &a%d {<<: *a%d}\n", i, i,
                                 i - 1);
    refuse(agx_str_bytes(yaml, used), "nested too deeply");
}

TEST(spec_yaml_directives_are_bounded)
{
    /* All that breaks a line in YAML. */
    static const char *const breaks[] = { "\n", "\r", "\r\n", "\xc2\x85", "\xe2\x80\xa8" };
    static char yaml[AGX_YAML_MAX];
    struct agx_spec s;

    /* Without a limit each of these takes the library seconds. */
    for (size_t k = 0; k < AGX_ARRAY_LEN(breaks); k++) {
        size_t used = 0;

        for (int i = 0; used + 32 < sizeof(yaml); i++)
            used +=
                (size_t)snprintf(yaml + used, sizeof(yaml) - used, "%%TAG !a%d! x%s", i, breaks[k]);
        refuse(agx_str_bytes(yaml, used), "too many directives");
    }
    take(&s, "%YAML 1.1\n%TAG !e! tag:example.com,2000:\n---\nimage: !e!x a\n");
    ASSERT_CSTR("a", s.image);
    agx_spec_done(&s);
}

TEST(spec_yaml_anchors_are_bounded)
{
    static char yaml[AGX_YAML_ANCHORS_MAX * 20];
    size_t used = (size_t)snprintf(yaml, sizeof(yaml), "builtin_tools:\n");

    for (int i = 0; i <= AGX_YAML_ANCHORS_MAX; i++)
        used += (size_t)snprintf(yaml + used, sizeof(yaml) - used, "- &a%d x\n", i);
    refuse(agx_str_bytes(yaml, used), "line 1026: too many anchors");
}

TEST(spec_yaml_of_any_size_is_bounded)
{
    static char yaml[AGX_YAML_MAX + 2];
    size_t used = 0;

    memset(yaml, '[', sizeof(yaml));
    refuse(agx_str_bytes(yaml, AGX_YAML_MAX), ""); /* deep */
    refuse(agx_str_bytes(yaml, AGX_YAML_MAX + 1), "longer than 1048576 bytes");
    while (used + 16 < AGX_YAML_MAX)
        used += (size_t)snprintf(yaml + used, sizeof(yaml) - used, "k%zu: x\n", used);
    refuse(agx_str_bytes(yaml, used), "more than 16384 values"); /* wide */
}

static int look(void *user, const char *path, enum agx_path_kind *ret, struct agx_error **err)
{
    (void)user;
    (void)path;
    (void)err;
    *ret = AGX_PATH_DIRECTORY;
    return 0;
}

/* What becomes of a request's file and spec. */
static int from_request(struct agx_spec *ret, struct agx_str yaml, const struct agx_spec *create,
                        const struct agx_spec_host *host, struct agx_error **err)
{
    int r = agx_spec_join(ret, yaml, create, err);

    if (r == 0) {
        r = agx_spec_accept(ret, host, err);
        if (r < 0)
            agx_spec_done(ret);
    }
    return r;
}

TEST(spec_request_joins_file_and_spec_and_checks_the_whole)
{
    static const struct agx_spec_host host = { "/home/me", "/home/agbox", look, NULL };
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_spec create, s;

    ASSERT_CODE(AGX_INVALID_ARGUMENT, from_request(&s, AGX_STR(""), NULL, &host, &err));
    ASSERT_CSTR("create_spec is required", err->message);
    err = agx_error_free(err);
    agx_spec_init(&create);
    ASSERT_CODE(AGX_INVALID_ARGUMENT, from_request(&s, AGX_STR(""), &create, &host, &err));
    ASSERT_CSTR("create_spec.image is required", err->message);
    err = agx_error_free(err);
    ASSERT_CODE(AGX_INVALID_ARGUMENT,
                from_request(&s, AGX_STR("envs: {}\n"), &create, &host, &err));
    ASSERT_CSTR("create_spec.image is required", err->message);
    err = agx_error_free(err);
    ASSERT_CODE(AGX_INVALID_ARGUMENT, from_request(&s, AGX_STR("a: b\n"), &create, &host, &err));
    ASSERT_MESSAGE(err, "invalid config_yaml: line 1: field a not found");

    ASSERT_OK(from_request(&s, AGX_STR("image: x\nmounts: [{source: ~/a, target: /b}]\n"), NULL,
                           &host, NULL));
    ASSERT_CSTR("x", s.image);
    ASSERT_CSTR("/home/me/a", s.mounts[0].source);
    agx_spec_done(&s);
    ASSERT_OK(agx_text_set(&create.image, "y", NULL));
    ASSERT_OK(from_request(&s, AGX_STR("image: x\ngpus: all\n"), &create, &host, NULL));
    ASSERT_CSTR("y", s.image);
    ASSERT_CSTR("all", s.gpus);
    agx_spec_done(&s);
    agx_spec_done(&create);
}

TEST(spec_request_forgives_tools_named_twice_only_with_a_file)
{
    static const struct agx_spec_host host = { "/home/me", "/home/agbox", look, NULL };
    struct agx_spec create, s;

    agx_spec_init(&create);
    ASSERT_OK(agx_text_set(&create.image, "y", NULL));
    ASSERT_OK(agx_words_add(&create.builtin_tools, AGX_STR("uv"), NULL));
    ASSERT_OK(agx_words_add(&create.builtin_tools, AGX_STR("uv"), NULL));
    ASSERT_CODE(AGX_INVALID_ARGUMENT, from_request(&s, AGX_STR(""), &create, &host, NULL));
    ASSERT_OK(from_request(&s, AGX_STR("builtin_tools: [git, uv, git]\n"), &create, &host, NULL));
    ASSERT_UINT(2, s.builtin_tools.len);
    agx_spec_done(&s);
    agx_spec_done(&create);
}
