/*
 * after.c: what follows a create by itself: a companion becomes healthy, then its commands run in
 * the primary.
 *
 *     HEALTH --> RUN, one command after the other --> done
 *       ^  |
 *       +--+  every AGX_DOCKER_HEALTH_MS, until its budget is used up
 *
 * As agents-sandbox has it, nobody waits for it and nobody is told: a failure ends it, and a stop
 * or delete of the sandbox cancels it. A resume does not run it again. A daemon that is started
 * goes on where the last one was (after_note.h).
 */
#include "backend/docker/after.h"

#include "backend/docker/after_note.h"
#include "base/log.h"
#include "base/mem.h"

#include <inttypes.h>

#include "base/banned.h"

enum { AFTER_DONE = AGX_OP_DONE, AFTER_HEALTH, AFTER_RUN };

struct agx_docker_after {
    struct agx_step step;
    struct agx_docker_after *prev, *next; /* of the box */
    struct agx_docker_box *box;           /* NULL: it went, or was stopped */
    size_t place;                         /* of the companion, in the spec */
    struct agx_after_note note;           /* as it is on disk */
    uint64_t until_ms;
    struct agx_backend_op *op;
};

static struct agx_docker_after *after_of(struct agx_step *s)
{
    return container_of(s, struct agx_docker_after, step);
}

/* ---- health ---- */

static void take_health(struct agx_docker_after *x, const json_t *state, struct agx_error **err)
{
    const char *health =
        json_string_value(json_object_get(json_object_get(state, "Health"), "Status"));
    struct agx_step *s = &x->step;

    if (!json_is_true(json_object_get(state, "Running"))) {
        (void)agx_error_set(err, AGX_FAILED_PRECONDITION, "it does not run");
    } else if (!health || strcmp(health, "none") == 0) {
        if (x->note.has_healthcheck) /* switched off: nobody says that it is healthy */
            (void)agx_error_set(err, AGX_FAILED_PRECONDITION, "it has no healthcheck");
        else
            s->then = AFTER_RUN;
    } else if (strcmp(health, "healthy") == 0) {
        s->then = AFTER_RUN;
    } else if (uv_now(agx_loop_uv(agx_docker_by(s)->base.loop)) >= x->until_ms) {
        (void)agx_error_set(err, AGX_DEADLINE_EXCEEDED, "it did not become healthy");
    } else {
        agx_step_pause(s, AGX_DOCKER_HEALTH_MS);
    }
}

/* An engine that does not answer says nothing of the companion. */
static bool may_answer_later(const struct agx_docker_after *x, const struct agx_error *error)
{
    return (error->code == AGX_UNAVAILABLE || error->code == AGX_DEADLINE_EXCEEDED) &&
           uv_now(agx_loop_uv(agx_docker_by(&x->step)->base.loop)) < x->until_ms;
}

static void on_inspected(struct agx_step *s, size_t tag, const struct agx_docker_answer *answer,
                         struct agx_error *error)
{
    struct agx_docker_after *x = after_of(s);

    (void)tag;
    if (!error) {
        take_health(x, json_object_get(answer->json, "State"), &error);
    } else if (may_answer_later(x, error)) {
        agx_error_freep(&error);
        agx_step_pause(s, AGX_DOCKER_REACH_AWAY_MS);
    }
    agx_step_fail(s, &error);
}

static int enter_health(struct agx_op *op, struct agx_error **err)
{
    struct agx_step *s = agx_step_of(op);
    struct agx_docker_after *x = after_of(s);
    int r = agx_docker_ask(s,
                           &(struct agx_docker_question){
                               .request = { .method = "GET", .what = "look at a companion" },
                               .path = agx_docker_path("/containers/%s/json", x->note.container),
                               .answered = on_inspected },
                           err);

    return agx_step_wait(s, r, AFTER_HEALTH, err);
}

/* ---- commands ---- */

static int write_note(const struct agx_docker_after *x, struct agx_error **err)
{
    return agx_after_note_write(agx_docker_by(&x->step)->state_dir, x->box->id, x->place, &x->note,
                                err);
}

static void on_ran(void *user, int32_t exit_code, struct agx_str output, struct agx_error *error)
{
    struct agx_docker_after *x = user;

    x->op = NULL;
    if (!error && exit_code != 0)
        (void)agx_error_set(&error, AGX_FAILED_PRECONDITION, "exit code %" PRId32 ": %.*s",
                            exit_code, AGX_STR_ARG(output));
    x->note.next++;
    x->note.begun = false;
    if (!error && x->box)
        (void)!write_note(x, &error);
    agx_step_fail(&x->step, &error);
    agx_step_arrive(&x->step);
}

/* One that a daemon before this one has begun is not begun again. */
static int run_one(struct agx_docker_after *x, struct agx_error **err)
{
    const char *text = x->note.commands.items[x->note.next];
    _cleanup_(agx_words_done) struct agx_words command = { 0 };
    struct agx_attend_run run = { .command = &command,
                                  .envs = &x->note.envs,
                                  .adopt = x->note.begun };
    char name[64];
    int r;

    (void)snprintf(name, sizeof(name), "after-%zu-%zu", x->place, x->note.next);
    run.name = name;
    x->note.begun = true;
    if ((!run.adopt && (r = write_note(x, err)) < 0) ||
        (r = agx_words_add(&command, AGX_STR("sh"), err)) < 0 ||
        (r = agx_words_add(&command, AGX_STR("-lc"), err)) < 0 ||
        (r = agx_words_add(&command, agx_str_from(text), err)) < 0)
        return r;
    agx_docker_box_reach(x->box);
    r = agx_attend_run(x->box->attend, &run, on_ran, x, &x->op, err);
    if (r == 0)
        agx_step_hold(&x->step);
    return r;
}

