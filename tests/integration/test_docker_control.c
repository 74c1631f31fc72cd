/*
 * Commands in a container of a real Docker Engine, over the two links that need no right to trace:
 * its attached streams, with our init as PID 1, and the engine's exec API without our init. Run it
 * with tests/support/docker_box.py and the busybox image.
 */
#include "backend/docker/engexec.h"
#include "backend/docker/initlink_attach.h"
#include "backend/exec/init_client.h"
#include "backend/exec/initstream.h"
#include "tests/support/backend.h"
#include "tests/support/init.h"
#include "tests/support/paths.h"

#include <stdlib.h>

static const struct way {
    const char *name;
    bool by_init;
} ways[] = { { "stdio", true }, { "engine", false } };

struct stage {
    struct agx_backend b; /* hands calls to the init client */
    const struct way *way;
    struct agx_sandbox sb;
    struct agx_docker_engine *engine;
    struct agx_init_client *a;
    char state_dir[64];
    char key[AGX_INITSTREAM_KEY_LEN + 1];
    char container[80];
    unsigned n_ready, n_closed;
};

static struct stage *stage_of(struct agx_backend *b)
{
    return container_of(b, struct stage, b);
}

static int stage_exec(struct agx_backend *b, const struct agx_backend_exec *q, bool adopt,
                      const struct agx_backend_exec_hooks *hooks, void *user,
                      struct agx_backend_op **ret_op, struct agx_error **err)
{
    return agx_init_client_exec_start(stage_of(b)->a, q, adopt, hooks, user, ret_op, err);
}

static int stage_kill(struct agx_backend *b, const char *sandbox_id, const char *exec_id,
                      uint64_t grace_ms, agx_done_fn gone, void *user,
                      struct agx_backend_op **ret_op, struct agx_error **err)
{
    (void)sandbox_id;
    return agx_init_client_kill(stage_of(b)->a, exec_id, grace_ms, gone, user, ret_op, err);
}

static int stage_write(struct agx_backend *b, const char *sandbox_id, const char *exec_id,
                       struct agx_str data, bool eof, agx_done_fn taken, void *user,
                       struct agx_backend_op **ret_op, struct agx_error **err)
{
    (void)sandbox_id;
    return agx_init_client_write(stage_of(b)->a, exec_id, data, eof, taken, user, ret_op, err);
}

static int stage_forget(struct agx_backend *b, const char *sandbox_id, const char *exec_id,
                        struct agx_error **err)
{
    (void)sandbox_id;
    return agx_init_client_forget(stage_of(b)->a, exec_id, err);
}

static const struct agx_backend_ops stage_ops = { .name = "stage",
                                                  .exec_start = stage_exec,
                                                  .exec_kill = stage_kill,
                                                  .exec_write = stage_write,
                                                  .forget_exec = stage_forget };

/* ---- the engine ---- */

struct answer {
    unsigned n;
    char id[80];
    char text[65536]; /* all of it, as far as there is room */
};

static void on_answer(void *user, const struct agx_docker_answer *got, struct agx_error *error)
{
    struct answer *a = user;
    const char *id = json_string_value(json_object_get(got->json, "Id"));
    char text[512];
    size_t len;

    if (error)
        FAIL("%s", agx_error_format(error, text, sizeof(text)));
    (void)snprintf(a->id, sizeof(a->id), "%s", id ? id : "");
    len = json_dumpb(got->json, a->text, sizeof(a->text) - 1, 0);
    a->text[AGX_MIN(len, sizeof(a->text) - 1)] = '\0';
    a->n++;
}

static void ask(struct stage *s, const char *method, const char *path, const json_t *body,
                struct answer *a)
{
    const struct agx_docker_request q = {
        .method = method, .path = path, .what = path, .body = body
    };

    a->n = 0;
    ASSERT_OK(agx_docker_call(s->engine, &q, on_answer, a, NULL, NULL));
    test_wait(s->b.loop, &a->n, 1);
}

static json_t *container_body(struct stage *s)
{
    char key[64], bind[512];

    if (!s->way->by_init)
        return json_pack("{s:s,s:[sss],s:{s:b,s:s}}", "Image", "agx-busybox:1", "Cmd", "sh", "-c",
                         "trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done", "HostConfig",
                         "Init", 1, "NetworkMode", "none");
    (void)snprintf(key, sizeof(key), "AGENTIX_INIT_KEY=%s", s->key);
    (void)snprintf(bind, sizeof(bind), "%s:/.agentix-init:ro", test_path_init);
    return json_pack("{s:s,s:b,s:[s],s:[sss],s:[],s:{s:[s],s:s,s:{s:s}}}", "Image", "agx-busybox:1",
                     "OpenStdin", 1, "Env", key, "Entrypoint", "/.agentix-init", "--control",
                     "stdio", "Cmd", "HostConfig", "Binds", bind, "NetworkMode", "none",
                     "LogConfig", "Type", "none");
}

