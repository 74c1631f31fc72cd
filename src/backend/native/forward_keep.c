/*
 * forward_keep.c: keeps the forwarders of a sandbox running: restarts those that end by themselves.
 *
 *     REST --> START --> NOTE --> done
 *       ^                  |
 *       +------------------+  one is still missing, or is not in the record
 *
 * The record lists the forwarders we want: the one of its ports, and one for each part that cannot
 * ask name servers itself. The box lists those that run.
 *
 * Invariants:
 *  (1) it runs only while there is no operation on the box: a new operation cancels it and waits
 *      for its end, and checks again for missing forwarders when it ends itself.
 *  (2) a process is in the box as soon as it exists, so that stopping the box ends it. A cancel
 *      ends those that do not work yet.
 *  (3) there is at most one for each place: the next is started after the end of the last was seen.
 */
#include "backend/native/native_internal.h"

#include "base/log.h"
#include "base/mem.h"

#include "base/banned.h"

enum { KEEP_DONE = AGX_OP_DONE, KEEP_REST, KEEP_START, KEEP_NOTE };

/* A place for a forwarder. */
struct kept_forward {
    struct agx_native_forward_keep *keep;
    bool is_awaited; /* it was started, and has not reported yet */
};

struct agx_native_forward_keep {
    struct agx_op op;
    struct agx_native_box *box;
    struct kept_forward *places; /* name forwarders of each part, then that of the ports */
    size_t n_places;
};

static struct agx_native_forward_keep *forward_keep_of(struct agx_op *op)
{
    return container_of(op, struct agx_native_forward_keep, op);
}

/* ---- one forwarder ---- */

static void on_ports_ended(void *user)
{
    struct agx_native_box *box = user;

    box->ports = agx_forward_stop(box->ports);
    agx_native_forward_keep(box);
}

static void on_names_ended(void *user)
{
    struct agx_native_part *p = user;

    p->names = agx_forward_stop(p->names);
    agx_native_forward_keep(p->box);
}

int agx_native_forward_ports(struct agx_native_box *box, const struct agx_forward_sockets *sockets,
                             agx_done_fn done, void *user, struct agx_error **err)
{
    const struct agx_nsset_member *m = &box->nsset->members[0];
    const struct agx_forward_params p = { .program = box->native->forward_path,
                                          .net_fd = m->net_fd,
                                          .pidfd = agx_native_part_pidfd(&box->parts[0]),
                                          .address = m->address,
                                          .ports = box->state.forwards,
                                          .sockets = sockets };
    int r;

    box->ports = agx_forward_stop(box->ports);
    r = agx_forward_start(box->native->base.loop, &p, done, user, &box->ports, err);
    if (r < 0)
        return r;
    agx_forward_watch(box->ports, on_ports_ended, box);
    box->state.ports = *agx_forward_proc(box->ports);
    return 0;
}

int agx_native_forward_names(struct agx_native_part *part, agx_done_fn done, void *user,
                             struct agx_error **err)
{
    struct agx_native_box *box = part->box;
    const size_t i = (size_t)(part - box->parts);
    const struct agx_forward_params p = { .program = box->native->forward_path,
                                          .net_fd = box->nsset->members[i].net_fd,
                                          .pidfd = agx_native_part_pidfd(part),
                                          .dns = box->state.parts[i].dns };
    int r;

    part->names = agx_forward_stop(part->names); /* of one that ended, with its companion */
    r = agx_forward_start(box->native->base.loop, &p, done, user, &part->names, err);
    if (r < 0)
        return r;
    agx_forward_watch(part->names, on_names_ended, part);
    box->state.parts[i].names = *agx_forward_proc(part->names);
    return 0;
}

/* One that is gone either ended with its part, or is restarted after all is loaded. */
void agx_native_forward_adopt(struct agx_native_box *box)
{
    struct agx_loop *l = box->native->base.loop;

    if (box->state.ports.pid != 0 &&
        agx_forward_adopt(l, &box->state.ports, &box->ports, NULL) == 0)
        agx_forward_watch(box->ports, on_ports_ended, box);
    for (size_t i = 0; i < box->state.n_parts; i++) {
        struct agx_native_part *p = &box->parts[i];

        if (box->state.parts[i].names.pid != 0 &&
            agx_forward_adopt(l, &box->state.parts[i].names, &p->names, NULL) == 0)
            agx_forward_watch(p->names, on_names_ended, p);
    }
}

/* ---- what is missing ---- */

