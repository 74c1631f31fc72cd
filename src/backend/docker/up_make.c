/*
 * up_make.c: makes the containers and the network of a new sandbox in parallel; and their undo.
 *
 * The engine accepts a container before its network exists: only the start needs it. So each
 * container is made independently, in parallel with the network and its firewall rules.
 */
#include "backend/docker/op_up.h"

#include "backend/docker/create_body.h"
#include "backend/docker/dup_networks.h"
#include "backend/docker/post_start.h"
#include "backend/docker/spare_networks.h"
#include "backend/exec/initstream.h"
#include "base/log.h"

#include <inttypes.h>

#include "base/banned.h"

/* ---- what half-made things are there goes first ---- */

static void on_cleaned(void *user, struct agx_error *error)
{
    struct agx_docker_up *up = user;

    up->removal = NULL;
    agx_op_fail(&up->task.op, &error);
    agx_op_arrive(&up->task.op);
}

/* A spare network that was taken is removed too, whether a container was made for it or not: the
 * engine may still be about to make one. */
static void begin_removal(struct agx_docker_up *up, uint64_t deadline_ms, agx_done_fn done)
{
    struct agx_op *op = &up->task.op;
    const struct agx_docker_removal q = { .sandbox_id = up->task.sandbox.id,
                                          .network = agx_docker_spare_networks_is(up->names.network)
                                                         ? up->names.network
                                                         : NULL,
                                          .deadline_ms = deadline_ms };

    agx_op_hold(op);
    up->removal = agx_docker_remove(agx_docker_by(op), &q, done, up);
}

int agx_docker_up_enter_clean(struct agx_op *op, struct agx_error **err)
{
    struct agx_docker_up *up = agx_docker_up_of(op);
    int r = 0;

    for (size_t i = 0; i < up->n_parts; i++) {
        free(up->parts[i].id);
        up->parts[i].id = NULL;
        agx_error_freep(&up->parts[i].failed);
    }
    if (up->rounds > 0)
        agx_op_pause(op, AGX_DOCKER_REMOVE_AGAIN_MS);
    agx_docker_post_start_cancel(up->box);
    begin_removal(up, 0, on_cleaned);
    up->copy = 0;
    up->reach_until_ms = 0;
    if (agx_docker_spare_networks_is(up->names.network)) { /* the next round has another */
        agx_docker_names_done(&up->names);
        r = agx_docker_names_init(&up->names, &agx_docker_by(op)->maker, &up->task.sandbox, err);
    }
    up->net = (struct agx_docker_net){ 0 };
    return agx_op_wait(op, r, UP_NAMES, err);
}

/* The engine's messages when an earlier request has made, or removed, something in the meantime. */
static bool is_late(const struct agx_docker_up *up, const struct agx_error *error)
{
    static const char *const texts[] = { "is ambiguous", "No such container",
                                         "marked for removal" };
    char text[AGX_FAILURE_TEXT_MAX];

    (void)agx_error_format(error, text, sizeof(text));
    for (size_t i = 0; i < AGX_ARRAY_LEN(texts); i++) {
        if (strstr(text, texts[i]))
            return true;
    }
    return up->net.name[0] && strstr(text, up->net.name);
}

bool agx_docker_up_again(struct agx_docker_up *up, struct agx_error **error)
{
    if (up->task.verb != AGX_DO_CREATE || !*error || up->rounds >= AGX_DOCKER_MAKE_ROUNDS ||
        !is_late(up, *error))
        return false;
    up->rounds++;
    up->makes = true;
    agx_error_freep(error);
    up->task.op.then = UP_CLEAN;
    return true;
}

bool agx_docker_up_part_dup_networks(struct agx_docker_up *up, struct agx_error **error)
{
    struct agx_op *op = &up->task.op;
    char text[AGX_FAILURE_TEXT_MAX];

    if (!*error || up->rounds >= AGX_DOCKER_MAKE_ROUNDS ||
        !strstr(agx_error_format(*error, text, sizeof(text)), "is ambiguous"))
        return false;
    agx_error_freep(error);
    if (up->rounds++ > 0)
        agx_op_pause(op, AGX_DOCKER_REMOVE_AGAIN_MS);
    agx_op_hold(op);
    up->removal = agx_docker_dup_networks_remove(agx_docker_by(op), up->task.sandbox.id, &up->task,
                                                 on_cleaned, up);
    op->then = UP_FIREWALL;
    return true;
}

/* ---- the network ---- */