static void make_container(struct stage *s)
{
    _cleanup_json_ json_t *body = container_body(s);
    _cleanup_free_ char *path = NULL;
    struct answer a;

    ASSERT_NOT_NULL(body);
    ask(s, "POST", "/containers/create", body, &a);
    (void)snprintf(s->container, sizeof(s->container), "%s", a.id);
    path = agx_docker_path("/containers/%s/start", s->container);
    ask(s, "POST", path, NULL, &a);
}

static void open_engine(struct stage *s)
{
    struct agx_docker_engine_config config = AGX_DOCKER_ENGINE_CONFIG_INIT;
    const struct agx_docker_env env = { .host = getenv("DOCKER_HOST") };
    struct agx_engine_endpoint endpoint;

    ASSERT_OK(agx_engine_endpoint_find(NULL, &env, &endpoint, NULL));
    config.endpoint = &endpoint;
    ASSERT_OK(agx_docker_engine_open(s->b.loop, &config, &s->engine, NULL));
    agx_engine_endpoint_done(&endpoint);
}

/* ---- the stage ---- */

static void on_ready(void *user)
{
    ((struct stage *)user)->n_ready++;
}

static void on_closed(void *user, struct agx_error *error)
{
    ASSERT_NULL(error);
    ((struct stage *)user)->n_closed++;
}

static void up(struct stage *s)
{
    const struct agx_init_client_config config = { .backend = &s->b,
                                                   .sandbox_id = s->sb.id,
                                                   .exec_user = "app",
                                                   .cwd = "/tmp/work",
                                                   .ready = on_ready,
                                                   .user = s };
    const struct agx_docker_engexec_config by_engine = { .engine = s->engine,
                                                         .sandbox_id = s->sb.id,
                                                         .container = s->container,
                                                         .user = "app",
                                                         .state_dir = s->state_dir };
    struct agx_initlink *link = NULL;

    s->n_ready = s->n_closed = 0;
    ASSERT_OK(agx_init_client_open(&config, &s->a, NULL));
    if (s->way->by_init)
        ASSERT_OK(agx_initlink_attach_open(s->engine, s->container, s->key,
                                           &agx_init_client_link_ops, s->a, &link, NULL));
    else
        ASSERT_OK(
            agx_docker_engexec_open(&by_engine, &agx_init_client_link_ops, s->a, &link, NULL));
    agx_init_client_up(s->a, link);
    test_wait(s->b.loop, &s->n_ready, 1);
}

static void down(struct stage *s)
{
    agx_init_client_close(s->a, on_closed, s);
    test_wait(s->b.loop, &s->n_closed, 1);
}

static void open_stage(struct stage *s, const struct way *way)
{
    struct agx_spec spec;

    if (!getenv("DOCKER_HOST"))
        SKIP("needs an engine: run by tests/support/docker_box.py");
    *s = (struct stage){ .way = way };
    s->b = (struct agx_backend){ .ops = &stage_ops, .loop = test_loop_open() };
    agx_spec_init(&spec);
    ASSERT_OK(agx_sandbox_init(&s->sb, "control-1", &spec, NULL));
    (void)snprintf(s->state_dir, sizeof(s->state_dir), "/tmp/agx-control-XXXXXX");
    ASSERT_NOT_NULL(mkdtemp(s->state_dir));
    ASSERT_OK(agx_initstream_make_key(s->key, NULL));
    open_engine(s);
    make_container(s);
    up(s);
}

static void close_stage(struct stage *s)
{
    _cleanup_free_ char *path = agx_docker_path("/containers/%s?force=1&v=1", s->container);
    char execs[80];
    struct answer a;

    down(s);
    ask(s, "DELETE", path, NULL, &a);
    s->engine = agx_docker_engine_close(s->engine);
    ASSERT_OK(agx_docker_engexec_purge(s->state_dir, s->sb.id, NULL));
    (void)snprintf(execs, sizeof(execs), "%s/execs", s->state_dir);
    (void)rmdir(execs);
    ASSERT_INT(0, rmdir(s->state_dir));
    agx_sandbox_done(&s->sb);
    test_loop_close(s->b.loop);
}

/* As a daemon that died, and the next one. */
static void again(struct stage *s)
{
    down(s);
    up(s);
}

/* ---- commands ---- */

static void begin(struct stage *s, struct test_command *c, const char *id, const char *line,
                  bool input)
{
    test_command_init(c, id, &s->sb);
    ASSERT_OK(agx_words_add(&c->exec.command, AGX_STR("sh"), NULL));
    ASSERT_OK(agx_words_add(&c->exec.command, AGX_STR("-c"), NULL));
    ASSERT_OK(agx_words_add(&c->exec.command, agx_str_from(line), NULL));
    test_command_start(&s->b, &s->sb, c, false, input);
    if (input)
        test_wait(s->b.loop, &c->n_begun, 1);
}

