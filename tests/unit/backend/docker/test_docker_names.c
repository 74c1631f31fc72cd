#include "tests/support/docker.h"

TEST(names_are_ours_by_default)
{
    struct agx_docker_names n;
    struct agx_sandbox sb;

    sandbox_init(&sb, "web_1");
    (void)companion(&sb.spec, "db");
    (void)companion(&sb.spec, "my cache");
    (void)companion(&sb.spec, "my.cache");
    ASSERT_OK(agx_docker_names_init(&n, &ours, &sb, NULL));
    ASSERT_CSTR("agentix-web_1", n.network);
    ASSERT_CSTR("agentix-web_1", n.primary);
    ASSERT_UINT(3, n.companions_len);
    ASSERT_CSTR("agentix-web_1.db", n.companions[0]);
    ASSERT_CSTR("agentix-web_1.my-cache.1", n.companions[1]);
    ASSERT_CSTR("agentix-web_1.my-cache.2", n.companions[2]);
    agx_docker_names_done(&n);
    agx_sandbox_done(&sb);
}

TEST(names_of_a_companion_and_of_another_sandbox_differ)
{
    struct agx_docker_names a, b;
    struct agx_sandbox web, web_db;

    sandbox_init(&web, "web1");
    sandbox_init(&web_db, "web1-db");
    (void)companion(&web.spec, "db");
    ASSERT_OK(agx_docker_names_init(&a, &ours, &web, NULL));
    ASSERT_OK(agx_docker_names_init(&b, &ours, &web_db, NULL));
    ASSERT_TRUE(strcmp(a.companions[0], b.primary) != 0);
    agx_docker_names_done(&a);
    agx_docker_names_done(&b);
    agx_sandbox_done(&web);
    agx_sandbox_done(&web_db);
}

TEST(names_are_those_of_agents_sandbox_in_compatibility_mode)
{
    struct agx_docker_names n;
    struct agx_sandbox sb;

    sandbox_init(&sb, "web_1-x");
    (void)companion(&sb.spec, "a/b\\c:d e.f_g");
    ASSERT_OK(agx_docker_names_init(&n, &compat, &sb, NULL));
    ASSERT_CSTR("agbox-net-web_1-x", n.network);
    ASSERT_CSTR("agbox-primary-web_1-x", n.primary);
    ASSERT_CSTR("agbox-cc-web_1-x-a-b-c-d-e-f_g", n.companions[0]);
    agx_docker_names_done(&n);
    agx_docker_names_done(NULL);
    agx_sandbox_done(&sb);
}

static void check_labels(const struct agx_docker_maker *m, const struct agx_sandbox *sb,
                         const struct agx_docker_tag *tag, const char *want)
{
    _cleanup_json_ json_t *labels = NULL;
    struct agx_docker_tag back = { 0 };

    ASSERT_OK(agx_docker_labels_new(m, tag, &sb->spec, &labels, NULL));
    expect(labels, "io.agentix.instance", "'" INSTANCE "'");
    (void)json_object_del(labels, "io.agentix.instance");
    {
        _cleanup_json_ json_t *rest = quoted(want);

        if (!json_equal(labels, rest))
            FAIL("labels are %s", json_dumps(labels, 0));
    }
    ASSERT_FALSE(agx_docker_labels_read(m, labels, &back));
    ASSERT_OK(json_object_set_new(labels, AGX_DOCKER_LABEL_INSTANCE, json_string(INSTANCE)));
    ASSERT_TRUE(agx_docker_labels_read(m, labels, &back));
    ASSERT_CSTR(tag->sandbox_id, back.sandbox_id);
    ASSERT_INT(tag->component, back.component);
    ASSERT_UINT(tag->companion, back.companion);
    ASSERT_CSTR(agx_text(tag->exec_user), back.exec_user);
    ASSERT_INT(tag->control, back.control);
    ASSERT_CSTR(agx_text(tag->egress), agx_text(back.egress));
}

TEST(labels_say_what_an_object_is_and_read_back)
{
    const struct agx_docker_tag network = { "web1", AGX_DOCKER_NETWORK, 0, NULL, 0 };
    const struct agx_docker_tag primary = { "web1", AGX_DOCKER_PRIMARY, 0, "1000:5",
                                            AGX_DOCKER_CONTROL_STDIO };
    const struct agx_docker_tag second = { "web1", AGX_DOCKER_COMPANION, 1, NULL, 0 };
    struct agx_sandbox sb;

    sandbox_init(&sb, "web1");
    (void)companion(&sb.spec, "db");
    (void)companion(&sb.spec, "cache");
    pair(&sb.spec.labels, "team", "red");
    check_labels(&ours, &sb, &network,
                 "{'io.agentix.sandbox-id': 'web1', 'io.agentix.component': 'network',"
                 " 'io.agentix.user.team': 'red'}");
    check_labels(&ours, &sb, &primary,
                 "{'io.agentix.sandbox-id': 'web1', 'io.agentix.component': 'primary',"
                 " 'io.agentix.exec-user': '1000:5', 'io.agentix.control': 'stdio',"
                 " 'io.agentix.user.team': 'red'}");
    check_labels(&ours, &sb, &second,
                 "{'io.agentix.sandbox-id': 'web1', 'io.agentix.component': 'companion',"
                 " 'io.agentix.companion': 'cache', 'io.agentix.companion-index': '1',"
                 " 'io.agentix.user.team': 'red'}");
    agx_sandbox_done(&sb);
}

