#include "tests/support/docker.h"

#define INIT "/usr/lib/agentix/agentix-init"
#define KEY "000102030405060708090a0b0c0d0e0f"
#define IDLE "trap 'exit 0' TERM INT; while :; do sleep 3600 & wait $!; done"

/* A sandbox, and an image as most are; each test changes what it is about. */
struct world {
    struct agx_sandbox sandbox;
    struct agx_docker_image image;
    struct agx_binds binds;
    struct agx_pairs tool_envs;
    struct agx_docker_frame frame;
    struct agx_docker_primary primary;
};

static void setup(struct world *w, const struct agx_docker_maker *maker)
{
    *w = (struct world){ 0 };
    sandbox_init(&w->sandbox, "web1");
    word(&w->image.env, "PATH=/bin");
    word(&w->image.entrypoint, "/entry");
    word(&w->image.command, "serve");
    w->frame = (struct agx_docker_frame){ .maker = maker,
                                          .sandbox = &w->sandbox,
                                          .network = "net",
                                          .control = AGX_DOCKER_CONTROL_PIDFD,
                                          .init_path = INIT,
                                          .pids = 4096 };
    w->primary = (struct agx_docker_primary){ .image = &w->image,
                                              .init_key = KEY,
                                              .binds = &w->binds,
                                              .tool_envs = &w->tool_envs,
                                              .host_uid = 1000,
                                              .host_gid = 100 };
}

static void teardown(struct world *w)
{
    agx_sandbox_done(&w->sandbox);
    agx_docker_image_done(&w->image);
    agx_binds_done(&w->binds);
    agx_pairs_done(&w->tool_envs);
}

static json_t *primary_body(struct world *w)
{
    json_t *body = NULL;

    ASSERT_OK(agx_docker_create_body_primary(&w->frame, &w->primary, &body, NULL));
    return body;
}

static json_t *companion_body(struct world *w, size_t place)
{
    json_t *body = NULL;

    ASSERT_OK(agx_docker_create_body_companion(&w->frame, place, &w->image, &body, NULL));
    return body;
}

/* One member of the primary's body. */
static void primary_has(struct world *w, const char *path, const char *want)
{
    _cleanup_json_ json_t *body = primary_body(w);

    expect(body, path, want);
}

static void companion_has(struct world *w, size_t place, const char *path, const char *want)
{
    _cleanup_json_ json_t *body = companion_body(w, place);

    expect(body, path, want);
}

/* ---- what runs ---- */

TEST(primary_without_a_command_is_init_alone)
{
    struct world w;

    setup(&w, &ours);
    primary_has(&w, "Entrypoint", "['/.agentix-init', '--control', 'pidfd', '--user', '0']");
    primary_has(&w, "Cmd", "[]");
    primary_has(&w, "User", "'0:0'");
    primary_has(&w, "StopSignal", "'SIGTERM'");
    primary_has(&w, "Healthcheck", "{'Test': ['NONE']}");
    primary_has(&w, "HostConfig/Init", "false");
    primary_has(&w, "WorkingDir", "null");
    teardown(&w);
}

TEST(primary_with_a_command_runs_it_by_the_images_entrypoint_behind_init)
{
    struct world w;

    setup(&w, &ours);
    word(&w.sandbox.spec.command, "run");
    word(&w.sandbox.spec.command, "--now");
    ASSERT_OK(agx_text_set(&w.image.user, "app:web", NULL));
    primary_has(&w, "Entrypoint",
                "['/.agentix-init', '--control', 'pidfd', '--user', 'app:web', '--', '/entry']");
    primary_has(&w, "Cmd", "['run', '--now']");
    primary_has(&w, "User", "'0:0'");
    primary_has(&w, "StopSignal", "null");
    primary_has(&w, "Healthcheck", "null");
    teardown(&w);
}

TEST(primary_keeps_home_where_image_or_caller_set_it)
{
    struct world w;

    setup(&w, &ours);
    word(&w.image.env, "HOMELY=no");
    primary_has(&w, "Entrypoint", "['/.agentix-init', '--control', 'pidfd', '--user', '0']");
    pair(&w.sandbox.spec.envs, "HOME", "/h");
    primary_has(&w, "Entrypoint",
                "['/.agentix-init', '--control', 'pidfd', '--user', '0', '--keep-home']");
    agx_pairs_done(&w.sandbox.spec.envs);
    word(&w.image.env, "HOME=/home/app");
    primary_has(&w, "Entrypoint",
                "['/.agentix-init', '--control', 'pidfd', '--user', '0', '--keep-home']");
    teardown(&w);
}

