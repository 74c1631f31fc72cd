/* op_up.c: create, resume, revive; see op_up.h for the states. */
#include "backend/docker/op_up.h"

#include "backend/docker/post_start.h"
#include "backend/docker/spare_networks.h"
#include "base/mem.h"

#include <inttypes.h>

#include "base/banned.h"

/* Reported now: nothing more follows for it. */
static void tell_companion(struct agx_docker_up *up, size_t part, struct agx_error *error)
{
    const struct agx_sandbox_op *t = &up->task;

    if (t->abandoned || !t->hooks.companion || t->verb == AGX_DO_REVIVE ||
        agx_docker_by(&t->op)->base.closing)
        agx_error_free(error);
    else
        t->hooks.companion(t->user, part - 1, error);
}

/* ---- scan ---- */

static void take_found(struct agx_docker_up *up)
{
    for (size_t i = 0; i < up->found.len; i++) {
        struct agx_docker_found *f = &up->found.items[i];
        size_t part = f->component == AGX_DOCKER_PRIMARY ? 0 : f->companion + 1;

        if (part >= up->n_parts || up->parts[part].id)
            continue; /* from another spec: a delete removes it */
        if (part == 0 && agx_docker_spare_networks_is(f->network)) {
            free(up->names.network);
            up->names.network = AGX_TAKE_PTR(f->network);
        }
        up->parts[part].id = AGX_TAKE_PTR(f->id);
        up->parts[part].status = f->status;
    }
}

/* It was started, so it is complete; and it is not being removed. */
static bool is_whole(enum agx_docker_status s)
{
    return s != AGX_DOCKER_CREATED && s != AGX_DOCKER_REMOVING && s != AGX_DOCKER_DEAD;
}

/* A create that finds an incomplete container makes it again. */
static unsigned post_start_scan(struct agx_docker_up *up, struct agx_error **err)
{
    const struct agx_docker_found *primary = agx_docker_inventory_primary(&up->found);

    if (primary && (up->task.verb == AGX_DO_CREATE ? is_whole(primary->status)
                                                   : primary->status != AGX_DOCKER_CREATED)) {
        take_found(up);
        return UP_FIREWALL;
    }
    if (up->task.verb != AGX_DO_CREATE) {
        (void)agx_error_set(err, AGX_NOT_FOUND, "there is no sandbox '%s'", up->task.sandbox.id);
        return UP_DONE;
    }
    up->makes = true;
    return up->found.len > 0 ? UP_CLEAN : UP_NAMES;
}

static void on_scanned(struct agx_op *op, size_t tag, const struct agx_docker_answer *answer,
                       struct agx_error *error)
{
    struct agx_docker_up *up = agx_docker_up_of(op);
    const struct agx_sandbox_op *t = &up->task;

    (void)tag;
    if (!error)
        (void)!agx_docker_inventory_add(&up->found, agx_docker_by(op), answer->json, &error);
    if (!error)
        op->then = post_start_scan(up, &error);
    agx_op_fail(op, &error);
    if (!op->error && t->verb == AGX_DO_CREATE && t->hooks.begun && !t->abandoned)
        t->hooks.begun(t->user);
}

static int enter_scan(struct agx_op *op, struct agx_error **err)
{
    struct agx_docker_up *up = agx_docker_up_of(op);
    const struct agx_sandbox *sb = &up->task.sandbox;
    int r = agx_docker_names_init(&up->names, &agx_docker_by(op)->maker, sb, err);

    up->n_parts = sb->spec.companions_len + 1;
    up->parts = agx_alloc(up->n_parts * sizeof(*up->parts));
    if (r == 0)
        r = agx_docker_check_isolation(agx_docker_by(op), &sb->spec, err);
    if (r == 0)
        r = agx_docker_egress_text(&sb->spec, &up->egress, err);
    if (r == 0)
        r = agx_docker_inventory_ask(op, sb->id, false, on_scanned, err);
    return agx_op_wait(op, r, UP_DONE, err);
}

/* ---- firewall ---- */

static void on_firewalled(void *user, struct agx_error *error)
{
    struct agx_docker_up *up = user;

    up->firewalling = NULL;
    agx_op_fail(&up->task.op, &error);
    agx_op_arrive(&up->task.op);
}

