/*
 * engexec_command.c: one command, run by an exec of the engine.
 *
 * A command has at most one call in progress, besides its streams and a call for its kill. The
 * engine is asked whether it has ended when its streams end, and while we do not have them.
 */
#include "backend/docker/engexec_internal.h"

#include "base/mem.h"
#include "core/text.h"

#include "base/banned.h"

/* In turns of the watch: how often a kill is inspected; and how long a recorded command that was
 * not started may still start: the engine reports it as running only some time after the start. */
enum { KILL_REST = 5, DOUBTS_MAX = 20 };

static struct agx_str id_of(const struct agx_engexec_command *c)
{
    return agx_str_bytes(c->id, c->id_len);
}

struct agx_engexec_command *agx_engexec_command_new(struct agx_engexec *x, struct agx_str id)
{
    struct agx_engexec_command *c = agx_new(struct agx_engexec_command);

    c->link = x;
    c->id_len = id.len;
    memcpy(c->id, id.ptr, id.len);
    c->input.max = AGX_INIT_DATA_MAX;
    if (agx_map_put(&x->cmds, id, c, NULL) < 0) {
        free(c);
        return NULL;
    }
    return c;
}

void agx_engexec_command_free(struct agx_engexec_command *c)
{
    (void)agx_map_remove(&c->link->cmds, id_of(c));
    agx_docker_cancel(c->call);
    agx_docker_cancel(c->kill_call);
    free(c->killer);
    c->hijack = agx_docker_hijack_close(c->hijack);
    agx_buf_done(&c->input);
    agx_error_free(c->error);
    free(c->exec);
    free(c);
}

/* ---- its end ---- */

static void taken(struct agx_engexec_command *c, enum agx_code code)
{
    c->input_out = c->input_eof = false;
    agx_buf_clear(&c->input);
    c->taken = code;
    agx_engexec_owe(c, ENGEXEC_OWES_TAKEN);
}

static void end_input(struct agx_engexec_command *c)
{
    c->has_input = false;
    if (c->input_out)
        taken(c, AGX_NOT_FOUND);
}

static void exited(struct agx_engexec_command *c, int32_t exit_code)
{
    c->state = ENGEXEC_EXITED;
    c->exit_code = exit_code;
    end_input(c);
    agx_engexec_owe(c, ENGEXEC_OWES_EXITED | (c->kill_wanted ? ENGEXEC_OWES_GONE : 0));
}

/* Takes the error. */
static void refused(struct agx_engexec_command *c, struct agx_error *error)
{
    agx_engexec_record_remove(c->link, id_of(c));
    c->state = ENGEXEC_NONE;
    c->error = error;
    end_input(c);
    agx_engexec_owe(c, ENGEXEC_OWES_REFUSED | (c->kill_wanted ? ENGEXEC_OWES_GONE : 0));
}

/* The engine does not know it any more, or never ran it. Takes the error, which may be NULL. */
static void forgotten(struct agx_engexec_command *c, struct agx_error *error)
{
    agx_error_free(error);
    agx_engexec_record_remove(c->link, id_of(c));
    c->state = ENGEXEC_NONE;
    end_input(c);
    agx_engexec_owe(c, ENGEXEC_OWES_UNKNOWN | (c->kill_wanted ? ENGEXEC_OWES_GONE : 0));
}

static void runs(struct agx_engexec_command *c)
{
    if (!c->has_begun)
        agx_engexec_owe(c, ENGEXEC_OWES_STARTED);
    c->has_begun = true;
    c->error = agx_error_free(c->error); /* the connection's error, not the command's */
    c->state = c->hijack ? ENGEXEC_RUNNING : ENGEXEC_ENDING;
    if (c->kill_due)
        agx_engexec_command_kill(c);
}

static void on_looked(void *user, const struct agx_docker_answer *answer, struct agx_error *error)
{
    struct agx_engexec_command *c = user;
    const json_t *code = json_object_get(answer->json, "ExitCode");

    c->call = NULL;
    if (error && error->code != AGX_NOT_FOUND)
        agx_error_free(error); /* it is tried again */
    else if (json_is_true(json_object_get(answer->json, "Running")))
        runs(c);
    else if (json_is_integer(code))
        exited(c, (int32_t)json_integer_value(code));
    else if (!error && c->error) /* it was never started, and this is why */
        refused(c, AGX_TAKE_PTR(c->error));
    else if (c->state == ENGEXEC_NOTED && !error && c->doubts < DOUBTS_MAX)
        c->doubts++; /* it is tried again */
    else
        forgotten(c, error); /* nor did the daemon that recorded it */
    agx_engexec_watch(c->link);
}

