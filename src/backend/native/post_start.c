/*
 * post_start.c: the companions of a native sandbox, when they are healthy
 * (backend/exec/post_start.h).
 *
 *     REST --> PROBE --> RUN, one command after the other --> done
 *       ^        |
 *       +--------+  not healthy yet, until its budget is used up
 *
 * The healthcheck is a command in the companion, run by its init. A daemon that is started begins
 * none of it again.
 */
#include "backend/native/native_internal.h"

#include "base/log.h"
#include "base/mem.h"

#include <stdio.h>

#include "base/banned.h"

enum { POST_START_DONE = AGX_OP_DONE, POST_START_REST, POST_START_PROBE, POST_START_RUN };

#define NS_PER_MS 1000000

struct agx_native_post_start {
    struct agx_post_start post;
    struct agx_native *native;
    size_t part;
    struct agx_companion companion;      /* a copy; its healthcheck is the one that counts */
    struct agx_init_client *init_client; /* of the companion, for its healthcheck */
    uint64_t begun_ms;
    unsigned probes;
};

static struct agx_native_post_start *post_start_of(struct agx_op *op)
{
    return container_of(agx_post_start_of(op), struct agx_native_post_start, post);
}

/* Not of one that is over. */
static struct agx_native_box *box_of(const struct agx_native_post_start *x)
{
    return container_of(x->post.all, struct agx_native_box, afters);
}

static uint64_t now_ms(const struct agx_native_post_start *x)
{
    return uv_now(agx_loop_uv(x->native->base.loop));
}

/* ---- health ---- */

static uint64_t span_ms(int64_t ns, uint64_t otherwise)
{
    return ns > 0 ? (uint64_t)ns / NS_PER_MS : otherwise;
}

/* How long until the next look: often while it starts, if the healthcheck says so. */
static uint64_t rest_ms(const struct agx_native_post_start *x)
{
    const struct agx_healthcheck *h = &x->companion.healthcheck;
    const uint64_t start = span_ms(h->start_period_ns, 0);

    if (x->probes == 0)
        return 0;
    return now_ms(x) - x->begun_ms < start ? span_ms(h->start_interval_ns, AGX_HEALTH_START_MS)
                                           : span_ms(h->interval_ns, AGX_HEALTH_INTERVAL_MS);
}

static int enter_rest(struct agx_op *op, struct agx_error **err)
{
    struct agx_native_post_start *x = post_start_of(op);
    const struct agx_healthcheck *h = &x->companion.healthcheck;
    int r = 0;

    if (!agx_post_start_is_over(&x->post) && !agx_native_part_runs(box_of(x), x->part))
        r = agx_error_set(err, AGX_FAILED_PRECONDITION, "it does not run");
    else if (h->set && strcmp(h->test.len > 0 ? h->test.items[0] : "NONE", "NONE") == 0)
        r = agx_error_set(err, AGX_FAILED_PRECONDITION, "it has no healthcheck");
    else if (now_ms(x) >= x->post.until_ms && x->probes > 0)
        r = agx_error_set(err, AGX_DEADLINE_EXCEEDED, "it did not become healthy");
    if (r == 0 && h->set)
        agx_op_pause(&x->post.op, rest_ms(x));
    return agx_op_wait(&x->post.op, r, h->set ? POST_START_PROBE : POST_START_RUN, err);
}

static void on_probed(void *user, int32_t exit_code, struct agx_str output, struct agx_error *error)
{
    struct agx_native_post_start *x = user;

    (void)output;
    x->post.call = NULL;
    if (!error && exit_code == 0)
        x->post.op.then = POST_START_RUN;
    agx_error_free(error); /* it may be better the next time */
    agx_op_arrive(&x->post.op);
}

/* "CMD", word, ...; "CMD-SHELL", text. */
static int probe_words(const struct agx_words *test, struct agx_words *ret, struct agx_error **err)
{
    int r = 0;

    if (strcmp(test->items[0], "CMD-SHELL") == 0) {
        r = agx_words_add(ret, AGX_STR("/bin/sh"), err);
        if (r == 0)
            r = agx_words_add(ret, AGX_STR("-c"), err);
    }
    for (size_t i = 1; r == 0 && i < test->len; i++)
        r = agx_words_add(ret, agx_str_from(test->items[i]), err);
    return r;
}