/* Whether a forwarder can be started for it. */
static bool is_there(const struct agx_native_box *box, size_t part)
{
    return box->nsset && agx_native_part_runs(box, part) && box->nsset->members[part].net_fd >= 0;
}

static bool lacks_ports(const struct agx_native_box *box)
{
    return is_there(box, 0) && box->state.n_forwards > 0 && !box->ports;
}

static bool lacks_names(const struct agx_native_box *box, size_t part)
{
    return is_there(box, part) && box->state.parts[part].dns && !box->parts[part].names;
}

static bool lacks_any(const struct agx_native_box *box)
{
    bool any = lacks_ports(box) || (box->unnoted && agx_native_box_runs(box));

    for (size_t i = 0; box->known && i < box->state.n_parts; i++)
        any = any || lacks_names(box, i);
    return any;
}

/* ---- starting ---- */

/* The pause grows with each try, except after a forwarder that worked for long. */
static int enter_rest(struct agx_op *op, struct agx_error **err)
{
    struct agx_native_forward_keep *x = forward_keep_of(op);
    struct agx_native_box *box = x->box;

    if (uv_now(agx_loop_uv(x->op.loop)) - box->forward_keep_ms >= AGX_NATIVE_FORWARD_STABLE_MS)
        box->forward_keep_tries = 0;
    agx_op_pause(&x->op, agx_backoff_ms(box->forward_keep_tries, AGX_NATIVE_FORWARD_FIRST_MS,
                                        AGX_NATIVE_FORWARD_MAX_MS));
    return agx_op_wait(&x->op, 0, KEEP_START, err);
}

/* Takes the error. The first of a series is logged as a warning. */
static void forward_keep_complain(const struct agx_native_forward_keep *x, struct agx_error *error)
{
    AGX_LOG(x->box->forward_keep_tries == 1 ? AGX_LOG_WARN : AGX_LOG_DEBUG,
            "native.forwarder_fails", AGX_F_STR("sandbox", x->box->id),
            AGX_F_UINT("tries", x->box->forward_keep_tries), AGX_F_ERR(error),
            AGX_F_BOOL("ignored", true));
    agx_error_free(error);
}

static struct agx_forward **slot_of(const struct kept_forward *place)
{
    const struct agx_native_forward_keep *x = place->keep;
    const size_t i = (size_t)(place - x->places);

    return i + 1 < x->n_places ? &x->box->parts[i].names : &x->box->ports;
}

static void on_started(void *user, struct agx_error *error)
{
    struct kept_forward *place = user;
    struct agx_native_forward_keep *x = place->keep;
    struct agx_forward **slot = slot_of(place);

    place->is_awaited = false;
    if (error) {
        *slot = agx_forward_stop(*slot);
        forward_keep_complain(x, error);
    } else {
        AGX_LOG(AGX_LOG_WARN, "native.forwarder_again", AGX_F_STR("sandbox", x->box->id),
                AGX_F_STR("of", slot == &x->box->ports ? "ports" : "names"),
                AGX_F_UINT("tries", x->box->forward_keep_tries));
        x->box->unnoted = true;
    }
    agx_op_arrive(&x->op);
}

static int start_ports(struct agx_native_forward_keep *x, struct agx_error **err)
{
    struct agx_native_box *box = x->box;
    struct agx_forward_sockets sockets = { 0 };
    int r = agx_forward_bind(box->state.forwards, box->state.n_forwards, &sockets, err);

    if (r == 0)
        r = agx_native_forward_ports(box, &sockets, on_started, &x->places[x->n_places - 1], err);
    agx_forward_sockets_done(&sockets);
    return r;
}

static void start_one(struct agx_native_forward_keep *x, size_t place)
{
    struct agx_error *error = NULL;
    int r = place + 1 < x->n_places ? agx_native_forward_names(&x->box->parts[place], on_started,
                                                               &x->places[place], &error)
                                    : start_ports(x, &error);

    if (r < 0) {
        forward_keep_complain(x, error);
        return;
    }
    x->places[place].is_awaited = true;
    agx_op_hold(&x->op);
}

static int enter_start(struct agx_op *op, struct agx_error **err)
{
    struct agx_native_forward_keep *x = forward_keep_of(op);
    struct agx_native_box *box = x->box;

    box->forward_keep_tries++;
    box->forward_keep_ms = uv_now(agx_loop_uv(x->op.loop));
    for (size_t i = 0; i + 1 < x->n_places; i++) {
        if (lacks_names(box, i))
            start_one(x, i);
    }
    if (lacks_ports(box))
        start_one(x, x->n_places - 1);
    return agx_op_wait(&x->op, 0, KEEP_NOTE, err);
}

