/*
 * world_exec.c: commands of the fake world, from their start until the daemon has recorded their
 * exit code.
 *
 *   WAITING --delay--> RUNNING --> ENDED --forget, or its sandbox is removed--> freed
 *                         +------> LOST (the main process died under it)
 *
 * No process runs: a command is a list of steps that command.c simulates. Its logs are real.
 */
#include "tests/fake/world_exec.h"

#include "base/mem.h"

#include "base/banned.h"

enum {
    KEY_SIZE = 2 * AGX_IDENT_MAX + 2,
    EXIT_TERM = 143,
    EXIT_KILL = 137,
    INPUT_HIGH = 64 << 10, /* the size of a pipe; a writer of more waits */
};

struct ids {
    struct agx_str sandbox, exec;
    char key[KEY_SIZE];
};

/* False: they are malformed. */
static bool read_ids(struct agx_fake_in *in, struct ids *ret)
{
    ret->sandbox = agx_fake_in_str(in);
    ret->exec = agx_fake_in_str(in);
    if (agx_ident_check("id", ret->sandbox, NULL) < 0 || agx_ident_check("id", ret->exec, NULL) < 0)
        return false;
    (void)snprintf(ret->key, sizeof(ret->key), "%.*s/%.*s", AGX_STR_ARG(ret->sandbox),
                   AGX_STR_ARG(ret->exec));
    return true;
}

static struct world_exec *find(struct world *w, const struct ids *ids)
{
    return agx_map_get(&w->execs, agx_str_from(ids->key));
}

static bool is_active(const struct world_exec *e)
{
    return e->state == EXEC_WAITING || e->state == EXEC_RUNNING;
}

/* ---- logs ---- */

static void log_close(struct world_log *l)
{
    if (l->open)
        agx_caplog_finish(&l->log);
    l->open = false;
    if (l->data_fd >= 0)
        (void)close(l->data_fd);
    if (l->index_fd >= 0)
        (void)close(l->index_fd);
    l->data_fd = l->index_fd = -1;
}

/* If a log cannot be started (a full disk), the command only loses its output. */
static void log_open(struct world_log *l, uint64_t head_max, uint64_t tail_max)
{
    l->open = agx_caplog_init(&l->log, l->data_fd, l->index_fd, head_max, tail_max) == 0;
}

/* ---- the end ---- */

static void stop_timers(struct world_exec *e)
{
    e->timer = world_timer_stop(e->timer);
    e->grace = world_timer_stop(e->grace);
}

/* Answers the requests that waited for bytes or for the end. */
static void answer_waiting(struct world_exec *e)
{
    struct world_killer *k;

    if (e->writer.link)
        world_answer_error(&e->writer, AGX_FAKE_DONE, AGX_NOT_FOUND, "exec '%s' has ended", e->id);
    e->writer.link = NULL;
    while ((k = e->killers)) {
        e->killers = k->next;
        world_answer_error(&k->asker, AGX_FAKE_DONE, AGX_OK, "%s", "");
        free(k);
    }
}

void world_exec_end(struct world_exec *e, int32_t exit_code)
{
    stop_timers(e);
    log_close(&e->out);
    log_close(&e->err);
    world_note(e->sandbox->world, "exec-exit %s %s %d", e->sandbox->id, e->id, exit_code);
    e->state = EXEC_ENDED;
    e->exit_code = exit_code;
    world_answer_exit(&e->watcher, exit_code);
    answer_waiting(e);
}

static void exec_lose(struct world_exec *e, const char *why)
{
    stop_timers(e);
    log_close(&e->out);
    log_close(&e->err);
    world_note(e->sandbox->world, "exec-lost %s %s", e->sandbox->id, e->id);
    e->state = EXEC_LOST;
    world_answer_error(&e->watcher, AGX_FAKE_LOST, AGX_ABORTED, "%s", why);
    answer_waiting(e);
}

void world_execs_end(struct world_sandbox *sb, const char *why)
{
    AGX_LIST_FOR_EACH (struct world_exec, e, &sb->execs, node) {
        if (is_active(e) && why)
            exec_lose(e, why);
        else if (is_active(e))
            world_exec_end(e, EXIT_KILL);
    }
}

static void exec_free(struct world_exec *e)
{
    char key[KEY_SIZE];

    (void)snprintf(key, sizeof(key), "%s/%s", e->sandbox->id, e->id);
    (void)agx_map_remove(&e->sandbox->world->execs, agx_str_from(key));
    agx_list_remove(&e->node);
    stop_timers(e);
    log_close(&e->out);
    log_close(&e->err);
    for (size_t i = 0; i < e->n_steps; i++)
        agx_words_done(&e->steps[i]);
    free(e->steps);
    agx_pairs_done(&e->env);
    agx_buf_done(&e->input);
    free(e->cwd);
    free(e->id);
    free(e);
}

void world_execs_forget(struct world_sandbox *sb)
{
    struct world_exec *e;

    while ((e = AGX_LIST_FIRST(&sb->execs, struct world_exec, node)))
        exec_free(e);
}