static int open_init_client(struct agx_native_post_start *x, struct agx_error **err)
{
    const struct agx_native_part_state *s = &box_of(x)->state.parts[x->part];
    const struct agx_init_client_config c = { .backend = &x->native->base,
                                              .sandbox_id = box_of(x)->id,
                                              .exec_user = s->user,
                                              .cwd = s->cwd };
    int r = agx_init_client_open(&c, &x->init_client, err);

    if (r < 0)
        return r;
    x->native->n_open++;
    return agx_init_client_up_pidfd(x->init_client,
                                    agx_native_part_pidfd(&box_of(x)->parts[x->part]), err);
}

static int enter_probe(struct agx_op *op, struct agx_error **err)
{
    struct agx_native_post_start *x = post_start_of(op);
    _cleanup_(agx_words_done) struct agx_words words = { 0 };
    char name[32];
    int r;

    if (agx_post_start_is_over(&x->post) || !agx_native_part_runs(box_of(x), x->part))
        return agx_op_wait(&x->post.op, 0, POST_START_DONE, err);
    (void)snprintf(name, sizeof(name), "health-%u", x->probes++);
    r = x->init_client ? 0 : open_init_client(x, err);
    if (r == 0)
        r = probe_words(&x->companion.healthcheck.test, &words, err);
    if (r == 0)
        r = agx_init_client_run(x->init_client,
                                &(struct agx_init_client_run){ .name = name, .command = &words },
                                on_probed, x, &x->post.call, err);
    if (r == 0)
        agx_op_hold(&x->post.op);
    return agx_op_wait(&x->post.op, r, POST_START_REST, err);
}

/* ---- the whole ---- */

static struct agx_init_client *primary_of(struct agx_post_start *p)
{
    return box_of(container_of(p, struct agx_native_post_start, post))->init_client;
}

static void post_start_ended(struct agx_op *op, struct agx_error *error)
{
    struct agx_native_post_start *x = post_start_of(op);

    if (error)
        AGX_LOG(AGX_LOG_DEBUG, "native.post_start_failed",
                AGX_F_STR("companion", x->companion.name), AGX_F_ERR(error));
    agx_error_free(error);
    agx_post_start_leave(&x->post);
    agx_init_client_close(x->init_client, agx_native_on_closed, x->native);
    agx_companion_done(&x->companion);
    free(x);
}

static const struct agx_op_state post_start_states[] = {
    [POST_START_REST] = { "rest", enter_rest, agx_op_cancel_held },
    [POST_START_PROBE] = { "probe", enter_probe, agx_op_cancel_held },
    [POST_START_RUN] = { "run", agx_post_start_enter_run, agx_op_cancel_held },
};

static const struct agx_op_kind post_start_kind = {
    .name = "native-after",
    .states = post_start_states,
    .n_states = AGX_ARRAY_LEN(post_start_states),
    .cancel_held = agx_post_start_cancel,
    .finish = post_start_ended,
};

/* That of the spec counts, else that of the image. */
static int choose_healthcheck(struct agx_native_post_start *x, const struct agx_image *image)
{
    struct agx_healthcheck *h = &x->companion.healthcheck;
    const struct agx_healthcheck *from = image ? &image->config.healthcheck : NULL;

    if (h->set || !from || !from->set)
        return 0;
    *h = *from;
    h->test = (struct agx_words){ 0 };
    return agx_words_copy(&h->test, &from->test, NULL);
}

void agx_native_post_start_start(struct agx_native_box *box, size_t part,
                                 const struct agx_companion *companion)
{
    struct agx_native_post_start *x;
    uint64_t budget_ms;

    if (companion->post_start_on_primary.len == 0)
        return;
    x = agx_new(struct agx_native_post_start);
    x->native = box->native;
    x->part = part;
    if (agx_companion_copy(&x->companion, companion, NULL) < 0 ||
        choose_healthcheck(x, box->parts[part].image) < 0)
        abort();
    x->begun_ms = now_ms(x);
    budget_ms = (uint64_t)agx_healthcheck_budget_ns(&x->companion.healthcheck) / NS_PER_MS;
    x->post = (struct agx_post_start){ .backend = &box->native->base,
                                       .all = &box->afters,
                                       .place = part - 1,
                                       .commands = &x->companion.post_start_on_primary,
                                       .envs = &x->companion.envs,
                                       .until_ms = x->begun_ms + budget_ms,
                                       .primary = primary_of };
    agx_post_start_begin(&x->post, &post_start_kind, &x->native->operations, x->companion.name);
}
