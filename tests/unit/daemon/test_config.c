#include "daemon/config.h"
#include "daemon/config_internal.h"
#include "tests/support/test.h"

#include <stdio.h>

#define TEXT_MAX ((size_t)64 << 10)

static int read_text(struct agx_config *c, const char *text, struct agx_error **err)
{
    return agx_config_read(c, agx_str_from(text), "config.yaml", err);
}

/* Reads into the defaults; the caller frees `err`. */
static int refusal(const char *text, struct agx_error **err)
{
    struct agx_config c = AGX_CONFIG_INIT;
    int r = read_text(&c, text, err);

    agx_config_done(&c);
    return r;
}

TEST(config_sets_what_the_file_has_and_leaves_the_rest)
{
    struct agx_config c = AGX_CONFIG_INIT;

    ASSERT_OK(read_text(&c,
                        "backend: fake:/tmp/world\n"
                        "compat: agbox\n"
                        "allow_uids: [1000, 0]\n"
                        "log: {level: debug, format: json, max_size: 1k, keep: 0, check: 10ms}\n"
                        "limits:\n"
                        "  message: 8m\n"
                        "  execs_per_uid: 3\n"
                        "sandbox:\n"
                        "  idle_ttl: 0\n"
                        "  cleanup_ttl: \"1h30m\"\n"
                        "store: {grouping: false, verify: 2s}\n"
                        "network: {lan: block}\n"
                        "docker: {control: stdio, isolation: off, pool: 10.9.0.0/20,\n"
                        "         pool_prefix: 24, networks_ready: 4, pids: 7, init: /x/init}\n",
                        NULL));
    ASSERT_CSTR("fake:/tmp/world", c.backend);
    ASSERT_TRUE(c.compat);
    ASSERT_UINT(2, c.allow_uids.len);
    ASSERT_UINT(1000, c.allow_uids.ids[0]);
    ASSERT_UINT(AGX_LOG_DEBUG, c.log.level);
    ASSERT_UINT(AGX_LOG_JSON, c.log.format);
    ASSERT_UINT(1024, c.log_file_max);
    ASSERT_UINT(0, c.log_keep);
    ASSERT_UINT(10, c.log_check_ms);
    ASSERT_UINT(8 << 20, c.rpc.message_max);
    ASSERT_UINT(3, c.manager.execs_per_uid);
    ASSERT_INT(0, c.manager.idle_ttl_ns);
    ASSERT_INT(INT64_C(5400) * 1000000000, c.manager.cleanup_ttl_ns);
    ASSERT_FALSE(c.store.grouping);
    ASSERT_UINT(2, c.store.verify_s);
    ASSERT_TRUE(c.lan_blocked);
    ASSERT_INT(AGX_DOCKER_CONTROL_STDIO, c.docker.control);
    ASSERT_TRUE(c.docker.isolation_off);
    ASSERT_CSTR("10.9.0.0/20", c.docker.pool);
    ASSERT_UINT(24, c.docker.pool_prefix);
    ASSERT_UINT(4, c.docker.networks_ready);
    ASSERT_UINT(7, c.docker.pids);
    ASSERT_CSTR("/x/init", c.docker.init);
    ASSERT_UINT(AGX_GRPC_STREAMS_MAX, c.rpc.streams_max);
    ASSERT_UINT(AGX_CREATE_MS, c.manager.create_ms);
    ASSERT_OK(agx_config_check(&c, NULL));
    agx_config_done(&c);
}

