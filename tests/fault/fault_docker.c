#include "tests/support/docker.h"
#include "tests/support/fault.h"

#define IMAGE                                                                                      \
    "{\"Id\":\"sha256:1\",\"Config\":{\"User\":\"app\",\"WorkingDir\":\"/srv\",\"Env\":[\"A=1\"]," \
    "\"Entrypoint\":[\"/entry\"],\"Cmd\":[\"serve\"]}}"

/* Everything that a create needs, in one go. */
static int make(const struct agx_sandbox *sb, const json_t *inspect, struct agx_error **err)
{
    _cleanup_(agx_docker_names_done) struct agx_docker_names names = { 0 };
    _cleanup_(agx_docker_image_done) struct agx_docker_image image = { 0 };
    _cleanup_(agx_binds_done) struct agx_binds binds = { 0 };
    _cleanup_json_ json_t *network = NULL, *primary = NULL, *second = NULL;
    const uint32_t group = 44;
    const struct agx_pairs no_envs = { 0 };
    struct agx_docker_frame f = { .maker = &compat,
                                  .sandbox = sb,
                                  .control = AGX_DOCKER_CONTROL_STDIO,
                                  .init_path = "/init",
                                  .pids = 1 };
    const struct agx_docker_primary p = { .image = &image,
                                          .init_key = "k",
                                          .binds = &binds,
                                          .tool_envs = &no_envs,
                                          .gpu_groups = &group,
                                          .gpu_groups_len = 1 };
    int r;

    if ((r = agx_docker_names_init(&names, &compat, sb, err)) < 0 ||
        (r = agx_docker_image_parse(&image, inspect, err)) < 0 ||
        (r = agx_binds_add(&binds, "/a", "/ssh-agent", true, err)) < 0 ||
        (r = agx_docker_create_body_network(&compat, sb, names.network, "10.0.0.0/28", "b", "a",
                                            &network, err)) < 0)
        return r;
    f.network = names.network;
    if ((r = agx_docker_create_body_primary(&f, &p, &primary, err)) < 0)
        return r;
    return agx_docker_create_body_companion(&f, 0, &image, &second, err);
}

TEST(docker_bodies_without_memory_are_resource_exhausted)
{
    struct agx_companion *c;
    struct agx_sandbox sb;
    struct agx_port *port = NULL;
    json_t *inspect;

    /* The library's allocations come from its own object; this makes them pass here. */
    json_set_alloc_funcs(malloc, free);
    inspect = json_loads(IMAGE, 0, NULL);
    sandbox_init(&sb, "web1");
    c = companion(&sb.spec, "db");
    c->healthcheck.set = true;
    word(&c->healthcheck.test, "NONE");
    pair(&sb.spec.labels, "team", "red");
    ASSERT_OK(agx_text_set(&sb.spec.limits.disk, "4g", NULL));
    ASSERT_OK(agx_text_set(&sb.spec.gpus, "all", NULL));
    ASSERT_OK(agx_spec_add_port(&sb.spec, &port, NULL));
    *port = (struct agx_port){ 80, 8080, AGX_PROTOCOL_TCP };
    FAULT_EACH_ALLOCATION
    {
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;
        int r = make(&sb, inspect, &err);

        ASSERT_TRUE(r == 0 || r == -AGX_RESOURCE_EXHAUSTED);
        ASSERT_INT(r < 0, agx_fault_hit());
        ASSERT_INT(r < 0, err != NULL);
    }
    agx_sandbox_done(&sb);
    json_decref(inspect);
}
