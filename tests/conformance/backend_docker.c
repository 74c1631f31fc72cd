/*
 * Runs the suite of all backends on the Docker backend, with a real Docker Engine (docker_box.py).
 * AGX_CONTROL chooses the link to agentix-init.
 */
#include "backend/docker/docker.h"
#include "base/fd.h"
#include "tests/conformance/backend_stage.h"
#include "tests/support/dockerd.h"
#include "tests/support/paths.h"

#include <stdlib.h>

/* The box's own, like all of its /run, and gone with it. */
#define PROXY "/run/agx-proxy.sock"

/* The daemon that is killed is a fork of this program, which has the proxy's thread:
 * ThreadSanitizer would end it at its first thread, for it does not know what others did meanwhile.
 * Only the fork's connection to the engine is used. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "die_after_fork=0";
}

static struct {
    char dir[64]; /* the backend's state */
    bool proxied;
    bool begun; /* and not removed: the test before failed */
    bool wall;  /* a sandbox could not be cleaned up */
} world;

void conformance_backend_begin(void)
{
    ASSERT_UINT(200, test_dockerd_ask("GET", "/_ping", NULL, NULL));
    if (world.begun)
        test_dockerd_empty();
    if (!world.proxied)
        test_proxy_open(PROXY);
    world.proxied = true;
    test_proxy_set(TEST_PROXY_PASS, "", "");
    (void)snprintf(world.dir, sizeof(world.dir), "/run/agx-state-XXXXXX");
    ASSERT_NOT_NULL(mkdtemp(world.dir));
    world.begun = true;
    world.wall = false;
}

void conformance_backend_remove(void)
{
    test_proxy_set(TEST_PROXY_PASS, "", "");
    if (world.wall)
        test_dockerd_empty();
    test_dockerd_is_empty();
    world.begun = false;
}

static enum agx_docker_control control(void)
{
    const char *name = getenv("AGX_CONTROL");

    if (name && strcmp(name, "stdio") == 0)
        return AGX_DOCKER_CONTROL_STDIO;
    if (name && strcmp(name, "engine") == 0)
        return AGX_DOCKER_CONTROL_ENGINE;
    if (name && strcmp(name, "auto") == 0)
        return AGX_DOCKER_CONTROL_AUTO;
    return AGX_DOCKER_CONTROL_PIDFD;
}

struct agx_backend *conformance_backend_open(struct agx_loop *l)
{
    struct agx_docker_config c = AGX_DOCKER_CONFIG_INIT;
    struct agx_error *err = NULL;
    struct agx_backend *b = NULL;
    char text[512];

    c.target = "unix://" PROXY;
    c.state_dir = world.dir;
    c.init_path = test_path_init;
    c.control = control();
    c.networks_ready = 0;
    if (agx_backend_docker_open(l, &c, &b, &err) < 0)
        FAIL("%s", agx_error_format(err, text, sizeof(text)));
    return b;
}

void conformance_backend_closed(struct agx_loop *l)
{
    (void)l;
}

/* Also a request that was to be held, and had not been sent when it was cancelled. */
void conformance_backend_release(void)
{
    if (!world.wall)
        test_proxy_set(TEST_PROXY_PASS, "", "");
}

const char *conformance_backend_image(void)
{
    return TEST_DOCKERD_IMAGE;
}

unsigned conformance_backend_many(void)
{
    return 12; /* an engine takes its time */
}

void conformance_backend_command(enum conformance_command c, struct agx_words *ret)
{
    static const char *const texts[] = {
        [COMMAND_TRUE] = "true",
        [COMMAND_EXIT_3] = "sh|-c|exit 3",
        [COMMAND_NO_FILE] = "no-such-command",
        [COMMAND_NOT_EXECUTABLE] = "/etc/passwd",
        [COMMAND_HELLO] = "echo|hello",
        [COMMAND_COMPLAIN] = "no-such-command",
        [COMMAND_CAT] = "cat",
        [COMMAND_SLEEP] = "sleep|1000",
        [COMMAND_STUBBORN] = "sh|-c|trap '' TERM; echo stubborn; while :; do sleep 1000; done",
        [COMMAND_FORKER] = "sh|-c|sleep 1000 & exit 0",
        [COMMAND_PRINT] = "head|-c|100000|/dev/zero",
        [COMMAND_LATER] = "sh|-c|sleep 0.6; exit 7",
        [COMMAND_PWD] = "pwd",
        [COMMAND_VARIABLE] = "sh|-c|echo \"$AGX_TEST\"",
    };
    struct agx_str rest = agx_str_from(texts[c]), word;

    while (agx_str_split(&rest, '|', &word))
        ASSERT_OK(agx_words_add(ret, word, NULL));
}