/* Another program was faster, or the engine knows ranges that the host does not show. */
static bool is_overlap(const struct agx_error *error)
{
    char text[AGX_FAILURE_TEXT_MAX];

    return error && strstr(agx_error_format(error, text, sizeof(text)), "overlaps");
}

/* A network of that name: ours, of a create that was cut off, or somebody else's. */
static void on_other_network(struct agx_op *op, size_t tag, const struct agx_docker_answer *answer,
                             struct agx_error *error)
{
    struct agx_docker_up *up = agx_docker_up_of(op);
    struct agx_docker_tag of;

    (void)tag;
    if (agx_docker_up_again(up, &error))
        return;
    if (!error && (!agx_docker_labels_read(&agx_docker_by(op)->maker,
                                           json_object_get(answer->json, "Labels"), &of) ||
                   strcmp(of.sandbox_id, up->task.sandbox.id) != 0))
        (void)agx_error_set(&error, AGX_ALREADY_EXISTS,
                            "the name '%s' is taken by a network that is not ours",
                            up->names.network);
    if (!error)
        (void)!agx_docker_net_parse(&up->net, answer->json, &error);
    if (!error)
        agx_docker_up_firewall(up);
    agx_op_fail(op, &error);
}

static void look_at_network(struct agx_docker_up *up)
{
    struct agx_error *error = NULL;

    (void)!agx_docker_ask(
        &up->task.op,
        &(struct agx_docker_query){ .request = { .method = "GET", .what = "look at a network" },
                                    .path = agx_docker_path("/networks/%s", up->names.network),
                                    .answered = on_other_network },
        &error);
    agx_op_fail(&up->task.op, &error);
}

static void on_network_made(struct agx_op *op, size_t tag, const struct agx_docker_answer *answer,
                            struct agx_error *error)
{
    struct agx_docker_up *up = agx_docker_up_of(op);

    (void)tag;
    (void)answer;
    if (is_overlap(error) && agx_docker_by(op)->has_pool &&
        ++up->net_tries < AGX_DOCKER_NET_TRIES && !op->error) {
        agx_error_free(error);
        agx_docker_up_make_network(up);
    } else if (error && error->code == AGX_ALREADY_EXISTS) {
        agx_error_free(error);
        look_at_network(up);
    } else if (error) {
        agx_op_fail(op, &error);
    } else if (!agx_docker_by(op)->has_pool) {
        look_at_network(up);
    } else {
        agx_docker_up_firewall(up);
    }
}

static int ask_for_network(struct agx_docker_up *up, struct agx_error **err)
{
    struct agx_op *op = &up->task.op;
    _cleanup_json_ json_t *body = NULL;
    char subnet[AGX_SUBNET_TEXT];
    int r = agx_docker_net_plan(agx_docker_by(op), &up->net, subnet, err);

    if (agx_docker_spare_networks_is(
            up->names.network)) /* of a resume: a spare that it used was pruned */
        (void)snprintf(up->net.name, sizeof(up->net.name), "%s", up->names.network);
    if (r == 0)
        r = agx_docker_create_body_network(
            &agx_docker_by(op)->maker, &up->task.sandbox, up->names.network,
            agx_docker_by(op)->has_pool ? subnet : NULL, up->net.bridge, up->egress, &body, err);
    if (r < 0)
        return r;
    return agx_docker_ask(
        op,
        &(struct agx_docker_query){
            .request = { .method = "POST", .what = "make the sandbox's network", .body = body },
            .path = agx_docker_path("/networks/create"),
            .answered = on_network_made,
            .makes = true },
        err);
}

/* A spare exists and is in the firewall, but its label has no egress list. */
static int get_network(struct agx_docker_up *up, struct agx_error **err)
{
    if (up->task.sandbox.spec.network == AGX_NETWORK_NAT &&
        agx_docker_spare_networks_take(agx_docker_by(&up->task.op), &up->net))
        return agx_text_set(&up->names.network, up->net.name, err);
    return ask_for_network(up, err);
}

void agx_docker_up_make_network(struct agx_docker_up *up)
{
    struct agx_error *error = NULL;

    (void)!ask_for_network(up, &error);
    agx_op_fail(&up->task.op, &error);
}

/* ---- containers ---- */

static const char *part_name(const struct agx_docker_up *up, size_t part)
{
    return part == 0 ? up->names.primary : up->names.companions[part - 1];
}

/* Its name is taken: by something foreign, which stays; or by what a create before this one left,
 * maybe one that the engine has not even finished. */
