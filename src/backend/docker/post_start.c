/*
 * post_start.c: the companions of a Docker sandbox, when they are healthy
 * (backend/exec/post_start.h).
 *
 *     HEALTH --> RUN, one command after the other --> done
 *       ^  |
 *       +--+  every AGX_DOCKER_HEALTH_MS, until its budget is used up
 *
 * A daemon that is started goes on where the last one was (post_start_record.h).
 */
#include "backend/docker/post_start.h"

#include "backend/docker/post_start_record.h"
#include "base/log.h"
#include "base/mem.h"

#include "base/banned.h"

enum { POST_START_DONE = AGX_OP_DONE, POST_START_HEALTH, POST_START_RUN };

struct agx_docker_post_start {
    struct agx_post_start post;
    struct agx_post_start_record note; /* as it is on disk */
};

static struct agx_docker_post_start *post_start_of(struct agx_op *op)
{
    return container_of(agx_post_start_of(op), struct agx_docker_post_start, post);
}

/* ---- health ---- */

static void take_health(struct agx_docker_post_start *x, const json_t *state,
                        struct agx_error **err)
{
    const char *health =
        json_string_value(json_object_get(json_object_get(state, "Health"), "Status"));
    struct agx_op *op = &x->post.op;

    if (!json_is_true(json_object_get(state, "Running"))) {
        (void)agx_error_set(err, AGX_FAILED_PRECONDITION, "it does not run");
    } else if (!health || strcmp(health, "none") == 0) {
        if (x->note.has_healthcheck) /* switched off: nobody says that it is healthy */
            (void)agx_error_set(err, AGX_FAILED_PRECONDITION, "it has no healthcheck");
        else
            op->then = POST_START_RUN;
    } else if (strcmp(health, "healthy") == 0) {
        op->then = POST_START_RUN;
    } else if (uv_now(agx_loop_uv(agx_docker_by(op)->base.loop)) >= x->post.until_ms) {
        (void)agx_error_set(err, AGX_DEADLINE_EXCEEDED, "it did not become healthy");
    } else {
        agx_op_pause(op, AGX_DOCKER_HEALTH_MS);
    }
}

/* An engine that does not answer says nothing of the companion. */
static bool may_answer_later(const struct agx_docker_post_start *x, const struct agx_error *error)
{
    return (error->code == AGX_UNAVAILABLE || error->code == AGX_DEADLINE_EXCEEDED) &&
           uv_now(agx_loop_uv(agx_docker_by(&x->post.op)->base.loop)) < x->post.until_ms;
}

static void on_inspected(struct agx_op *op, size_t tag, const struct agx_docker_answer *answer,
                         struct agx_error *error)
{
    struct agx_docker_post_start *x = post_start_of(op);

    (void)tag;
    if (!error) {
        take_health(x, json_object_get(answer->json, "State"), &error);
    } else if (may_answer_later(x, error)) {
        agx_error_freep(&error);
        agx_op_pause(op, AGX_DOCKER_REACH_AWAY_MS);
    }
    agx_op_fail(op, &error);
}

static int enter_health(struct agx_op *op, struct agx_error **err)
{
    struct agx_docker_post_start *x = post_start_of(op);
    int r = agx_docker_ask(op,
                           &(struct agx_docker_query){
                               .request = { .method = "GET", .what = "look at a companion" },
                               .path = agx_docker_path("/containers/%s/json", x->note.container),
                               .answered = on_inspected },
                           err);

    return agx_op_wait(op, r, POST_START_HEALTH, err);
}

/* ---- commands ---- */

static struct agx_docker_box *box_of(const struct agx_docker_post_start *x)
{
    return container_of(x->post.all, struct agx_docker_box, afters);
}

static int write_note(struct agx_post_start *p, struct agx_error **err)
{
    struct agx_docker_post_start *x = container_of(p, struct agx_docker_post_start, post);

    x->note.next = p->at;
    x->note.begun = p->begun;
    return agx_post_start_record_write(agx_docker_by(&p->op)->state_dir, box_of(x)->id, p->place,
                                       &x->note, err);
}

static struct agx_init_client *reach_primary(struct agx_post_start *p)
{
    struct agx_docker_box *box = box_of(container_of(p, struct agx_docker_post_start, post));

    agx_docker_box_reach(box);
    return box->init_client;
}