/* A request about the primary container of a sandbox. */
static unsigned ask_primary(const char *method, const char *sandbox_id, const char *rest, char *ret)
{
    char path[256];

    (void)snprintf(path, sizeof(path), "/containers/agentix-%s%s", sandbox_id, rest);
    return test_dockerd_ask(method, path, NULL, ret);
}

bool conformance_backend_kills_main(const char *sandbox_id)
{
    ASSERT_UINT(204, ask_primary("POST", sandbox_id, "/kill", NULL));
    return true;
}

bool conformance_backend_removes(const char *sandbox_id)
{
    ASSERT_UINT(204, ask_primary("DELETE", sandbox_id, "?force=1", NULL));
    return true;
}

/* The first request that changes anything. A delete stops what runs. */
static const char *request_of(enum agx_do verb)
{
    if (verb == AGX_DO_CREATE)
        return "/containers/create";
    return verb == AGX_DO_STOP || verb == AGX_DO_DELETE ? "/stop" : "/start";
}

bool conformance_backend_hangs(const char *sandbox_id, enum agx_do verb, bool stubborn)
{
    if (!stubborn) {
        test_proxy_set(TEST_PROXY_HOLD, "POST", request_of(verb));
        return true;
    }
    /* The engine may yet make it: a create that is cancelled waits for that, for a while. */
    if (verb != AGX_DO_CREATE)
        return false;
    test_proxy_set(TEST_PROXY_WALL, "POST", sandbox_id);
    world.wall = true;
    return true;
}

bool conformance_backend_fails(const char *sandbox_id, enum agx_do verb)
{
    (void)sandbox_id;
    test_proxy_set(TEST_PROXY_FAIL, "POST", request_of(verb));
    return true;
}

/* A container of somebody else's under the name that ours would have. */
bool conformance_backend_makes_foreign(const char *sandbox_id)
{
    char path[256];

    (void)snprintf(path, sizeof(path), "/containers/create?name=agentix-%s", sandbox_id);
    ASSERT_UINT(201,
                test_dockerd_ask("POST", path, "{\"Image\":\"" TEST_DOCKERD_IMAGE "\"}", NULL));
    ASSERT_UINT(204, ask_primary("POST", sandbox_id, "/start", NULL));
    return true;
}

void conformance_backend_checks_foreign(const char *sandbox_id)
{
    static char text[TEST_DOCKERD_ANSWER];

    ASSERT_UINT(200, ask_primary("GET", sandbox_id, "/json", text));
    ASSERT_NOT_NULL(strstr(text, "\"Running\":true"));
    ASSERT_UINT(204, ask_primary("DELETE", sandbox_id, "?force=1", NULL));
}

/* ---- what only this kind has ---- */

TEST(a_name_that_is_taken_is_an_error_and_its_owner_is_left_alone)
{
    struct test_reply r;
    struct stage s;

    open_stage(&s);
    (void)conformance_backend_makes_foreign(s.sb.id);
    r = test_backend_do(s.b, &s.sb, AGX_DO_CREATE);
    ASSERT_INT(AGX_ALREADY_EXISTS, r.code);
    ASSERT_NOT_NULL(strstr(r.text, "agentix-conform-1"));
    test_backend_ok(s.b, &s.sb, AGX_DO_DELETE);
    conformance_backend_checks_foreign(s.sb.id);
    close_stage(&s);
}

TEST(a_failed_create_leaves_nothing_behind)
{
    static const struct {
        const char *method, *text;
    } steps[] = {
        { "POST", "/networks/create" },
        { "POST", "/containers/create" },
        { "POST", "/start" },
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(steps); i++) {
        struct test_reply r;
        struct stage s;

        open_stage(&s);
        test_proxy_set(TEST_PROXY_FAIL, steps[i].method, steps[i].text);
        r = test_backend_do(s.b, &s.sb, AGX_DO_CREATE);
        ASSERT_TRUE(r.code != AGX_OK);
        ASSERT_NOT_NULL(strstr(r.text, "on purpose"));
        test_dockerd_is_empty();
        close_stage(&s);
    }
}

TEST(an_image_that_is_not_there_fails_by_name)
{
    struct test_reply r;
    struct stage s;

    open_stage(&s);
    ASSERT_OK(agx_text_set(&s.sb.spec.image, "agx-none.invalid/nothing:1", NULL));
    r = test_backend_do(s.b, &s.sb, AGX_DO_CREATE);
    ASSERT_TRUE(r.code != AGX_OK);
    ASSERT_NOT_NULL(strstr(r.text, "agx-none.invalid/nothing:1"));
    test_dockerd_is_empty();
    close_stage(&s);
}