void agx_docker_up_firewall(struct agx_docker_up *up)
{
    struct agx_op *op = &up->task.op;
    struct agx_error *error = NULL;
    const char *key = agx_docker_net_key(&up->net, up->task.sandbox.id);
    int r = agx_docker_firewall_put(agx_docker_by(op), key, &up->net, up->egress, on_firewalled, up,
                                    &up->firewalling, &error);

    if (r == 0)
        agx_op_hold(op);
    agx_op_fail(op, &error);
}

/* The network's list also has the addresses that are in the sandbox's hosts file. */
static int take_list(struct agx_docker_up *up, const json_t *network, struct agx_error **err)
{
    struct agx_docker_tag of;
    char *list;

    if (!up->egress ||
        !agx_docker_labels_read(&agx_docker_by(&up->task.op)->maker,
                                json_object_get(network, "Labels"), &of) ||
        !of.egress)
        return 0;
    list = agx_str_dup(agx_str_from(of.egress)); /* also a list without entries */
    if (!list)
        return agx_error_no_memory(err);
    free(up->egress);
    up->egress = list;
    return 0;
}

static void on_network(struct agx_op *op, size_t tag, const struct agx_docker_answer *answer,
                       struct agx_error *error)
{
    struct agx_docker_up *up = agx_docker_up_of(op);

    (void)tag;
    if (agx_docker_up_part_dup_networks(up, &error))
        return;
    if (error && error->code == AGX_NOT_FOUND) { /* prune removes the networks of stopped
                                                  * containers */
        agx_error_freep(&error);
        op->then = UP_REJOIN;
        agx_docker_up_make_network(up);
        return;
    }
    if (!error && !agx_docker_by(op)->firewall)
        return; /* it is there, and that was all */
    if (!error)
        (void)!agx_docker_net_parse(&up->net, answer->json, &error);
    if (!error)
        (void)!take_list(up, answer->json, &error);
    if (!error)
        agx_docker_up_firewall(up);
    agx_op_fail(op, &error);
}

static int enter_firewall(struct agx_op *op, struct agx_error **err)
{
    struct agx_docker_up *up = agx_docker_up_of(op);
    int r = 0;

    if (up->task.sandbox.spec.network != AGX_NETWORK_NONE)
        r = agx_docker_ask(
            op,
            &(struct agx_docker_query){
                .request = { .method = "GET", .what = "look at the sandbox's network" },
                .path = agx_docker_path("/networks/%s", up->names.network),
                .answered = on_network },
            err);
    return agx_op_wait(op, r, UP_START, err);
}

/* ---- start ---- */

static void on_started(struct agx_op *op, size_t part, const struct agx_docker_answer *answer,
                       struct agx_error *error)
{
    struct agx_docker_up *up = agx_docker_up_of(op);

    (void)answer;
    if (error && !agx_docker_up_again(up, &error))
        agx_docker_part_fail(up, part, error);
}

static int start_part(struct agx_docker_up *up, size_t part, struct agx_error **err)
{
    const struct agx_docker_part *p = &up->parts[part];
    const char *verb = p->status == AGX_DOCKER_PAUSED ? "unpause" : "start";
    char title[300], what[320];

    if (!p->id || p->status == AGX_DOCKER_RUNNING)
        return 0;
    (void)snprintf(what, sizeof(what), "%s %s", verb,
                   agx_docker_part_title(up, part, title, sizeof(title)));
    return agx_docker_ask(
        &up->task.op,
        &(struct agx_docker_query){
            .request = { .method = "POST", .what = what, .deadline_ms = AGX_DOCKER_START_MS },
            .path = agx_docker_path("/containers/%s/%s", p->id, verb),
            .answered = on_started,
            .tag = part },
        err);
}

/* All in parallel. */
static int enter_start(struct agx_op *op, struct agx_error **err)
{
    struct agx_docker_up *up = agx_docker_up_of(op);
    int r = 0;

    /* Messages of an init from before this start are ignored from here on. */
    if (up->box->state == AGX_DOCKER_BOX_UP && !agx_docker_status_runs(up->parts[0].status))
        agx_docker_box_down(up->box, NULL);
    for (size_t i = 0; r == 0 && i < up->n_parts; i++)
        r = start_part(up, i, err);
    return agx_op_wait(op, r, UP_REACH, err);
}

/* ---- reach ---- */