static void on_other_container(struct agx_op *op, size_t part,
                               const struct agx_docker_answer *answer, struct agx_error *error)
{
    struct agx_docker_up *up = agx_docker_up_of(op);
    const json_t *config = error ? NULL : json_object_get(answer->json, "Config");
    const bool gone = error && error->code == AGX_NOT_FOUND;
    struct agx_docker_tag tag;

    if (gone || (!error &&
                 agx_docker_labels_read(&agx_docker_by(op)->maker,
                                        json_object_get(config, "Labels"), &tag) &&
                 strcmp(tag.sandbox_id, up->task.sandbox.id) == 0)) {
        agx_error_freep(&error);
        if (up->rounds++ < AGX_DOCKER_MAKE_ROUNDS)
            op->then = UP_CLEAN;
        else
            (void)agx_error_set(&error, AGX_UNAVAILABLE, "the name '%s' does not become free",
                                part_name(up, part));
    } else if (!error) {
        (void)agx_error_set(&error, AGX_ALREADY_EXISTS,
                            "the name '%s' is taken by a container that is not ours",
                            part_name(up, part));
    }
    agx_op_fail(op, &error);
}

static void look_at_container(struct agx_docker_up *up, size_t part)
{
    struct agx_error *error = NULL;

    (void)!agx_docker_ask(&up->task.op,
                          &(struct agx_docker_query){
                              .request = { .method = "GET", .what = "look at a container" },
                              .path = agx_docker_path("/containers/%s/json", part_name(up, part)),
                              .answered = on_other_container,
                              .tag = part },
                          &error);
    agx_op_fail(&up->task.op, &error);
}

static void on_container_made(struct agx_op *op, size_t part,
                              const struct agx_docker_answer *answer, struct agx_error *error)
{
    struct agx_docker_up *up = agx_docker_up_of(op);
    const char *id = error ? NULL : json_string_value(json_object_get(answer->json, "Id"));

    if (error && error->code == AGX_ALREADY_EXISTS && !op->error) {
        agx_error_free(error);
        look_at_container(up, part);
        return;
    }
    if (!error && !id)
        (void)agx_error_set(&error, AGX_DATA_LOSS, "the engine made a container without an id");
    if (!error)
        (void)!agx_text_set(&up->parts[part].id, id, &error);
    up->parts[part].status = AGX_DOCKER_CREATED;
    if (error)
        agx_docker_part_fail(up, part, error);
}

static int part_body(struct agx_docker_up *up, size_t part, const struct agx_docker_image *image,
                     json_t **ret_body, struct agx_error **err)
{
    const struct agx_docker *d = agx_docker_by(&up->task.op);
    const struct agx_sandbox *sb = &up->task.sandbox;
    const struct agx_docker_frame frame = {
        .maker = &d->maker,
        .sandbox = sb,
        .network = sb->spec.network == AGX_NETWORK_NONE ? NULL : up->names.network,
        .control = d->control,
        .init_path = d->init_path,
        .pids = d->pids,
        .hosts = &up->hosts,
    };
    char key[AGX_INITSTREAM_KEY_LEN + 1];
    const struct agx_docker_primary primary = { .image = image,
                                                .init_key = key,
                                                .binds = &up->host_view.binds,
                                                .tool_envs = &up->host_view.envs,
                                                .host_uid = d->host_uid,
                                                .host_gid = d->host_gid,
                                                .gpu_groups = up->host_view.gpus.groups,
                                                .gpu_groups_len = up->host_view.gpus.len };
    int r = agx_initstream_make_key(key, err);

    if (r < 0)
        return r;
    return part == 0 ? agx_docker_create_body_primary(&frame, &primary, ret_body, err)
                     : agx_docker_create_body_companion(&frame, part - 1, image, ret_body, err);
}

static void make_container(struct agx_docker_up *up, size_t part)
{
    const struct agx_docker_image *image = &up->parts[part].image;
    _cleanup_json_ json_t *body = NULL;
    struct agx_error *error = NULL;
    char title[300], what[320];
    int r = part_body(up, part, image, &body, &error);

    (void)snprintf(what, sizeof(what), "make %s",
                   agx_docker_part_title(up, part, title, sizeof(title)));
    if (r == 0)
        r = agx_docker_ask(
            &up->task.op,
            &(struct agx_docker_query){
                .request = { .method = "POST", .what = what, .body = body },
                .path = agx_docker_path("/containers/create?name=%s", part_name(up, part)),
                .answered = on_container_made,
                .tag = part,
                .makes = true },
            &error);
    if (r < 0)
        agx_docker_part_fail(up, part, error);
}