/* The idle loop has quotes of its own. */
static void expect_idle(const json_t *list, size_t size)
{
    ASSERT_UINT(size, json_array_size(list));
    ASSERT_CSTR("sh", json_string_value(json_array_get(list, 0)));
    ASSERT_CSTR(IDLE, json_string_value(json_array_get(list, size - 1)));
}

TEST(primary_in_compatibility_mode_idles_behind_the_images_entrypoint)
{
    _cleanup_json_ json_t *body = NULL;
    struct world w;

    setup(&w, &compat);
    body = primary_body(&w);
    expect(body, "Entrypoint",
           "['/.agentix-init', '--control', 'pidfd', '--user', '0', '--await-user', '10000', "
           "'--', '/entry']");
    expect_idle(json_object_get(body, "Cmd"), 3);
    expect(body, "WorkingDir", "'/workspace'");
    expect(body, "HostConfig/SecurityOpt", "null");
    expect(body, "HostConfig/RestartPolicy", "{'Name': 'unless-stopped'}");
    teardown(&w);
}

TEST(primary_with_control_by_stdio_has_an_open_input_a_key_and_no_log)
{
    struct world w;

    setup(&w, &ours);
    w.frame.control = AGX_DOCKER_CONTROL_STDIO;
    pair(&w.sandbox.spec.envs, "AGENTIX_INIT_KEY", "mine");
    primary_has(&w, "Entrypoint", "['/.agentix-init', '--control', 'stdio', '--user', '0']");
    primary_has(&w, "OpenStdin", "true");
    primary_has(&w, "StdinOnce", "false");
    primary_has(&w, "Env", "['AGENTIX_INIT_KEY=" KEY "', 'HOST_GID=100', 'HOST_UID=1000']");
    primary_has(&w, "HostConfig/LogConfig", "{'Type': 'none'}");
    teardown(&w);
}

TEST(primary_with_control_by_the_engine_has_no_init_of_ours)
{
    _cleanup_json_ json_t *body = NULL, *other = NULL;
    struct world w;

    setup(&w, &ours);
    w.frame.control = AGX_DOCKER_CONTROL_ENGINE;
    w.frame.init_path = NULL;
    body = primary_body(&w);
    expect_idle(json_object_get(body, "Entrypoint"), 3);
    expect(body, "Cmd", "[]");
    expect(body, "User", "null");
    expect(body, "HostConfig/Init", "true");
    expect(body, "HostConfig/Mounts", "[]");
    word(&w.sandbox.spec.command, "run");
    other = primary_body(&w);
    expect(other, "Entrypoint", "null");
    expect(other, "Cmd", "['run']");
    teardown(&w);
}

/* ---- environment ---- */

TEST(primary_environment_has_the_hosts_ids_then_tools_then_what_the_caller_set)
{
    struct world w;

    setup(&w, &ours);
    primary_has(&w, "Env", "['HOST_GID=100', 'HOST_UID=1000']");
    pair(&w.tool_envs, "UV_PYTHON_INSTALL_DIR", "/p");
    pair(&w.tool_envs, "A", "tool");
    pair(&w.sandbox.spec.envs, "A", "caller");
    pair(&w.sandbox.spec.envs, "HOST_UID", "7");
    primary_has(&w, "Env",
                "['A=caller', 'HOST_GID=100', 'HOST_UID=7', 'UV_PYTHON_INSTALL_DIR=/p']");
    teardown(&w);
}

TEST(primary_environment_names_the_sockets_that_are_mounted)
{
    struct world w;

    setup(&w, &ours);
    ASSERT_OK(agx_binds_add(&w.binds, "/run/agent", "/ssh-agent", true, NULL));
    ASSERT_OK(agx_binds_add(&w.binds, "/run/pulse", "/pulse-audio", true, NULL));
    primary_has(&w, "Env",
                "['HOST_GID=100', 'HOST_UID=1000', 'PULSE_SERVER=unix:/pulse-audio',"
                " 'SSH_AUTH_SOCK=/ssh-agent']");
    pair(&w.sandbox.spec.envs, "SSH_AUTH_SOCK", "/mine");
    primary_has(&w, "Env",
                "['HOST_GID=100', 'HOST_UID=1000', 'PULSE_SERVER=unix:/pulse-audio',"
                " 'SSH_AUTH_SOCK=/mine']");
    teardown(&w);
}