static void tell_companions(struct agx_docker_up *up)
{
    for (size_t i = 1; i < up->n_parts; i++) {
        struct agx_docker_part *p = &up->parts[i];
        struct agx_error *why = AGX_TAKE_PTR(p->failed);
        char title[300];

        if (!p->id && !why)
            (void)agx_error_set(&why, AGX_NOT_FOUND, "%s has no container",
                                agx_docker_part_title(up, i, title, sizeof(title)));
        if (!why && up->task.verb == AGX_DO_CREATE)
            agx_docker_post_start_start(up->box, &up->task.sandbox.spec.companions[i - 1], i - 1,
                                        p->id);
        tell_companion(up, i, why);
    }
}

static struct agx_error *ended_at_once(const struct agx_docker_up *up, const json_t *state)
{
    struct agx_error *e = NULL;

    (void)agx_error_set(
        &e, AGX_FAILED_PRECONDITION,
        "the main process of sandbox '%s' ended at once with exit code %" PRId64 "%s",
        up->task.sandbox.id, (int64_t)json_integer_value(json_object_get(state, "ExitCode")),
        json_is_true(json_object_get(state, "OOMKilled")) ? ", out of memory" : "");
    return e;
}

/* True: the engine's answer may change soon. */
static bool may_change(const struct agx_docker_up *up, enum agx_docker_status status, int r)
{
    return (status == AGX_DOCKER_RESTARTING || r == -AGX_NOT_FOUND) &&
           uv_now(agx_loop_uv(agx_docker_by(&up->task.op)->base.loop)) < up->reach_until_ms;
}

static void on_inspected(struct agx_op *op, size_t tag, const struct agx_docker_answer *answer,
                         struct agx_error *error)
{
    struct agx_docker_up *up = agx_docker_up_of(op);
    const json_t *state = error ? NULL : json_object_get(answer->json, "State");
    const char *text = json_string_value(json_object_get(state, "Status"));
    enum agx_docker_status status = agx_docker_status_parse(text);
    int r = 0;

    (void)tag;
    if (agx_docker_up_again(up, &error))
        return;
    if (up->box->comparing) { /* it reports why it ends */
        agx_error_freep(&error);
        agx_op_pause(op, AGX_DOCKER_READY_MS);
        op->then = UP_REACH;
        return;
    }
    if (!error && (status == AGX_DOCKER_EXITED || status == AGX_DOCKER_DEAD))
        error = ended_at_once(up, state);
    if (!error && status == AGX_DOCKER_RUNNING)
        r = agx_docker_box_usage(up->box, answer->json, &error);
    if (may_change(up, status, r)) {
        agx_error_freep(&error);
        agx_op_pause(op, AGX_DOCKER_REACH_MS);
        op->then = UP_REACH;
    } else if (!error && up->box->state == AGX_DOCKER_BOX_UP &&
               !agx_init_client_is_ready(up->box->init_client)) {
        agx_op_pause(op, AGX_DOCKER_READY_MS); /* woken by `heard` */
        op->then = UP_REACH;
    }
    agx_op_fail(op, &error);
}

/* Until init answers, the primary is inspected periodically: it may have ended. */
static int enter_reach(struct agx_op *op, struct agx_error **err)
{
    struct agx_docker_up *up = agx_docker_up_of(op);
    const uint64_t now_ms = uv_now(agx_loop_uv(agx_docker_by(op)->base.loop));
    int r = 0;

    if (up->reach_until_ms == 0)
        up->reach_until_ms = now_ms + AGX_DOCKER_READY_MS;
    if (up->box->state == AGX_DOCKER_BOX_UP && agx_init_client_is_ready(up->box->init_client)) {
        if (up->looked || !up->box->held) {
            tell_companions(up);
            return agx_op_wait(op, 0, UP_DONE, err);
        }
        up->looked = true; /* it may end at once */
    }
    if (up->box->other) {
        *err = AGX_TAKE_PTR(up->box->other);
        r = -(int)(*err)->code;
    } else if (now_ms >= up->reach_until_ms)
        r = agx_error_set(err, AGX_DEADLINE_EXCEEDED, "init of sandbox '%s' does not answer",
                          up->task.sandbox.id);
    else if (up->box->comparing)
        agx_op_pause(op, up->reach_until_ms - now_ms); /* woken by `heard` */
    else
        r = agx_docker_ask(op,
                           &(struct agx_docker_query){
                               .request = { .method = "GET", .what = "look at the sandbox" },
                               .path = agx_docker_path("/containers/%s/json", up->parts[0].id),
                               .answered = on_inspected },
                           err);
    return agx_op_wait(op, r, UP_REACH, err);
}