static void on_planned(void *user, struct agx_host_view *host_view, struct agx_error *error)
{
    struct agx_docker_up *up = user;
    struct agx_op *op = &up->task.op;

    up->plan = NULL;
    up->host_view = *host_view;
    *host_view = (struct agx_host_view){ 0 };
    if (!error && !op->error)
        make_container(up, 0);
    agx_op_fail(op, &error);
    agx_op_arrive(op);
}

/* The user that writes to mounts: for an image of agents-sandbox, the one that its entrypoint
 * makes. */
static void plan_primary(struct agx_docker_up *up)
{
    const struct agx_docker *d = agx_docker_by(&up->task.op);
    struct agx_error *error = NULL;
    char owner[32];
    int r;

    (void)snprintf(owner, sizeof(owner), "%" PRIu32 ":%" PRIu32, d->host_uid, d->host_gid);
    agx_host_view_done(&up->host_view);
    r = agx_host_view_start(&d->host, &up->task.sandbox,
                            d->maker.compat ? owner
                                            : agx_docker_exec_user(&d->maker, &up->parts[0].image),
                            true, on_planned, up, &up->plan, &error);
    if (r == 0)
        agx_op_hold(&up->task.op);
    agx_op_fail(&up->task.op, &error);
}

static void on_image(void *user, struct agx_docker_image *image, struct agx_error *error)
{
    struct agx_docker_part *p = user;
    struct agx_docker_up *up = p->up;
    struct agx_op *op = &up->task.op;
    const size_t part = (size_t)(p - up->parts);

    p->want = NULL;
    if (!error) {
        agx_docker_image_done(&p->image);
        p->image = *image;
        agx_docker_image_init(image);
    }
    if (!error && !op->error) {
        if (part == 0 && agx_host_view_is_needed(&up->task.sandbox.spec))
            plan_primary(up);
        else
            make_container(up, part);
    }
    agx_op_fail(op, &error); /* of a companion too */
    agx_op_arrive(op);
}

static void on_progress(void *user, const struct agx_pull *pull)
{
    const struct agx_sandbox_op *t = &((struct agx_docker_part *)user)->up->task;

    if (t->hooks.progress && !t->abandoned)
        t->hooks.progress(t->user, pull);
}

static const struct agx_docker_ensure_ops ensure_ops = { on_progress, on_image };

int agx_docker_up_enter_make(struct agx_op *op, struct agx_error **err)
{
    struct agx_docker_up *up = agx_docker_up_of(op);
    const struct agx_spec *spec = &up->task.sandbox.spec;
    int r = 0;

    if (spec->network != AGX_NETWORK_NONE)
        r = get_network(up, err);
    for (size_t i = 0; r == 0 && i < up->n_parts; i++) {
        struct agx_docker_part *p = &up->parts[i];

        p->up = up;
        r = agx_docker_ensure(agx_docker_by(op)->puller,
                              i == 0 ? spec->image : spec->companions[i - 1].image, &ensure_ops, p,
                              &p->want, err);
        if (r == 0)
            agx_op_hold(op);
    }
    return agx_op_wait(op, r, UP_STAT, err);
}

/* ---- the undoing ---- */

static void on_undone(void *user, struct agx_error *error)
{
    struct agx_docker_up *up = user;

    if (error)
        AGX_LOG(AGX_LOG_DEBUG, "docker.not_undone", AGX_F_STR("sandbox", up->task.sandbox.id),
                AGX_F_ERR(error));
    agx_error_free(error); /* a delete removes what is left */
    up->removal = NULL;
    agx_op_arrive(&up->task.op);
}

void agx_docker_up_unmake(struct agx_docker_up *up)
{
    const struct agx_error *error = up->task.op.error;
    const bool cancelled = error && error->code == AGX_CANCELLED;

    begin_removal(up, cancelled ? AGX_DOCKER_UNDO_CANCELLED_MS : AGX_DOCKER_UNDO_MS, on_undone);
}

void agx_docker_up_cancel_make(struct agx_docker_up *up)
{
    struct agx_op *op = &up->task.op;

    for (size_t i = 0; i < up->n_parts; i++) {
        if (!up->parts[i].want)
            continue;
        agx_docker_ensure_cancel(AGX_TAKE_PTR(up->parts[i].want));
        agx_op_arrive(op);
    }
    up->copies = agx_copies_close(up->copies);
    if (up->plan) {
        agx_host_view_abandon(AGX_TAKE_PTR(up->plan));
        agx_op_arrive(op);
    }
    if (up->removal)
        agx_op_cancel(up->removal, AGX_CANCELLED);
}