TEST(config_printed_reads_back_as_the_same)
{
    const char *const texts[] = {
        "",
        "backend: \"odd \\\"name\\\" \\u00e9: # \\\\ \\n\"\nallow_uids: [1, 2, 4294967294]\n",
        "backend: \"\\u0085\\u009e\\u2028\\uFEFF\\U0001F600 \\x7f\\t\"\n",
        "log: {level: error, max_size: 12345}\nstore: {grouping: no}\n",
        "docker: {pool: \"\", init: /x, control: engine}\nnetwork: {lan: block}\n",
        "sandbox: {idle_ttl: 1h1m1.000000001s, look: 1ms}\nshutdown: {grace: 0, limit: 1ms}\n",
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(texts); i++) {
        _cleanup_buf_ struct agx_buf first = AGX_BUF_INIT(TEXT_MAX);
        _cleanup_buf_ struct agx_buf second = AGX_BUF_INIT(TEXT_MAX);
        struct agx_config a = AGX_CONFIG_INIT, b = AGX_CONFIG_INIT;

        /* `no` is not among the words for false. */
        ASSERT_INT(i == 3 ? -AGX_INVALID_ARGUMENT : 0, read_text(&a, texts[i], NULL));
        ASSERT_OK(agx_config_print(&a, &first));
        ASSERT_OK(agx_config_read(&b, agx_buf_peek(&first), "again", NULL));
        ASSERT_OK(agx_config_print(&b, &second));
        ASSERT_STR(agx_buf_peek(&first), agx_buf_peek(&second));
        agx_config_done(&a);
        agx_config_done(&b);
    }
}

TEST(config_defaults_are_allowed_values_each_with_a_meaning)
{
    const struct agx_config c = AGX_CONFIG_INIT;

    for (size_t i = 0; i < agx_config_keys_len; i++) {
        const struct agx_config_key *k = &agx_config_keys[i];

        ASSERT_TRUE(k->means && k->means[0]);
        if (k->kind == AGX_CONFIG_TEXT || k->kind == AGX_CONFIG_UIDS)
            continue;
        if (agx_config_number(&c, k) < k->min || agx_config_number(&c, k) > k->max)
            FAIL("the default of '%s' is not allowed", k->name);
    }
    ASSERT_OK(agx_config_check(&c, NULL));
}

TEST(config_names_the_controls_of_docker_as_the_backend_does)
{
    for (unsigned i = 0; i < AGX_DOCKER_CONTROL_COUNT; i++) {
        struct agx_config c = AGX_CONFIG_INIT;
        char text[64];

        (void)snprintf(text, sizeof(text), "docker: {control: %s}\n",
                       agx_docker_control_mode_name((enum agx_docker_control)i));
        ASSERT_OK(read_text(&c, text, NULL));
        ASSERT_UINT(i, c.docker.control);
        agx_config_done(&c);
    }
}

TEST(config_refusal_names_file_line_key_and_what_is_allowed)
{
    static const struct {
        const char *text, *words[3];
    } rows[] = {
        { "log:\n  level: loud\n", { "config.yaml: line 2", "'log.level'", "debug, info" } },
        { "\n\nlogg: 1\n", { "line 3", "'logg'", "log, limits" } },
        { "log:\n  levell: info\n", { "line 2", "'log.levell'", "level, format" } },
        { "log: info\n", { "line 1", "'log'", "keys" } },
        { "log.level: info\n", { "line 1", "'log.level'", "there are" } },
        { "- 1\n", { "line 1", "the file", "keys" } },
        { "limits: {message: 1}\n", { "'limits.message'", "from 1k", "256m" } },
        { "limits: {streams: 0}\n", { "'limits.streams'", "'0'", "from 1" } },
        { "limits: {streams: -1}\n", { "'limits.streams'", "'-1'", "a number" } },
        { "sandbox: {look: 5}\n", { "'sandbox.look'", "'5'", "a time such as" } },
        { "sandbox: {look: -5s}\n", { "'sandbox.look'", "'-5s'", "from 1ms" } },
        { "store: {grouping: 1}\n", { "'store.grouping'", "'1'", "true or false" } },
        { "store: {grouping: [true]}\n", { "'store.grouping'", "true or false", "" } },
        { "backend:\n", { "'backend'", "a text", "line 1" } },
        { "backend: {a: b}\n", { "'backend'", "a text", "" } },
        { "allow_uids: 5\n", { "'allow_uids'", "a list", "line 1" } },
        { "allow_uids:\n- 5\n- me\n", { "'allow_uids'", "'me'", "line 3" } },
        { "allow_uids: [4294967295]\n", { "'allow_uids'", "'4294967295'", "" } },
        { "allow_uids: [[1]]\n", { "'allow_uids'", "a list", "" } },
        { "log: {keep: 1}\nlog: {keep: 2}\n", { "config.yaml", "line 2", "log" } },
        { "log: {keep: 1\n", { "config.yaml", "line", "" } },
        { "\xff\n", { "config.yaml", "", "" } },
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(rows); i++) {
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;

        ASSERT_CODE(AGX_INVALID_ARGUMENT, refusal(rows[i].text, &err));
        for (size_t w = 0; w < AGX_ARRAY_LEN(rows[i].words); w++)
            ASSERT_MESSAGE(err, rows[i].words[w]);
    }
}