TEST(primary_with_gpus_has_their_devices_and_groups)
{
    const uint32_t groups[] = { 44, 105 };
    struct world w;

    setup(&w, &compat);
    primary_has(&w, "HostConfig/DeviceRequests", "null");
    ASSERT_OK(agx_text_set(&w.sandbox.spec.gpus, "all", NULL));
    primary_has(&w, "HostConfig/DeviceRequests",
                "[{'Driver': 'nvidia', 'Count': -1, 'Capabilities': [['gpu']]}]");
    primary_has(&w, "HostConfig/GroupAdd", "[]");
    primary_has(&w, "Env", "['HOST_GID=100', 'HOST_UID=1000']");
    w.primary.gpu_groups = groups;
    w.primary.gpu_groups_len = 2;
    primary_has(&w, "HostConfig/GroupAdd", "['44', '105']");
    w.frame.maker = &ours;
    primary_has(&w, "Entrypoint",
                "['/.agentix-init', '--control', 'pidfd', '--user', '0', '--groups', '44,105']");
    w.frame.maker = &compat;
    primary_has(&w, "Env",
                "['AGENTS_SANDBOX_SUPPLEMENTAL_GROUPS=44,105', 'HOST_GID=100', 'HOST_UID=1000']");
    teardown(&w);
}

/* ---- the host's side ---- */

TEST(primary_has_bounds_by_default)
{
    struct world w;

    setup(&w, &ours);
    primary_has(&w, "Image", "'debian:12'");
    primary_has(&w, "HostConfig/SecurityOpt", "['no-new-privileges']");
    primary_has(&w, "HostConfig/CapDrop", "['NET_RAW','MKNOD','AUDIT_WRITE']");
    primary_has(&w, "HostConfig/PidsLimit", "4096");
    primary_has(&w, "HostConfig/RestartPolicy", "{'Name': 'no'}");
    primary_has(&w, "HostConfig/LogConfig",
                "{'Type': 'json-file', 'Config': {'max-size': '8m', 'max-file': '2'}}");
    primary_has(&w, "HostConfig/NanoCpus", "null");
    primary_has(&w, "HostConfig/Memory", "null");
    primary_has(&w, "HostConfig/StorageOpt", "null");
    primary_has(&w, "HostConfig/Privileged", "null");
    w.frame.pids = 0;
    primary_has(&w, "HostConfig/PidsLimit", "null");
    teardown(&w);
}

TEST(primary_has_the_limits_of_its_spec)
{
    struct world w;

    setup(&w, &ours);
    ASSERT_OK(agx_text_set(&w.sandbox.spec.limits.cpu, "1.5", NULL));
    ASSERT_OK(agx_text_set(&w.sandbox.spec.limits.memory, "512m", NULL));
    ASSERT_OK(agx_text_set(&w.sandbox.spec.limits.disk, "4g", NULL));
    primary_has(&w, "HostConfig/NanoCpus", "1500000000");
    primary_has(&w, "HostConfig/Memory", "536870912");
    primary_has(&w, "HostConfig/MemorySwap", "null");
    primary_has(&w, "HostConfig/StorageOpt", "{'size': '4294967296'}");
    teardown(&w);
}

TEST(primary_has_its_mounts_and_init_read_only)
{
    struct world w;

    setup(&w, &ours);
    ASSERT_OK(agx_binds_add(&w.binds, "/src", "/a", true, NULL));
    ASSERT_OK(agx_binds_add(&w.binds, "/etc/x", "/b", false, NULL));
    primary_has(&w, "HostConfig/Mounts",
                "[{'Type': 'bind', 'Source': '/src', 'Target': '/a', 'ReadOnly': false},"
                " {'Type': 'bind', 'Source': '/etc/x', 'Target': '/b', 'ReadOnly': true},"
                " {'Type': 'bind', 'Source': '" INIT "', 'Target': '/.agentix-init',"
                "  'ReadOnly': true}]");
    teardown(&w);
}