TEST(command_runs_as_its_user_in_its_directory_and_ends_with_its_code)
{
    for (const struct way *way = ways; way < ways + AGX_ARRAY_LEN(ways); way++) {
        struct test_command c;
        struct stage s;

        open_stage(&s, way);
        begin(&s, &c, "exec-1", "echo out; id -u; pwd; echo err >&2; exit 3", false);
        ASSERT_INT(3, test_command_wait(&s.b, &c));
        ASSERT_UINT(1, c.n_begun);
        test_log_is(&c.out, "out\n1500\n/tmp/work\n");
        test_log_is(&c.err, "err\n");
        test_command_done(&c);
        close_stage(&s);
    }
}

TEST(what_is_not_there_is_127_and_what_cannot_run_126)
{
    static const struct {
        const char *word;
        int32_t code;
    } cases[] = { { "no-such", 127 }, { "/etc/passwd", 126 } };

    for (const struct way *way = ways; way < ways + AGX_ARRAY_LEN(ways); way++) {
        struct stage s;

        open_stage(&s, way);
        for (size_t i = 0; i < AGX_ARRAY_LEN(cases); i++) {
            struct test_command c;

            test_command_init(&c, i ? "exec-2" : "exec-1", &s.sb);
            ASSERT_OK(agx_words_add(&c.exec.command, agx_str_from(cases[i].word), NULL));
            test_command_start(&s.b, &s.sb, &c, false, false);
            ASSERT_INT(cases[i].code, test_command_wait(&s.b, &c));
            ASSERT_TRUE(test_caplog_read(&c.err, 0, 0).total > 0);
            test_command_done(&c);
        }
        close_stage(&s);
    }
}

TEST(input_arrives_until_its_end)
{
    for (const struct way *way = ways; way < ways + AGX_ARRAY_LEN(ways); way++) {
        struct test_command c;
        struct stage s;

        open_stage(&s, way);
        begin(&s, &c, "exec-1", "cat; echo done", true);
        ASSERT_INT(AGX_OK, test_command_write(&s.b, &c, AGX_STR("one "), false));
        ASSERT_INT(AGX_OK, test_command_write(&s.b, &c, AGX_STR("two\n"), true));
        ASSERT_INT(0, test_command_wait(&s.b, &c));
        test_log_is(&c.out, "one two\ndone\n");
        ASSERT_INT(AGX_NOT_FOUND, test_command_write(&s.b, &c, AGX_STR("late"), false));
        test_command_done(&c);
        close_stage(&s);
    }
}

TEST(large_output_keeps_head_and_tail)
{
    for (const struct way *way = ways; way < ways + AGX_ARRAY_LEN(ways); way++) {
        struct agx_caplog_piece piece;
        uint8_t bytes[TEST_TAIL_MAX];
        struct test_command c;
        struct stage s;

        open_stage(&s, way);
        begin(&s, &c, "exec-1", "head -c 3000000 /dev/zero; echo end", false);
        ASSERT_INT(0, test_command_wait(&s.b, &c));
        ASSERT_OK(agx_caplog_read(c.out.data_fd, c.out.index_fd, TEST_HEAD_MAX, bytes,
                                  sizeof(bytes), &piece, NULL));
        ASSERT_UINT(3000004, piece.total);
        ASSERT_UINT(TEST_TAIL_MAX, piece.len);
        ASSERT_TRUE(memcmp(bytes + sizeof(bytes) - 4, "end\n", 4) == 0);
        test_command_done(&c);
        close_stage(&s);
    }
}

TEST(kill_ends_what_is_stubborn_and_what_its_leader_left_behind)
{
    static const char *const lines[] = {
        "echo set; sleep 1000",
        "trap '' TERM; echo set; while :; do sleep 1; done",
        "sleep 1000 & echo set; exit 0",
    };

    for (const struct way *way = ways; way < ways + AGX_ARRAY_LEN(ways); way++) {
        for (size_t i = 0; i < AGX_ARRAY_LEN(lines); i++) {
            struct test_command c;
            struct stage s;

            open_stage(&s, way);
            begin(&s, &c, "exec-1", lines[i], false);
            while (test_caplog_read(&c.out, 0, 0).total < 4)
                test_pause(s.b.loop, 10);
            test_pause(s.b.loop, 300);
            ASSERT_UINT(0, c.n_end); /* somebody is left, whoever leads */
            ASSERT_INT(AGX_OK, test_command_kill(&s.b, s.sb.id, "exec-1", 200).code);
            test_wait(s.b.loop, &c.n_end, 1);
            ASSERT_UINT(1, c.n_exited);
            test_log_is(&c.out, "set\n");
            test_log_is(&c.err, "");
            ASSERT_INT(AGX_OK, test_command_kill(&s.b, s.sb.id, "exec-1", 200).code);
            ASSERT_INT(AGX_OK, test_command_kill(&s.b, s.sb.id, "exec-none", 200).code);
            test_command_done(&c);
            close_stage(&s);
        }
    }
}