TEST(config_without_content_is_the_default)
{
    const char *const texts[] = {
        "", "\n", "# nothing\r\n\r\n", "---\n", "# a\n---\n# b\n", "log:\n", "log: {}", "log: ~\n"
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(texts); i++)
        ASSERT_OK(refusal(texts[i], NULL));
}

TEST(config_aliases_stand_for_what_they_name)
{
    struct agx_config c = AGX_CONFIG_INIT;

    ASSERT_OK(read_text(&c, "deadline: {stop: &t 7s, delete: *t}\n", NULL));
    ASSERT_UINT(7000, c.manager.delete_ms);
    agx_config_done(&c);
}

TEST(config_with_more_users_than_the_list_holds_is_refused)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(TEXT_MAX);
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_config c = AGX_CONFIG_INIT;

    ASSERT_OK(agx_buf_printf(&text, "allow_uids:\n"));
    for (int i = 0; i < AGX_ALLOW_UIDS_MAX; i++)
        ASSERT_OK(agx_buf_printf(&text, "- %d\n", i));
    ASSERT_OK(agx_config_read(&c, agx_buf_peek(&text), "f", NULL));
    ASSERT_UINT(AGX_ALLOW_UIDS_MAX, c.allow_uids.len);
    ASSERT_OK(agx_buf_printf(&text, "- 7\n"));
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_config_read(&c, agx_buf_peek(&text), "f", &err));
    ASSERT_MESSAGE(err, "256");
    agx_config_done(&c);
}

TEST(config_set_takes_an_option_and_refuses_without_a_line)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_config c = AGX_CONFIG_INIT;

    ASSERT_OK(agx_config_set(&c, "backend", "fake", NULL));
    ASSERT_OK(agx_config_set(&c, "backend", "fake:x", NULL));
    ASSERT_CSTR("fake:x", c.backend);
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_config_set(&c, "compat", "docker", &err));
    ASSERT_MESSAGE(err, "'compat' is 'docker', but it must be one of none, agbox");
    ASSERT_FALSE(strstr(err->message, "line"));
    agx_config_done(&c);
}

TEST(config_values_that_do_not_go_together_are_refused)
{
    const char *const texts[] = {
        "store: {map_size: 2m, map_max: 1m}\n",
        "crash: {first_retry: 2s, max_retry: 1s}\n",
        "retry: {first: 2s, max: 1s}\n",
        "shutdown: {grace: 2s, limit: 2s}\n",
        "docker: {pool: here}\n",
        "docker: {pool: 10.0.0.0/28, pool_prefix: 24}\n",
        "docker: {pool_prefix: 31}\n",
        "docker: {init: agentix-init}\n",
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(texts); i++) {
        struct agx_config c = AGX_CONFIG_INIT;

        ASSERT_OK(read_text(&c, texts[i], NULL));
        ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_config_check(&c, NULL));
        agx_config_done(&c);
    }
    agx_config_done(NULL);
}