/* ---- the record ---- */

struct note_job {
    struct agx_job job;
    struct agx_native_forward_keep *keep;
    const struct agx_boxdirs *dirs; /* the backend's, which waits for its pools */
    struct agx_native_state state;  /* a copy */
};

static int run_note(struct agx_job *j, struct agx_error **err)
{
    const struct note_job *n = container_of(j, struct note_job, job);

    return agx_boxdirs_write(n->dirs, &n->state, false, err);
}

static void note_free(struct note_job *n)
{
    agx_native_state_done(&n->state);
    free(n);
}

static unsigned next_of(const struct agx_native_forward_keep *x)
{
    return lacks_any(x->box) ? KEEP_REST : KEEP_DONE;
}

static void note_done(struct agx_job *j, struct agx_error *error)
{
    struct note_job *n = container_of(j, struct note_job, job);
    struct agx_native_forward_keep *x = n->keep;

    note_free(n);
    if (error)
        forward_keep_complain(x, error);
    else
        x->box->unnoted = false;
    x->op.then = next_of(x);
    agx_op_arrive(&x->op);
}

static const struct agx_job_kind note_kind = { .name = "note", .run = run_note, .done = note_done };

static int enter_note(struct agx_op *op, struct agx_error **err)
{
    struct agx_native_forward_keep *x = forward_keep_of(op);
    struct agx_native *native = x->box->native;
    struct note_job *n;
    int r;

    if (!x->box->unnoted)
        return agx_op_wait(&x->op, 0, next_of(x), err);
    n = agx_new(struct note_job);
    n->job.kind = &note_kind;
    n->keep = x;
    n->dirs = &native->dirs;
    r = agx_native_state_copy(&n->state, &x->box->state, err);
    if (r == 0)
        r = agx_job_start(&n->job, native->disk_pool, err);
    if (r < 0)
        note_free(n);
    else
        agx_op_hold(&x->op);
    return agx_op_wait(&x->op, r, KEEP_DONE, err);
}

/* ---- the whole ---- */

static void cancel_forward_keep(struct agx_op *op)
{
    struct agx_native_forward_keep *x = forward_keep_of(op);

    for (size_t i = 0; i < x->n_places; i++) {
        struct kept_forward *place = &x->places[i];

        if (!place->is_awaited)
            continue;
        place->is_awaited = false;
        *slot_of(place) = agx_forward_stop(*slot_of(place));
        agx_op_arrive(op);
    }
}

static void forward_keep_ended(struct agx_op *op, struct agx_error *error)
{
    struct agx_native_forward_keep *x = forward_keep_of(op);
    struct agx_native_box *box = x->box;

    agx_error_free(error);
    free(x->places);
    free(x);
    box->keep = NULL;
    if (box->task)
        agx_op_wake(&box->task->op);
    agx_native_forward_keep(box); /* what ended meanwhile */
}

static const struct agx_op_state forward_keep_states[] = {
    [KEEP_REST] = { "rest", enter_rest, agx_op_cancel_held },
    [KEEP_START] = { "start", enter_start, agx_op_cancel_held },
    [KEEP_NOTE] = { "note", enter_note, agx_op_cancel_held },
};

static const struct agx_op_kind forward_keep_kind = {
    .name = "native-forward-keep",
    .states = forward_keep_states,
    .n_states = AGX_ARRAY_LEN(forward_keep_states),
    .cancel_held = cancel_forward_keep,
    .finish = forward_keep_ended,
};

void agx_native_forward_keep(struct agx_native_box *box)
{
    struct agx_native *n = box->native;
    struct agx_native_forward_keep *x;

    if (n->base.closing || !n->loaded || box->task || box->keep || !lacks_any(box))
        return;
    x = agx_new(struct agx_native_forward_keep);
    x->box = box;
    x->n_places = box->state.n_parts + 1;
    x->places = agx_alloc(x->n_places * sizeof(*x->places));
    for (size_t i = 0; i < x->n_places; i++)
        x->places[i].keep = x;
    box->keep = x;
    agx_op_start_in(&x->op, &forward_keep_kind, &n->operations, box->id, 0);
}

void agx_native_forward_keep_cancel(struct agx_native_box *box)
{
    if (box->keep)
        agx_op_cancel(&box->keep->op, AGX_CANCELLED);
}