TEST(primary_with_mounts_holds_its_main_process_until_they_were_compared)
{
    struct world w;

    setup(&w, &ours);
    w.sandbox.owner_uid = 1000;
    primary_has(&w, "Entrypoint", "['/.agentix-init', '--control', 'pidfd', '--user', '0']");
    primary_has(&w, "Labels/io.agentix.owner", "null");
    ASSERT_OK(agx_binds_add(&w.binds, "/src", "/a", true, NULL));
    primary_has(&w, "Entrypoint",
                "['/.agentix-init', '--control', 'pidfd', '--user', '0', '--await-go',"
                " '--no-suid']");
    primary_has(&w, "Labels/io.agentix.owner", "'1000'");
    w.frame.control = AGX_DOCKER_CONTROL_ENGINE;
    primary_has(&w, "Labels/io.agentix.owner", "null");
    teardown(&w);
}

TEST(primary_that_may_write_to_the_host_leaves_no_powers_there)
{
    struct world w;

    setup(&w, &ours);
    ASSERT_OK(agx_binds_add(&w.binds, "/ref", "/ref", false, NULL));
    ASSERT_OK(agx_binds_add(&w.binds, "/own", "/own", true, NULL));
    w.binds.items[1].suid = true;
    primary_has(&w, "HostConfig/CapDrop", "['NET_RAW','MKNOD','AUDIT_WRITE']");
    primary_has(&w, "Entrypoint",
                "['/.agentix-init', '--control', 'pidfd', '--user', '0', '--await-go']");
    ASSERT_OK(agx_binds_add(&w.binds, "/src", "/a", true, NULL));
    primary_has(&w, "HostConfig/CapDrop", "['NET_RAW','MKNOD','AUDIT_WRITE','SETFCAP','FSETID']");
    primary_has(&w, "Entrypoint",
                "['/.agentix-init', '--control', 'pidfd', '--user', '0', '--await-go',"
                " '--no-suid']");
    w.frame.maker = &compat;
    primary_has(&w, "HostConfig/CapDrop", "null");
    teardown(&w);
}

static void port(struct agx_spec *s, uint32_t container, uint32_t on_host, int32_t protocol)
{
    struct agx_port *p = NULL;

    ASSERT_OK(agx_spec_add_port(s, &p, NULL));
    *p = (struct agx_port){ container, on_host, protocol };
}

TEST(primary_ports_are_published_on_the_loopback_alone)
{
    struct world w;

    setup(&w, &ours);
    port(&w.sandbox.spec, 80, 8080, AGX_PROTOCOL_TCP);
    port(&w.sandbox.spec, 80, 8081, AGX_PROTOCOL_TCP);
    port(&w.sandbox.spec, 53, 5353, AGX_PROTOCOL_UDP);
    primary_has(&w, "ExposedPorts", "{'80/tcp': {}, '53/udp': {}}");
    primary_has(&w, "HostConfig/PortBindings",
                "{'80/tcp': [{'HostIp': '127.0.0.1', 'HostPort': '8080'},"
                "            {'HostIp': '127.0.0.1', 'HostPort': '8081'}],"
                " '53/udp': [{'HostIp': '127.0.0.1', 'HostPort': '5353'}]}");
    teardown(&w);
}

TEST(containers_are_on_the_sandboxs_network_or_on_none)
{
    struct world w;

    setup(&w, &ours);
    (void)companion(&w.sandbox.spec, "db");
    primary_has(&w, "HostConfig/NetworkMode", "'net'");
    primary_has(&w, "NetworkingConfig", "{'EndpointsConfig': {'net': {}}}");
    primary_has(&w, "HostConfig/ExtraHosts",
                "['host.docker.internal:0.0.0.0', 'gateway.docker.internal:0.0.0.0']");
    companion_has(&w, 0, "NetworkingConfig", "{'EndpointsConfig': {'net': {'Aliases': ['db']}}}");
    companion_has(&w, 0, "HostConfig/ExtraHosts",
                  "['host.docker.internal:0.0.0.0', 'gateway.docker.internal:0.0.0.0']");
    w.frame.network = NULL;
    primary_has(&w, "HostConfig/NetworkMode", "'none'");
    primary_has(&w, "NetworkingConfig", "null");
    primary_has(&w, "HostConfig/ExtraHosts", "null");
    teardown(&w);
}

/* ---- companions ---- */