void world_execs_forget_link(struct world *w, const struct world_link *link)
{
    void *value;

    for (size_t at = 0; agx_map_next(&w->execs, &at, NULL, &value);) {
        struct world_exec *e = value;

        if (e->watcher.link == link)
            e->watcher.link = NULL;
        if (e->writer.link == link)
            e->writer.link = NULL;
        for (struct world_killer *k = e->killers; k; k = k->next) {
            if (k->asker.link == link)
                k->asker.link = NULL;
        }
    }
}

/* ---- the start ---- */

/* The exec is known; the answer is its exit code, or that it runs. */
static void adopt(struct world_exec *e, struct world_asker asker)
{
    e->watcher = asker;
    if (e->state == EXEC_RUNNING)
        world_answer(&asker, AGX_FAKE_BEGUN);
    else if (e->state == EXEC_ENDED)
        world_answer_exit(&asker, e->exit_code);
    else if (e->state == EXEC_LOST)
        world_answer_error(&asker, AGX_FAKE_LOST, AGX_ABORTED, "%s", "the main process ended");
}

static void begin(void *user)
{
    struct world_exec *e = user;

    e->timer = world_timer_stop(e->timer);
    e->state = EXEC_RUNNING;
    world_note(e->sandbox->world, "exec-start %s %s", e->sandbox->id, e->id);
    world_answer(&e->watcher, AGX_FAKE_BEGUN);
    world_command_run(e);
}

static struct world_exec *exec_new(struct world_sandbox *sb, const struct ids *ids)
{
    struct world_exec *e = agx_new(struct world_exec);

    e->sandbox = sb;
    e->id = agx_str_dup(ids->exec);
    e->out.data_fd = e->out.index_fd = e->err.data_fd = e->err.index_fd = -1;
    e->input.max = INPUT_HIGH + AGX_BACKEND_WRITE_MAX;
    agx_list_push_front(&sb->execs, &e->node);
    if (!e->id || agx_map_put(&sb->world->execs, agx_str_from(ids->key), e, NULL) < 0)
        abort();
    return e;
}

static void read_command(struct world_exec *e, struct agx_fake_in *in)
{
    _cleanup_(agx_words_done) struct agx_words argv = { 0 };
    uint64_t caps[4];

    e->cwd = agx_str_dup(agx_fake_in_str(in));
    e->input_open = agx_fake_in_u64(in) != 0;
    for (size_t i = 0; i < AGX_ARRAY_LEN(caps); i++)
        caps[i] = agx_fake_in_u64(in);
    for (size_t n = agx_fake_in_count(in); n > 0 && !in->bad; n--)
        in->bad |= agx_words_add(&argv, agx_fake_in_str(in), NULL) < 0;
    for (size_t n = agx_fake_in_count(in); n > 0 && !in->bad; n--) {
        struct agx_str key = agx_fake_in_str(in), value = agx_fake_in_str(in);

        in->bad |= agx_pairs_set(&e->env, key, value, NULL) < 0;
    }
    in->bad |= argv.len == 0;
    if (!agx_fake_in_ends(in))
        return;
    log_open(&e->out, caps[0], caps[1]);
    log_open(&e->err, caps[2], caps[3]);
    world_command_parse(e, &argv);
}

static int exec_make(struct world_sandbox *sb, const struct ids *ids, struct world_asker asker,
                     struct agx_fake_in *in, uint64_t delay_ms)
{
    struct world_exec *e = exec_new(sb, ids);

    e->watcher = asker;
    e->out.data_fd = agx_fake_link_take_fd(asker.link->link);
    e->out.index_fd = agx_fake_link_take_fd(asker.link->link);
    e->err.data_fd = agx_fake_link_take_fd(asker.link->link);
    e->err.index_fd = agx_fake_link_take_fd(asker.link->link);
    read_command(e, in);
    if (!agx_fake_in_ends(in)) {
        exec_free(e);
        return -AGX_INVALID_ARGUMENT;
    }
    if (delay_ms > 0)
        e->timer = world_after(sb->world, delay_ms, begin, e);
    else
        begin(e);
    return 0;
}