void agx_engexec_command_look(struct agx_engexec_command *c)
{
    _cleanup_free_ char *path = agx_docker_path("/exec/%s/json", c->exec);
    const struct agx_docker_request q = { .method = "GET",
                                          .path = path,
                                          .what = "look at a command" };

    if (!c->call)
        (void)!agx_docker_call(c->link->engine, &q, on_looked, c, &c->call, NULL);
    agx_engexec_watch(c->link);
}

/* ---- its streams ---- */

static void on_open(void *user)
{
    struct agx_engexec_command *c = user;

    runs(c);
    agx_engexec_command_feed(c);
}

static void on_data(void *user, enum agx_dockerstream_kind stream, struct agx_str bytes)
{
    struct agx_engexec_command *c = user;
    struct agx_engexec *x = c->link;
    const unsigned i = stream == AGX_DOCKERSTREAM_STDERR;

    while (bytes.len > 0) {
        size_t n = AGX_MIN(bytes.len, AGX_INIT_DATA_MAX);
        struct agx_init_msg m = { .kind = AGX_INIT_OUTPUT,
                                  .id = id_of(c),
                                  .flags = i ? AGX_INIT_ERR : 0,
                                  .offset = c->sent[i],
                                  .data = { bytes.ptr, n } };
        char id[AGX_INIT_ID_MAX];
        size_t id_len = c->id_len;

        memcpy(id, c->id, id_len);
        c->sent[i] += n;
        bytes = agx_str_skip(bytes, n);
        agx_engexec_tell(x, &m);
        if (x->is_closed || agx_map_get(&x->cmds, agx_str_bytes(id, id_len)) != c)
            return;
    }
}

static void on_drained(void *user)
{
    struct agx_engexec_command *c = user;

    if (c->input_out && c->state == ENGEXEC_RUNNING)
        taken(c, AGX_OK);
}

/* The command or the connection has ended: the engine knows which. */
static void on_closed(void *user, struct agx_error *error)
{
    struct agx_engexec_command *c = user;

    c->hijack = NULL;
    end_input(c);
    if (c->state == ENGEXEC_OPENING && !error)
        (void)agx_error_set(&error, AGX_UNAVAILABLE, "the engine did not start the command");
    if (c->state == ENGEXEC_OPENING)
        c->error = error;
    else
        agx_error_free(error);
    c->state = ENGEXEC_ENDING;
    agx_engexec_command_look(c);
}

static const struct agx_docker_hijack_ops hijack_ops = { on_open, on_data, on_drained, on_closed };

static int open_streams(struct agx_engexec_command *c, struct agx_error **err)
{
    _cleanup_free_ char *path = agx_docker_path("/exec/%s/start", c->exec);
    _cleanup_json_ json_t *body = json_pack("{s:b,s:b}", "Detach", 0, "Tty", 0);
    const struct agx_docker_hijack_request q = {
        .request = { .method = "POST", .path = path, .what = "start a command", .body = body },
    };

    return agx_docker_hijack(c->link->engine, &q, &hijack_ops, c, &c->hijack, err);
}

static void on_made(void *user, const struct agx_docker_answer *answer, struct agx_error *error)
{
    struct agx_engexec_command *c = user;
    int r = error ? -(int)error->code : 0;

    c->call = NULL;
    if (r == 0)
        r = agx_text_set(&c->exec, json_string_value(json_object_get(answer->json, "Id")), &error);
    if (r == 0 && !c->exec)
        r = agx_error_set(&error, AGX_DATA_LOSS, "the engine made a command without an id");
    if (r == 0)
        r = agx_engexec_record_put(c->link, id_of(c), c->exec, &error);
    if (r == 0) {
        c->state = ENGEXEC_OPENING;
        r = open_streams(c, &error);
    }
    if (r < 0)
        refused(c, error);
}

void agx_engexec_command_start(struct agx_engexec_command *c, const struct agx_init_msg *m)
{
    _cleanup_free_ char *path = agx_docker_path("/containers/%s/exec", c->link->container);
    _cleanup_json_ json_t *body = agx_engexec_body_start(m, m->user.len > 0 ? m->user.ptr : "");
    const struct agx_docker_request q = {
        .method = "POST", .path = path, .what = "make a command", .body = body
    };
    struct agx_error *error = NULL;
    int r;

    c->state = ENGEXEC_MAKING;
    c->has_input = m->flags & AGX_INIT_STDIN;
    if (body)
        r = agx_docker_call(c->link->engine, &q, on_made, c, &c->call, &error);
    else
        r = agx_error_set(&error, AGX_INVALID_ARGUMENT, "a command that is not UTF-8");
    if (r < 0)
        refused(c, error);
}

/* When the engine has our bytes, the command may not have read them: one that does not read blocks
 * the engine, and the engine blocks us. */