TEST(companion_runs_as_its_image_says_behind_init)
{
    struct agx_companion *c;
    struct world w;

    setup(&w, &ours);
    c = companion(&w.sandbox.spec, "db");
    pair(&w.sandbox.spec.envs, "A", "primary's");
    pair(&c->envs, "B", "1");
    companion_has(&w, 0, "Image", "'redis:7'");
    companion_has(&w, 0, "Entrypoint", "['/.agentix-init', '--keep-home', '--', '/entry']");
    companion_has(&w, 0, "Cmd", "['serve']");
    companion_has(&w, 0, "User", "null");
    companion_has(&w, 0, "Env", "['B=1']");
    companion_has(&w, 0, "Healthcheck", "null");
    companion_has(&w, 0, "HostConfig/RestartPolicy", "{'Name': 'on-failure'}");
    companion_has(&w, 0, "HostConfig/SecurityOpt", "['no-new-privileges']");
    companion_has(&w, 0, "HostConfig/CapDrop", "['NET_RAW','MKNOD','AUDIT_WRITE']");
    companion_has(&w, 0, "HostConfig/PidsLimit", "4096");
    companion_has(&w, 0, "HostConfig/Mounts",
                  "[{'Type': 'bind', 'Source': '" INIT "', 'Target': '/.agentix-init',"
                  "  'ReadOnly': true}]");
    word(&c->command, "other");
    companion_has(&w, 0, "Cmd", "['other']");
    w.frame.maker = &compat;
    companion_has(&w, 0, "HostConfig/RestartPolicy", "{'Name': 'unless-stopped'}");
    companion_has(&w, 0, "HostConfig/SecurityOpt", "null");
    w.frame.control = AGX_DOCKER_CONTROL_ENGINE;
    companion_has(&w, 0, "Entrypoint", "null");
    companion_has(&w, 0, "HostConfig/Init", "true");
    teardown(&w);
}

TEST(companion_with_nothing_to_run_is_refused_by_name)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    json_t *body = NULL;
    struct world w;

    setup(&w, &ours);
    (void)companion(&w.sandbox.spec, "db");
    agx_docker_image_done(&w.image);
    ASSERT_CODE(AGX_FAILED_PRECONDITION,
                agx_docker_create_body_companion(&w.frame, 0, &w.image, &body, &err));
    ASSERT_MESSAGE(err, "companion_containers[db]: image 'redis:7' has no command");
    teardown(&w);
}

TEST(companion_has_its_own_limits_and_healthcheck)
{
    struct agx_companion *c;
    struct world w;

    setup(&w, &ours);
    (void)companion(&w.sandbox.spec, "first");
    c = companion(&w.sandbox.spec, "db");
    ASSERT_OK(agx_text_set(&w.sandbox.spec.limits.memory, "1g", NULL));
    ASSERT_OK(agx_text_set(&c->limits.memory, "64m", NULL));
    c->healthcheck.set = true;
    word(&c->healthcheck.test, "CMD");
    word(&c->healthcheck.test, "ready");
    c->healthcheck.interval_ns = 1000000000;
    c->healthcheck.timeout_ns = AGX_NS_UNSET;
    c->healthcheck.start_period_ns = 0;
    c->healthcheck.start_interval_ns = AGX_NS_UNSET;
    companion_has(&w, 1, "HostConfig/Memory", "67108864");
    companion_has(&w, 1, "Healthcheck",
                  "{'Test': ['CMD', 'ready'], 'Interval': 1000000000, 'StartPeriod': 0}");
    c->healthcheck.retries = 3;
    c->healthcheck.timeout_ns = 5;
    c->healthcheck.start_interval_ns = 6;
    companion_has(&w, 1, "Healthcheck",
                  "{'Test': ['CMD', 'ready'], 'Interval': 1000000000, 'Timeout': 5,"
                  " 'StartPeriod': 0, 'StartInterval': 6, 'Retries': 3}");
    teardown(&w);
}

/* ---- the network ---- */