/* Init answers, or has ended: look again. */
static void up_heard(struct agx_sandbox_op *t, struct agx_error *error)
{
    agx_error_free(error);
    if (t->op.state == UP_REACH)
        agx_op_wake(&t->op);
}

/* ---- the whole ---- */

static void cancel_up(struct agx_op *op)
{
    struct agx_docker_up *up = agx_docker_up_of(op);

    if (up->firewalling) {
        agx_docker_firewall_abandon(AGX_TAKE_PTR(up->firewalling));
        agx_op_arrive(op);
    }
    agx_docker_up_cancel_names(up);
    agx_docker_up_cancel_make(up);
}

static void up_begin(struct agx_sandbox_op *t)
{
    struct agx_docker_up *up = container_of(t, struct agx_docker_up, task);

    up->box = agx_docker_box_of(t);
    agx_error_freep(&up->box->other);
}

static void up_free(struct agx_sandbox_op *t)
{
    struct agx_docker_up *up = container_of(t, struct agx_docker_up, task);

    for (size_t i = 0; i < up->n_parts; i++) {
        free(up->parts[i].id);
        agx_error_free(up->parts[i].failed);
        agx_docker_image_done(&up->parts[i].image);
    }
    free(up->parts);
    free(up->egress);
    agx_words_done(&up->hosts);
    agx_host_view_done(&up->host_view);
    agx_copies_close(up->copies);
    agx_tool_files_wipe(&up->tar);
    agx_docker_names_done(&up->names);
    agx_docker_inventory_done(&up->found);
}

/* ---- a resume that failed ---- */

static void on_quiet(struct agx_op *op, size_t part, const struct agx_docker_answer *answer,
                     struct agx_error *error)
{
    (void)op;
    (void)part;
    (void)answer;
    agx_error_free(error); /* the resume's own failure is reported */
}

/* What it started must not run on without the rest. */
static int stop_started(struct agx_docker_up *up, struct agx_error **err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < up->n_parts; i++) {
        const struct agx_docker_part *p = &up->parts[i];

        if (!p->id || agx_docker_status_runs(p->status))
            continue;
        r = agx_docker_ask(&up->task.op,
                           &(struct agx_docker_query){
                               .request = { .method = "POST", .what = "stop container" },
                               .path = agx_docker_path("/containers/%s/stop?t=%u", p->id, 1U),
                               .answered = on_quiet },
                           err);
    }
    return r;
}

static int enter_undo(struct agx_op *op, struct agx_error **err)
{
    struct agx_docker_up *up = agx_docker_up_of(op);
    int r = 0;

    if (agx_docker_by(op)->base.closing)
        return agx_op_wait(op, 0, UP_DONE, err);
    if (up->makes)
        agx_docker_up_unmake(up);
    else if (up->task.verb == AGX_DO_RESUME)
        r = stop_started(up, err);
    return agx_op_wait(op, r, UP_DONE, err);
}

static const struct agx_op_state up_states[] = {
    [UP_SCAN] = { "scan", enter_scan, agx_op_cancel_held },
    [UP_CLEAN] = { "clean", agx_docker_up_enter_clean, agx_op_cancel_held },
    [UP_NAMES] = { "names", agx_docker_up_enter_names, agx_op_cancel_held },
    [UP_MAKE] = { "make", agx_docker_up_enter_make, agx_op_cancel_held, UP_UNDO },
    [UP_STAT] = { "stat", agx_docker_up_enter_stat, agx_op_cancel_held, UP_UNDO },
    [UP_UPLOAD] = { "upload", agx_docker_up_enter_upload, agx_op_cancel_held, UP_UNDO },
    [UP_FIREWALL] = { "firewall", enter_firewall, agx_op_cancel_held },
    [UP_REJOIN] = { "rejoin", agx_docker_up_enter_rejoin, agx_op_cancel_held },
    [UP_START] = { "start", enter_start, agx_op_cancel_held, UP_UNDO },
    [UP_REACH] = { "reach", enter_reach, agx_op_cancel_held, UP_UNDO },
    [UP_UNDO] = { "undo", enter_undo, agx_op_cancel_held },
};

static const struct agx_op_kind up_kind = {
    .name = "docker-up",
    .states = up_states,
    .n_states = AGX_ARRAY_LEN(up_states),
    .cancel_held = cancel_up,
    .finish = agx_sandbox_op_ended,
};

const struct agx_docker_verb agx_docker_verb_up = {
    .task = { &up_kind, sizeof(struct agx_docker_up), up_begin, up_free },
    .heard = up_heard,
};