void agx_engexec_command_feed(struct agx_engexec_command *c)
{
    struct agx_error *error = NULL;
    int r;

    if (!c->input_out || c->state == ENGEXEC_MAKING || c->state == ENGEXEC_OPENING)
        return;
    if (!c->has_input || !c->hijack) {
        taken(c, AGX_NOT_FOUND);
        return;
    }
    r = agx_docker_hijack_write(c->hijack, agx_buf_peek(&c->input), &error);
    if (r == 0 && c->input_eof) {
        c->has_input = false;
        r = agx_docker_hijack_end(c->hijack, &error);
    }
    if (r < 0)
        taken(c, error->code);
    else if (c->input.len == 0)
        taken(c, AGX_OK);
    agx_error_free(error);
}

/* ---- kill ---- */

/*
 * A kill is a second exec; the first one ends when no process is left. The engine reports a command
 * as running before it has a process, and a kill that finds no process ends. So the kill is
 * inspected, and another one is started when it has ended, or could not be started, and the command
 * still runs.
 */
bool agx_engexec_command_is_killed(const struct agx_engexec_command *c)
{
    return c->kill_wanted && (c->state == ENGEXEC_RUNNING || c->state == ENGEXEC_ENDING);
}

/* Takes the error. */
static void kill_rests(struct agx_engexec_command *c, struct agx_error *error)
{
    if (error) {
        free(c->killer);
        c->killer = NULL;
        agx_error_free(error);
    }
    c->kill_rest = KILL_REST;
    if (c->kill_due && agx_engexec_command_is_killed(c))
        agx_engexec_command_kill(c);
    agx_engexec_watch(c->link);
}

static void on_killer_started(void *user, const struct agx_docker_answer *answer,
                              struct agx_error *error)
{
    struct agx_engexec_command *c = user;

    (void)answer;
    c->kill_call = NULL;
    kill_rests(c, error);
}

static int start_killer(struct agx_engexec_command *c, struct agx_error **err)
{
    _cleanup_free_ char *path = agx_docker_path("/exec/%s/start", c->killer);
    _cleanup_json_ json_t *body = json_pack("{s:b}", "Detach", 1);
    const struct agx_docker_request q = {
        .method = "POST", .path = path, .what = "start a kill", .body = body
    };

    return agx_docker_call(c->link->engine, &q, on_killer_started, c, &c->kill_call, err);
}

static void on_killer_made(void *user, const struct agx_docker_answer *answer,
                           struct agx_error *error)
{
    struct agx_engexec_command *c = user;
    int r = error ? -(int)error->code : 0;

    c->kill_call = NULL;
    if (r == 0)
        r = agx_text_set(&c->killer, json_string_value(json_object_get(answer->json, "Id")),
                         &error);
    if (r == 0 && !c->killer)
        r = agx_error_set(&error, AGX_DATA_LOSS, "the engine made a kill without an id");
    if (r == 0)
        r = start_killer(c, &error);
    if (r < 0)
        kill_rests(c, error);
}

void agx_engexec_command_kill(struct agx_engexec_command *c)
{
    const struct agx_engexec *x = c->link;
    _cleanup_free_ char *path = agx_docker_path("/containers/%s/exec", x->container);
    _cleanup_json_ json_t *body = NULL;
    struct agx_docker_request q = { .method = "POST", .path = path, .what = "make a kill" };

    c->kill_due = !agx_engexec_command_is_killed(c) || c->kill_call;
    if (c->kill_due)
        return;
    free(c->killer);
    c->killer = NULL;
    c->kill_rest = KILL_REST;
    q.body = body = agx_engexec_body_kill(id_of(c), c->grace_ms, agx_text(x->exec_user));
    if (body)
        (void)!agx_docker_call(x->engine, &q, on_killer_made, c, &c->kill_call, NULL);
    agx_engexec_watch(c->link);
}

static void on_killer_looked(void *user, const struct agx_docker_answer *answer,
                             struct agx_error *error)
{
    struct agx_engexec_command *c = user;

    c->kill_call = NULL;
    if (error ? error->code == AGX_NOT_FOUND
              : !json_is_true(json_object_get(answer->json, "Running"))) {
        free(c->killer);
        c->killer = NULL;
    }
    agx_error_free(error); /* it is tried again */
    kill_rests(c, NULL);
}

void agx_engexec_command_kill_look(struct agx_engexec_command *c)
{
    _cleanup_free_ char *path = c->killer ? agx_docker_path("/exec/%s/json", c->killer) : NULL;
    const struct agx_docker_request q = { .method = "GET", .path = path, .what = "look at a kill" };

    if (c->kill_call || (c->kill_rest > 0 && --c->kill_rest > 0))
        return;
    c->kill_rest = KILL_REST;
    if (c->killer)
        (void)!agx_docker_call(c->link->engine, &q, on_killer_looked, c, &c->kill_call, NULL);
    else
        agx_engexec_command_kill(c);
}