/* ---- the whole ---- */

/* It is over, also by a failure; but a daemon that ends leaves it to the next one. */
static void post_start_ended(struct agx_op *op, struct agx_error *error)
{
    struct agx_docker_post_start *x = post_start_of(op);

    if (error)
        AGX_LOG(AGX_LOG_DEBUG, "docker.post_start_failed", AGX_F_UINT("companion", x->post.place),
                AGX_F_ERR(error));
    agx_error_free(error);
    x->post.at = x->note.commands.len;
    if (!agx_post_start_is_over(&x->post))
        (void)!write_note(&x->post, NULL); /* without it the next daemon finds the same failure */
    agx_post_start_leave(&x->post);
    agx_post_start_record_done(&x->note);
    free(x);
}

static const struct agx_op_state post_start_states[] = {
    [POST_START_HEALTH] = { "health", enter_health, agx_op_cancel_held },
    [POST_START_RUN] = { "run", agx_post_start_enter_run, agx_op_cancel_held },
};

static const struct agx_op_kind post_start_kind = {
    .name = "docker-after",
    .states = post_start_states,
    .n_states = AGX_ARRAY_LEN(post_start_states),
    .cancel_held = agx_post_start_cancel,
    .finish = post_start_ended,
};

/* Takes the note. */
static void post_start_begin(struct agx_docker_box *box, size_t place,
                             struct agx_post_start_record *note)
{
    struct agx_docker_post_start *x = agx_new(struct agx_docker_post_start);
    struct agx_backend *b = &box->docker->base;

    x->note = *note;
    *note = (struct agx_post_start_record){ 0 };
    x->post = (struct agx_post_start){ .backend = b,
                                       .all = &box->afters,
                                       .place = place,
                                       .commands = &x->note.commands,
                                       .envs = &x->note.envs,
                                       .at = x->note.next,
                                       .begun = x->note.begun,
                                       .until_ms = uv_now(agx_loop_uv(b->loop)) + x->note.budget_ms,
                                       .note = write_note,
                                       .primary = reach_primary };
    agx_post_start_begin(&x->post, &post_start_kind, &box->docker->operations, box->id);
}

static int make_note(struct agx_post_start_record *n, const struct agx_companion *c,
                     const char *container, struct agx_error **err)
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
void agx_docker_post_start_start(struct agx_docker_box *box, const struct agx_companion *companion,
                                 size_t place, const char *container)
{
    const char *dir = box->docker->state_dir;
    struct agx_post_start_record note = { 0 };
    struct agx_error *error = NULL;
    int r;

    if (companion->post_start_on_primary.len == 0 || agx_post_start_is_known(&box->afters, place))
        return;
    r = agx_post_start_record_read(dir, box->id, place, &note, NULL);
    if (r < 0 || strcmp(note.container, container) != 0) {
        agx_post_start_record_done(&note);
        r = make_note(&note, companion, container, &error);
        if (r == 0)
            r = agx_post_start_record_write(dir, box->id, place, &note, &error);
    }
    if (r == 0 && note.next < note.commands.len)
        post_start_begin(box, place, &note);
    if (error)
        AGX_LOG(AGX_LOG_WARN, "docker.post_start_not_noted", AGX_F_STR("sandbox", box->id),
                AGX_F_ERR(error));
    agx_error_free(error);
    agx_post_start_record_done(&note);
}

static void on_note(void *user, const char *sandbox_id, size_t place)
{
    struct agx_docker *d = user;
    struct agx_post_start_record note = { 0 };
    struct agx_docker_box *box;

    if (agx_post_start_record_read(d->state_dir, sandbox_id, place, &note, NULL) < 0)
        return;
    if (note.next < note.commands.len && agx_docker_box_get(d, sandbox_id, &box, NULL) == 0 &&
        !agx_post_start_is_known(&box->afters, place))
        post_start_begin(box, place, &note);
    agx_post_start_record_done(&note);
}

void agx_docker_post_start_restore(struct agx_docker *d)
{
    agx_post_start_record_each(d->state_dir, on_note, d);
}

void agx_docker_post_start_cancel(struct agx_docker_box *box)
{
    agx_post_starts_cancel(&box->afters);
    (void)!agx_post_start_record_purge(box->docker->state_dir, box->id,
                                       NULL); /* a few bytes then */
}
