/*
 * box.c: a known sandbox, and how to find its init.
 *
 * The engine's description of the primary decides. If it runs, its init is used, in the way that
 * its label names; otherwise its commands have ended. An engine that does not answer decides
 * nothing: it is asked again, and calls wait.
 */
#include "backend/docker/docker_internal.h"

#include "backend/docker/engexec.h"
#include "backend/docker/inventory.h"
#include "backend/docker/mount_check.h"
#include "backend/docker/post_start.h"
#include "base/log.h"
#include "base/mem.h"

#include <inttypes.h>

#include "base/banned.h"

/* ---- looking for its init ---- */

enum { REACH_DONE = AGX_OP_DONE, REACH_INSPECT, REACH_PAUSE };

struct reach {
    struct agx_op op;
    struct agx_docker_box *box; /* NULL: it went */
    char *name;
    bool away;       /* the engine did not answer: logged once */
    unsigned misses; /* how often PID 1 was gone and the engine did not know */
};

static struct reach *reach_of(struct agx_op *op)
{
    return container_of(op, struct reach, op);
}

static void on_inspected(struct agx_op *op, size_t tag, const struct agx_docker_answer *answer,
                         struct agx_error *error)
{
    struct reach *x = reach_of(op);
    struct agx_error *why = NULL;
    int r;

    (void)tag;
    if (error && error->code != AGX_NOT_FOUND) {
        if (!x->away)
            AGX_LOG(AGX_LOG_DEBUG, "docker.reach_waits", AGX_F_STR("sandbox", x->box->id),
                    AGX_F_ERR(error));
        x->away = true;
        op->then = REACH_PAUSE;
    } else if (error) {
        (void)agx_error_set(&why, AGX_NOT_FOUND, "there is no sandbox '%s'", x->box->id);
        agx_docker_box_down(x->box, why);
    } else {
        r = agx_docker_box_usage(x->box, answer->json, &why);
        if (r == -AGX_NOT_FOUND && x->misses++ < AGX_DOCKER_REACH_TRIES)
            op->then = REACH_PAUSE;
        else if (r < 0)
            agx_docker_box_down(x->box, AGX_TAKE_PTR(why));
        agx_error_free(why);
    }
    agx_error_free(error);
}

static int enter_inspect(struct agx_op *op, struct agx_error **err)
{
    struct reach *x = reach_of(op);
    int r = agx_docker_ask(
        op,
        &(struct agx_docker_query){ .request = { .method = "GET", .what = "look at a sandbox" },
                                    .path = agx_docker_path("/containers/%s/json", x->name),
                                    .answered = on_inspected },
        err);

    return agx_op_wait(op, r, REACH_DONE, err);
}

static int enter_pause(struct agx_op *op, struct agx_error **err)
{
    agx_op_pause(op, reach_of(op)->away ? AGX_DOCKER_REACH_AWAY_MS : AGX_DOCKER_REACH_MS);
    return agx_op_wait(op, 0, REACH_INSPECT, err);
}

static void reach_ended(struct agx_op *op, struct agx_error *error)
{
    struct reach *x = reach_of(op);

    if (x->box)
        x->box->reach = NULL;
    /* Whatever failed: waiting calls keep waiting, until the next call tries again. */
    agx_error_free(error);
    free(x->name);
    free(x);
}

static const struct agx_op_state reach_states[] = {
    [REACH_INSPECT] = { "inspect", enter_inspect, agx_op_cancel_held },
    [REACH_PAUSE] = { "pause", enter_pause, agx_op_cancel_held },
};

static const struct agx_op_kind reach_kind = {
    .name = "docker-reach",
    .states = reach_states,
    .n_states = AGX_ARRAY_LEN(reach_states),
    .finish = reach_ended,
};

static void look_for(struct agx_docker_box *box)
{
    const struct agx_sandbox sb = { .id = box->id };
    struct agx_docker_names names;
    struct reach *x;

    if (box->reach || box->docker->base.closing)
        return;
    if (agx_docker_names_init(&names, &box->docker->maker, &sb, NULL) < 0)
        return; /* the next call tries again */
    x = agx_new(struct reach);
    x->box = box;
    x->name = AGX_TAKE_PTR(names.primary);
    agx_docker_names_done(&names);
    box->reach = &x->op;
    agx_op_start_in(&x->op, &reach_kind, &box->docker->operations, x->name, 0);
}

void agx_docker_box_reach(struct agx_docker_box *box)
{
    if (box->state == AGX_DOCKER_BOX_DOWN && !box->docker->base.closing) {
        agx_init_client_expect(box->init_client);
        box->state = AGX_DOCKER_BOX_UNKNOWN;
    }
    if (box->state == AGX_DOCKER_BOX_UNKNOWN)
        look_for(box);
}

void agx_docker_box_doubt(struct agx_docker_box *box)
{
    if (box->state == AGX_DOCKER_BOX_UP && box->pid != 0)
        look_for(box);
}