TEST(network_has_labels_and_the_subnet_that_was_chosen)
{
    _cleanup_json_ json_t *plain = NULL, *chosen = NULL;
    struct agx_sandbox sb;

    sandbox_init(&sb, "web1");
    ASSERT_OK(
        agx_docker_create_body_network(&ours, &sb, "agentix-web1", NULL, NULL, NULL, &plain, NULL));
    expect(plain, "Name", "'agentix-web1'");
    expect(plain, "Driver", "'bridge'");
    expect(plain, "CheckDuplicate", "true");
    expect(plain, "IPAM", "null");
    expect(plain, "Options", "null");
    expect(plain, "Labels",
           "{'io.agentix.instance': '" INSTANCE "', 'io.agentix.sandbox-id': 'web1',"
           " 'io.agentix.component': 'network'}");
    ASSERT_OK(agx_docker_create_body_network(&ours, &sb, "agentix-web1", "10.213.0.16/28",
                                             "agx0010", "pypi.org 1.2.3.4:443", &chosen, NULL));
    expect(json_object_get(chosen, "Labels"), "io.agentix.egress", "'pypi.org 1.2.3.4:443'");
    expect(chosen, "IPAM", "{'Config': [{'Subnet': '10.213.0.16/28'}]}");
    expect(chosen, "Options", "{'com.docker.network.bridge.name': 'agx0010'}");
    agx_sandbox_done(&sb);
}

/* ---- what goes into bodies ---- */

TEST(binds_have_distinct_targets_and_are_text)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL, *bad = NULL;
    struct agx_binds b = { 0 };

    ASSERT_OK(agx_binds_add(&b, "/x", "/a", true, NULL));
    ASSERT_OK(agx_binds_add(&b, "/x", "/b", true, NULL));
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_binds_add(&b, "/y", "/a", true, &err));
    ASSERT_MESSAGE(err, "conflicting mount target '/a': for '/x' and for '/y'");
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_binds_add(&b, "/\xff", "/c", true, &bad));
    ASSERT_MESSAGE(bad, "not UTF-8");
    ASSERT_UINT(2, b.len);
    ASSERT_CSTR("/x", agx_binds_at(&b, "/b")->source);
    ASSERT_NULL(agx_binds_at(&b, "/c"));
    agx_binds_done(&b);
    agx_binds_done(NULL);
}

static int parse_image(struct agx_docker_image *i, const char *text, struct agx_error **err)
{
    _cleanup_json_ json_t *inspect = quoted(text);

    return agx_docker_image_parse(i, inspect, err);
}

TEST(image_parse_takes_what_the_engine_says)
{
    struct agx_docker_image i;

    ASSERT_OK(parse_image(&i,
                          "{'Id': 'sha256:1', 'Size': 3, 'Config': {'User': 'app',"
                          " 'WorkingDir': '/srv', 'Env': ['A=1', 'B=2'],"
                          " 'Entrypoint': ['/entry', 'x'], 'Cmd': ['serve']}}",
                          NULL));
    ASSERT_CSTR("sha256:1", i.id);
    ASSERT_CSTR("app", i.user);
    ASSERT_CSTR("/srv", i.workdir);
    ASSERT_UINT(2, i.entrypoint.len);
    ASSERT_UINT(1, i.command.len);
    ASSERT_TRUE(agx_docker_image_sets(&i, "A"));
    ASSERT_FALSE(agx_docker_image_sets(&i, "A="));
    ASSERT_FALSE(agx_docker_image_sets(&i, "C"));
    agx_docker_image_done(&i);
    ASSERT_OK(parse_image(&i,
                          "{'Id': 'sha256:2', 'Config': {'User': '', 'Env': null,"
                          " 'Entrypoint': null, 'Cmd': null}}",
                          NULL));
    ASSERT_NULL(i.user);
    ASSERT_UINT(0, i.command.len);
    agx_docker_image_done(&i);
    ASSERT_OK(parse_image(&i, "{'Id': 'sha256:3', 'Config': null}", NULL));
    agx_docker_image_done(&i);
    agx_docker_image_done(NULL);
}

TEST(image_parse_refuses_what_is_none)
{
    static const char *const texts[] = {
        "[]",
        "{}",
        "{'Id': 1}",
        "{'Id': ''}",
        "{'Id': 'x', 'Config': []}",
        "{'Id': 'x', 'Config': {'User': 3}}",
        "{'Id': 'x', 'Config': {'Env': {}}}",
        "{'Id': 'x', 'Config': {'Env': ['A=1', 2]}}",
        "{'Id': 'x', 'Config': {'Cmd': 'serve'}}",
    };

    for (size_t k = 0; k < AGX_ARRAY_LEN(texts); k++) {
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;
        struct agx_docker_image i;

        ASSERT_CODE(AGX_INTERNAL, parse_image(&i, texts[k], &err));
        ASSERT_MESSAGE(err, "description of an image");
    }
}
