/* Networks that are prepared in advance, on a real Docker Engine. Run it with docker_box.py. */
#include "backend/docker/docker.h"
#include "tests/support/backend.h"
#include "tests/support/dockerd.h"
#include "tests/support/paths.h"

#include <stdlib.h>

static struct {
    char dir[64];
    struct agx_loop *loop;
    struct agx_backend *b;
    struct agx_sandbox sb;
} w;

static void open_backend(unsigned ready)
{
    struct agx_docker_config c = AGX_DOCKER_CONFIG_INIT;

    c.target = "unix://" TEST_DOCKERD_SOCKET;
    c.state_dir = w.dir;
    c.init_path = test_path_init;
    c.control = AGX_DOCKER_CONTROL_PIDFD;
    c.networks_ready = ready;
    ASSERT_OK(agx_backend_docker_open(w.loop, &c, &w.b, NULL));
}

static void open_world(unsigned ready)
{
    struct agx_spec spec;

    ASSERT_UINT(200, test_dockerd_ask("GET", "/_ping", NULL, NULL));
    (void)snprintf(w.dir, sizeof(w.dir), "/tmp/agx-docker-ready-XXXXXX");
    ASSERT_NOT_NULL(mkdtemp(w.dir));
    w.loop = test_loop_open();
    agx_spec_init(&spec);
    ASSERT_OK(agx_text_set(&spec.image, TEST_DOCKERD_IMAGE, NULL));
    ASSERT_OK(agx_sandbox_init(&w.sb, "ready-1", &spec, NULL));
    open_backend(ready);
}

/* How often the text is in the engine's list of networks. */
static unsigned networks(const char *text)
{
    static char list[TEST_DOCKERD_ANSWER];
    unsigned n = 0;

    ASSERT_UINT(200, test_dockerd_ask("GET", "/networks", NULL, list));
    for (const char *at = list; (at = strstr(at, text)); at++)
        n++;
    return n;
}

#define READY "\"Name\":\"agentix.ready-"

/* Is the sandbox's network there? */
static bool network_stands(void)
{
    static char text[TEST_DOCKERD_ANSWER];
    char name[64] = "", path[80];
    const char *at;

    ASSERT_UINT(200, test_dockerd_ask("GET", "/containers/agentix-ready-1/json", NULL, text));
    at = strstr(text, "\"NetworkMode\":\"");
    ASSERT_NOT_NULL(at);
    ASSERT_INT(1, sscanf(at, "\"NetworkMode\":\"%63[^\"]", name));
    (void)snprintf(path, sizeof(path), "/networks/%s", name);
    return test_dockerd_ask("GET", path, NULL, NULL) == 200;
}

static void wait_for(unsigned n)
{
    while (networks(READY) != n)
        test_pause(w.loop, 20);
}

/* One that the engine is making is there when the next daemon looks. */
static void reopen_backend(unsigned ready)
{
    test_backend_close(w.b);
    test_dockerd_settle();
    open_backend(ready);
}

/* The next daemon wants none: what was kept goes. */
static void close_world(void)
{
    char command[128];

    test_backend_ok(w.b, &w.sb, AGX_DO_DELETE);
    reopen_backend(0);
    wait_for(0);
    test_backend_close(w.b);
    agx_sandbox_done(&w.sb);
    test_loop_close(w.loop);
    test_dockerd_is_empty();
    (void)snprintf(command, sizeof(command), "rm -rf %s", w.dir);
    ASSERT_INT(0, system(command));
}

TEST(sandboxes_take_networks_that_were_kept_ready_and_others_follow)
{
    open_world(2);
    wait_for(2);
    test_backend_ok(w.b, &w.sb, AGX_DO_CREATE);
    ASSERT_UINT(0, networks("\"Name\":\"agentix-ready-1\""));
    wait_for(3);
    test_backend_ok(w.b, &w.sb, AGX_DO_STOP);
    test_backend_ok(w.b, &w.sb, AGX_DO_RESUME);
    ASSERT_INT(AGX_SEEN_RUNNING, test_backend_seen(w.b, w.sb.id));
    test_backend_ok(w.b, &w.sb, AGX_DO_DELETE);
    ASSERT_UINT(2, networks(READY));
    close_world();
}

TEST(networks_that_somebody_pruned_are_not_missed)
{
    open_world(1);
    wait_for(1);
    ASSERT_UINT(200, test_dockerd_ask("POST", "/networks/prune", NULL, NULL));
    test_backend_ok(w.b, &w.sb, AGX_DO_CREATE);
    /* One of its own; or, where that took long, the next that was made ready. */
    ASSERT_TRUE(network_stands());
    ASSERT_INT(AGX_SEEN_RUNNING, test_backend_seen(w.b, w.sb.id));
    close_world();
}

TEST(networks_are_found_again_after_a_restart_and_used_ones_are_left_alone)
{
    open_world(2);
    wait_for(2);
    test_backend_ok(w.b, &w.sb, AGX_DO_CREATE);
    wait_for(3);
    reopen_backend(1);
    wait_for(2); /* the one in use, and one, maybe of those that go and have others follow them */
    ASSERT_INT(AGX_SEEN_RUNNING, test_backend_seen(w.b, w.sb.id));
    test_backend_ok(w.b, &w.sb, AGX_DO_DELETE);
    wait_for(1);
    close_world();
}