static int enter_run(struct agx_op *op, struct agx_error **err)
{
    struct agx_step *s = agx_step_of(op);
    struct agx_docker_after *x = after_of(s);

    if (!x->box || agx_docker_by(s)->base.closing || x->note.next == x->note.commands.len)
        return agx_step_wait(s, 0, AFTER_DONE, err);
    return agx_step_wait(s, run_one(x, err), AFTER_RUN, err);
}

/* ---- the whole ---- */

static void cancel_after(struct agx_step *s)
{
    struct agx_docker_after *x = after_of(s);

    if (!x->op)
        return;
    agx_backend_abandon(x->op);
    x->op = NULL;
    agx_step_arrive(s);
}

static void leave_box(struct agx_docker_after *x)
{
    if (!x->box)
        return;
    *(x->prev ? &x->prev->next : &x->box->afters) = x->next;
    if (x->next)
        x->next->prev = x->prev;
    x->box = NULL;
}

/* It is over, also by a failure; but a daemon that ends leaves it to the next one. */
static void after_ended(struct agx_step *s, struct agx_error *error)
{
    struct agx_docker_after *x = after_of(s);

    if (error)
        AGX_LOG(AGX_LOG_DEBUG, "docker.post_start_failed", AGX_F_UINT("companion", x->place),
                AGX_F_ERR(error));
    agx_error_free(error);
    x->note.next = x->note.commands.len;
    if (x->box && !agx_docker_by(s)->base.closing)
        (void)!write_note(x, NULL); /* without it the next daemon finds the same failure */
    leave_box(x);
    agx_after_note_done(&x->note);
    free(x);
}

static const struct agx_op_state after_states[] = {
    [AFTER_HEALTH] = { "health", enter_health, agx_step_cancel },
    [AFTER_RUN] = { "run", enter_run, agx_step_cancel },
};

static const struct agx_step_kind after_kind = {
    .op = { "docker-after", after_states, AGX_ARRAY_LEN(after_states), agx_step_finish },
    .cancel = cancel_after,
    .ended = after_ended,
};

static bool is_known(const struct agx_docker_box *box, size_t place)
{
    const struct agx_docker_after *x = box->afters;

    while (x && x->place != place)
        x = x->next;
    return x != NULL;
}

/* Takes the note. */
static void begin(struct agx_docker_box *box, size_t place, struct agx_after_note *note)
{
    struct agx_docker_after *x = agx_new(struct agx_docker_after);

    x->note = *note;
    *note = (struct agx_after_note){ 0 };
    x->place = place;
    x->until_ms = uv_now(agx_loop_uv(box->docker->base.loop)) + x->note.budget_ms;
    x->box = box;
    x->next = box->afters;
    if (x->next)
        x->next->prev = x;
    box->afters = x;
    agx_step_start(&x->step, &after_kind, &box->docker->steps, box->id, 0);
}

static int make_note(struct agx_after_note *n, const struct agx_companion *c, const char *container,
                     struct agx_error **err)
{
    int r;

    n->has_healthcheck = c->healthcheck.set;
    n->budget_ms = (uint64_t)agx_healthcheck_budget_ns(&c->healthcheck) / 1000000;
    if ((r = agx_text_set(&n->container, container, err)) < 0 ||
        (r = agx_pairs_merge(&n->envs, &c->envs, err)) < 0)
        return r;
    return agx_words_copy(&n->commands, &c->post_start_on_primary, err);
}

/* A create that is carried on may have come as far as this before. */
void agx_docker_after_start(struct agx_docker_box *box, const struct agx_companion *companion,
                            size_t place, const char *container)
{
    const char *dir = box->docker->state_dir;
    struct agx_after_note note = { 0 };
    struct agx_error *error = NULL;
    int r;

    if (companion->post_start_on_primary.len == 0 || is_known(box, place))
        return;
    r = agx_after_note_read(dir, box->id, place, &note, NULL);
    if (r < 0 || strcmp(note.container, container) != 0) {
        agx_after_note_done(&note);
        r = make_note(&note, companion, container, &error);
        if (r == 0)
            r = agx_after_note_write(dir, box->id, place, &note, &error);
    }
    if (r == 0 && note.next < note.commands.len)
        begin(box, place, &note);
    if (error)
        AGX_LOG(AGX_LOG_WARN, "docker.post_start_not_noted", AGX_F_STR("sandbox", box->id),
                AGX_F_ERR(error));
    agx_error_free(error);
    agx_after_note_done(&note);
}

static void on_note(void *user, const char *sandbox_id, size_t place)
{
    struct agx_docker *d = user;
    struct agx_after_note note = { 0 };
    struct agx_docker_box *box;

    if (agx_after_note_read(d->state_dir, sandbox_id, place, &note, NULL) < 0)
        return;
    if (note.next < note.commands.len && agx_docker_box_get(d, sandbox_id, &box, NULL) == 0 &&
        !is_known(box, place))
        begin(box, place, &note);
    agx_after_note_done(&note);
}

void agx_docker_after_restore(struct agx_docker *d)
{
    agx_after_note_each(d->state_dir, on_note, d);
}

void agx_docker_after_cancel(struct agx_docker_box *box)
{
    while (box->afters) {
        struct agx_docker_after *x = box->afters;

        leave_box(x);
        agx_op_cancel(&x->step.op, AGX_CANCELLED);
    }
    (void)!agx_after_note_purge(box->docker->state_dir, box->id, NULL); /* a few bytes then */
}