/* A file in the container, made by the engine: no daemon is needed for it. */
static void touch(struct stage *s, const char *file)
{
    _cleanup_json_ json_t *command = json_pack("{s:[ss]}", "Cmd", "touch", file);
    _cleanup_json_ json_t *detached = json_pack("{s:b}", "Detach", 1);
    _cleanup_free_ char *make = agx_docker_path("/containers/%s/exec", s->container), *start = NULL;
    struct answer a;

    ASSERT_TRUE(command && detached);
    ask(s, "POST", make, command, &a);
    start = agx_docker_path("/exec/%s/start", a.id);
    ask(s, "POST", start, detached, &a);
}

/* How many commands the engine runs in the container. */
static size_t n_execs(struct stage *s)
{
    _cleanup_free_ char *path = agx_docker_path("/containers/%s/json", s->container);
    _cleanup_json_ json_t *all = NULL;
    struct answer a;

    ask(s, "GET", path, NULL, &a);
    all = json_loads(a.text, 0, NULL);
    ASSERT_NOT_NULL(all);
    return json_array_size(json_object_get(all, "ExecIDs"));
}

/* Until no process of the container has this in its command line, nobody is left to be waited for,
 * and the engine runs so many commands: whoever keeps the exit code knows of it. */
static void wait_for_end(struct stage *s, const char *words, size_t execs)
{
    _cleanup_free_ char *path = agx_docker_path("/containers/%s/top", s->container);
    struct answer a;

    do {
        test_pause(s->b.loop, 100);
        ask(s, "GET", path, NULL, &a);
    } while (strstr(a.text, words) || strstr(a.text, "defunct") || n_execs(s) != execs);
}

TEST(next_daemon_adopts_what_runs_what_ended_meanwhile_and_kills)
{
    for (const struct way *way = ways; way < ways + AGX_ARRAY_LEN(ways); way++) {
        struct test_command running, ended, stubborn, go;
        struct stage s;

        open_stage(&s, way);
        begin(&s, &running, "exec-1", "while ! [ -e /tmp/go ]; do sleep 0.1; done; exit 7", true);
        begin(&s, &ended, "exec-2", "while ! [ -e /tmp/end ]; do sleep 0.1; done; exit 5", true);
        begin(&s, &stubborn, "exec-3", "sleep 1000", true);
        down(&s);
        touch(&s, "/tmp/end");
        wait_for_end(&s, "exit 5", way->by_init ? 0 : 2);
        up(&s);
        test_command_start(&s.b, &s.sb, &running, true, false);
        test_command_start(&s.b, &s.sb, &ended, true, false);
        ASSERT_INT(5, test_command_wait(&s.b, &ended));
        ASSERT_UINT(0, ended.n_begun);
        begin(&s, &go, "exec-4", "touch /tmp/go", false);
        ASSERT_INT(0, test_command_wait(&s.b, &go));
        ASSERT_INT(7, test_command_wait(&s.b, &running));
        ASSERT_UINT(1, running.n_begun);
        ASSERT_INT(AGX_OK, test_command_kill(&s.b, s.sb.id, "exec-3", 200).code);
        again(&s);
        ASSERT_OK(agx_backend_forget_exec(&s.b, s.sb.id, "exec-1", NULL));
        test_command_start(&s.b, &s.sb, &running, true, false);
        test_wait(s.b.loop, &running.n_end, 1);
        ASSERT_UINT(1, running.n_unknown);
        test_command_done(&running);
        test_command_done(&ended);
        test_command_done(&stubborn);
        test_command_done(&go);
        close_stage(&s);
    }
}

TEST(many_commands_at_a_time)
{
    enum { N = 20 };

    for (const struct way *way = ways; way < ways + AGX_ARRAY_LEN(ways); way++) {
        static struct test_command c[N];
        struct stage s;

        open_stage(&s, way);
        for (unsigned i = 0; i < N; i++) {
            char id[32];

            (void)snprintf(id, sizeof(id), "exec-%u", i);
            begin(&s, &c[i], id, i % 2 ? "exit 3" : "echo hello", false);
        }
        for (unsigned i = 0; i < N; i++) {
            ASSERT_INT(i % 2 ? 3 : 0, test_command_wait(&s.b, &c[i]));
            test_log_is(&c[i].out, i % 2 ? "" : "hello\n");
            test_command_done(&c[i]);
        }
        close_stage(&s);
    }
}