#define PEER "io.github.1996fanrui.agents-sandbox."

TEST(labels_of_agents_sandbox_stand_beside_ours_in_compatibility_mode)
{
    const struct agx_docker_tag network = { "web1", AGX_DOCKER_NETWORK, 0, NULL, 0 };
    const struct agx_docker_tag primary = { "web1", AGX_DOCKER_PRIMARY, 0, "agbox",
                                            AGX_DOCKER_CONTROL_PIDFD };
    const struct agx_docker_tag first = { "web1", AGX_DOCKER_COMPANION, 0, NULL, 0 };
    struct agx_sandbox sb;

    sandbox_init(&sb, "web1");
    (void)companion(&sb.spec, "db");
    pair(&sb.spec.labels, "team", "red");
    check_labels(&compat, &sb, &network,
                 "{'io.agentix.sandbox-id': 'web1', 'io.agentix.component': 'network',"
                 " '" PEER "sandbox-id': 'web1', '" PEER "component': 'primary',"
                 " '" PEER "profile': 'default', '" PEER "user.team': 'red'}");
    check_labels(&compat, &sb, &primary,
                 "{'io.agentix.sandbox-id': 'web1', 'io.agentix.component': 'primary',"
                 " 'io.agentix.exec-user': 'agbox', 'io.agentix.control': 'pidfd',"
                 " '" PEER "sandbox-id': 'web1', '" PEER "component': 'primary',"
                 " '" PEER "profile': 'default', '" PEER "user.team': 'red'}");
    check_labels(&compat, &sb, &first,
                 "{'io.agentix.sandbox-id': 'web1', 'io.agentix.component': 'companion',"
                 " 'io.agentix.companion': 'db', 'io.agentix.companion-index': '0',"
                 " '" PEER "sandbox-id': 'web1', '" PEER "component': 'companion',"
                 " '" PEER "companion-container-name': 'db', '" PEER "user.team': 'red'}");
    agx_sandbox_done(&sb);
}

static bool is_ours(const char *labels)
{
    _cleanup_json_ json_t *value = quoted(labels);
    struct agx_docker_tag tag;

    return agx_docker_labels_read(&ours, value, &tag);
}

TEST(labels_of_others_or_without_sense_are_not_ours)
{
    ASSERT_FALSE(is_ours("null"));
    ASSERT_FALSE(is_ours("[]"));
    ASSERT_FALSE(is_ours("{}"));
    ASSERT_FALSE(is_ours("{'io.agentix.instance': 'another', 'io.agentix.component': 'network',"
                         " 'io.agentix.sandbox-id': 'web1'}"));
    ASSERT_TRUE(is_ours("{'io.agentix.instance': '" INSTANCE "',"
                        " 'io.agentix.component': 'network', 'io.agentix.sandbox-id': 'web1'}"));
    ASSERT_FALSE(is_ours("{'io.agentix.instance': '" INSTANCE "',"
                         " 'io.agentix.component': 'network', 'io.agentix.sandbox-id': '../x'}"));
    ASSERT_FALSE(is_ours("{'io.agentix.instance': '" INSTANCE "',"
                         " 'io.agentix.component': 'volume', 'io.agentix.sandbox-id': 'web1'}"));
    ASSERT_FALSE(is_ours("{'io.agentix.instance': '" INSTANCE "',"
                         " 'io.agentix.component': 'primary', 'io.agentix.sandbox-id': 'web1',"
                         " 'io.agentix.exec-user': '0', 'io.agentix.control': 'wish'}"));
    ASSERT_FALSE(is_ours("{'io.agentix.instance': '" INSTANCE "',"
                         " 'io.agentix.component': 'companion', 'io.agentix.sandbox-id': 'web1',"
                         " 'io.agentix.companion-index': '-1'}"));
    ASSERT_FALSE(is_ours("{'io.agentix.instance': '" INSTANCE "',"
                         " 'io.agentix.component': 'companion', 'io.agentix.sandbox-id': 'web1',"
                         " 'io.agentix.companion-index': '99999999999999999999'}"));
}