int world_exec_start(struct world *w, struct world_asker asker, struct agx_fake_in *in)
{
    _cleanup_(agx_fake_plan_done) struct agx_fake_plan plan = { 0 };
    struct world_sandbox *sb;
    struct world_exec *e;
    struct ids ids;

    if (in->n_fds != AGX_FAKE_FDS_MAX || !read_ids(in, &ids))
        return -AGX_INVALID_ARGUMENT;
    world_note(w, "ask-exec %.*s %.*s", AGX_STR_ARG(ids.sandbox), AGX_STR_ARG(ids.exec));
    e = find(w, &ids);
    if (e) {
        adopt(e, asker);
        return 0;
    }
    sb = world_find(w, ids.sandbox);
    if (!sb || sb->primary != AGX_SEEN_RUNNING) {
        world_answer_error(&asker, AGX_FAKE_REFUSED, AGX_FAILED_PRECONDITION,
                           "sandbox '%.*s' does not run", AGX_STR_ARG(ids.sandbox));
        return 0;
    }
    agx_fake_rules_find(&w->rules, &sb->labels, "exec", sb->id, &plan);
    if (plan.way == AGX_FAKE_HANGS || plan.way == AGX_FAKE_HANGS_UNTIL_TOLD)
        return 0;
    if (plan.way == AGX_FAKE_FAILS) {
        world_answer_error(&asker, AGX_FAKE_REFUSED, plan.code, "%s", plan.message);
        return 0;
    }
    return exec_make(sb, &ids, asker, in, plan.delay_ms);
}

int world_exec_adopt(struct world *w, struct world_asker asker, struct agx_fake_in *in)
{
    struct world_exec *e;
    struct ids ids;

    if (!read_ids(in, &ids) || !agx_fake_in_ends(in))
        return -AGX_INVALID_ARGUMENT;
    e = find(w, &ids);
    if (e)
        adopt(e, asker);
    else
        world_answer(&asker, AGX_FAKE_UNKNOWN);
    return 0;
}

/* ---- kill, write, forget ---- */

static void on_grace_over(void *user)
{
    struct world_exec *e = user;

    world_note(e->sandbox->world, "exec-kill %s %s", e->sandbox->id, e->id);
    world_exec_end(e, EXIT_KILL);
}

static void kill_exec(struct world_exec *e, struct world_asker asker, uint64_t grace_ms)
{
    struct world_killer *k = agx_new(struct world_killer);

    k->asker = asker;
    k->next = e->killers;
    e->killers = k;
    world_note(e->sandbox->world, "exec-term %s %s", e->sandbox->id, e->id);
    if (!e->ignores_term)
        world_exec_end(e, e->leader_ended ? e->step_code : EXIT_TERM);
    else if (!e->grace)
        e->grace = world_after(e->sandbox->world, grace_ms, on_grace_over, e);
}

int world_exec_kill(struct world *w, struct world_asker asker, struct agx_fake_in *in)
{
    _cleanup_(agx_fake_plan_done) struct agx_fake_plan plan = { 0 };
    struct world_exec *e;
    uint64_t grace_ms;
    struct ids ids;

    if (!read_ids(in, &ids))
        return -AGX_INVALID_ARGUMENT;
    grace_ms = agx_fake_in_u64(in);
    if (!agx_fake_in_ends(in))
        return -AGX_INVALID_ARGUMENT;
    e = find(w, &ids);
    if (!e || !is_active(e)) {
        world_answer_error(&asker, AGX_FAKE_DONE, AGX_OK, "%s", "");
        return 0;
    }
    agx_fake_rules_find(&w->rules, &e->sandbox->labels, "kill", e->sandbox->id, &plan);
    if (plan.way == AGX_FAKE_FAILS)
        world_answer_error(&asker, AGX_FAKE_DONE, plan.code, "%s", plan.message);
    else if (plan.way == AGX_FAKE_GOES)
        kill_exec(e, asker, grace_ms);
    return 0;
}

int world_exec_write(struct world *w, struct world_asker asker, struct agx_fake_in *in)
{
    struct world_exec *e;
    struct agx_str data;
    struct ids ids;
    bool eof;

    if (!read_ids(in, &ids))
        return -AGX_INVALID_ARGUMENT;
    eof = agx_fake_in_u64(in) != 0;
    data = agx_fake_in_str(in);
    if (!agx_fake_in_ends(in))
        return -AGX_INVALID_ARGUMENT;
    e = find(w, &ids);
    if (!e || !is_active(e) || !e->input_open) {
        world_answer_error(&asker, AGX_FAKE_DONE, AGX_NOT_FOUND, "exec '%.*s' takes no input",
                           AGX_STR_ARG(ids.exec));
        return 0;
    }
    if (e->writer.link || agx_buf_append(&e->input, data) < 0) {
        world_answer_error(&asker, AGX_FAKE_DONE, AGX_RESOURCE_EXHAUSTED,
                           "the input of exec '%.*s' is full", AGX_STR_ARG(ids.exec));
        return 0;
    }
    e->input_open = !eof;
    e->writer = asker;
    world_command_input(e);
    if (e->writer.link && e->input.len <= INPUT_HIGH) {
        e->writer.link = NULL;
        world_answer_error(&asker, AGX_FAKE_DONE, AGX_OK, "%s", "");
    }
    return 0;
}

int world_exec_forget(struct world *w, struct agx_fake_in *in)
{
    struct world_exec *e;
    struct ids ids;

    if (!read_ids(in, &ids) || !agx_fake_in_ends(in))
        return -AGX_INVALID_ARGUMENT;
    e = find(w, &ids);
    if (e && !is_active(e))
        exec_free(e);
    return 0;
}