/* ---- its primary, as the engine describes it ---- */

/* Where init itself does not report its end. */
static void primary_ended(struct agx_docker_box *box)
{
    struct agx_error *error = NULL;

    agx_docker_box_down(box, NULL);
    (void)agx_error_set(&error, AGX_UNAVAILABLE, "the main process of sandbox '%s' has ended",
                        box->id);
    agx_docker_op_hear(box->task, error);
}

int agx_docker_box_usage(struct agx_docker_box *box, const json_t *inspect, struct agx_error **err)
{
    const json_t *config = json_object_get(inspect, "Config");
    const json_t *state = json_object_get(inspect, "State");
    struct agx_error *why = NULL;
    enum agx_docker_status status;
    struct agx_docker_tag tag;

    if (box->comparing ||
        (box->state == AGX_DOCKER_BOX_UP && !agx_docker_channel_is_stale(box, inspect)))
        return 0;
    if (box->state == AGX_DOCKER_BOX_UP)
        primary_ended(box);
    if (!agx_docker_labels_read(&box->docker->maker, json_object_get(config, "Labels"), &tag) ||
        tag.component != AGX_DOCKER_PRIMARY || strcmp(tag.sandbox_id, box->id) != 0) {
        (void)agx_error_set(&why, AGX_NOT_FOUND, "there is no sandbox '%s'", box->id);
        agx_docker_box_down(box, why);
        return 0;
    }
    status = agx_docker_status_parse(json_string_value(json_object_get(state, "Status")));
    if (status == AGX_DOCKER_RUNNING || status == AGX_DOCKER_PAUSED)
        return agx_docker_channel_up(box, inspect, &tag, err);
    (void)agx_error_set(&why, AGX_UNAVAILABLE, "the main process of sandbox '%s' is not running",
                        box->id);
    agx_docker_box_down(box, why);
    return 0;
}

/* ---- up and down ---- */

static void on_ready(void *user)
{
    struct agx_docker_box *box = user;

    agx_docker_op_hear(box->task, NULL);
}

static void on_ended(void *user, struct agx_error *error)
{
    struct agx_docker_box *box = user;

    box->state = AGX_DOCKER_BOX_DOWN;
    agx_docker_op_hear(box->task, error);
}

void agx_docker_box_down(struct agx_docker_box *box, struct agx_error *error)
{
    agx_docker_channel_drop(box);
    box->state = AGX_DOCKER_BOX_DOWN;
    agx_init_client_down(box->init_client, error);
}

static void on_init_client_closed(void *user, struct agx_error *error)
{
    agx_error_free(error);
    agx_docker_released(user);
}

void agx_docker_box_close(struct agx_docker_box *box)
{
    if (box->init_client)
        agx_init_client_close(AGX_TAKE_PTR(box->init_client), on_init_client_closed, box->docker);
}

/* The operations of it are gone, or have forgotten it. */
void agx_docker_box_free(struct agx_docker_box *box)
{
    agx_docker_box_close(box);
    json_decref(box->inspect);
    agx_error_free(box->other);
    free(box->id);
    free(box);
}

void agx_docker_box_drop(struct agx_docker_box *box)
{
    (void)agx_map_remove(&box->docker->boxes, agx_str_from(box->id));
    if (box->reach) {
        reach_of(box->reach)->box = NULL;
        agx_op_cancel(box->reach, AGX_CANCELLED);
    }
    agx_docker_post_start_cancel(box);
    agx_docker_box_down(box, NULL);
    (void)!agx_docker_engexec_purge(box->docker->state_dir, box->id, NULL); /* on failure a few
                                                                             * bytes stay */
    agx_docker_mount_check_purge(box->docker->state_dir, box->id);
    agx_docker_box_free(box);
}

struct agx_docker_box *agx_docker_box_find(const struct agx_docker *d, const char *sandbox_id)
{
    return agx_map_get(&d->boxes, agx_str_from(sandbox_id));
}

int agx_docker_box_get(struct agx_docker *d, const char *sandbox_id,
                       struct agx_docker_box **ret_box, struct agx_error **err)
{
    struct agx_docker_box *box = agx_docker_box_find(d, sandbox_id);
    struct agx_init_client_config c = {
        .backend = &d->base, .sandbox_id = sandbox_id, .ready = on_ready, .ended = on_ended
    };
    int r;

    *ret_box = box;
    if (box)
        return 0;
    box = agx_new(struct agx_docker_box);
    box->docker = d;
    c.user = box;
    r = agx_text_set(&box->id, sandbox_id, err);
    if (r == 0)
        r = agx_map_put(&d->boxes, agx_str_from(sandbox_id), box, NULL);
    if (r == 0)
        r = agx_init_client_open(&c, &box->init_client, err);
    if (r < 0) {
        (void)agx_map_remove(&d->boxes, agx_str_from(sandbox_id));
        free(box->id);
        free(box);
        return r;
    }
    d->n_open++;
    *ret_box = box;
    return 0;
}
