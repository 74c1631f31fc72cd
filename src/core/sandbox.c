/*
 * sandbox.c: executes the table.
 *
 * A step first does everything that can fail (the event, copies of texts) and only then changes the
 * record, so a failed step has changed nothing.
 */
#include "core/sandbox.h"

#include "core/sandbox_internal.h"

#include "base/banned.h"

static const struct {
    const char *name;
    enum agx_state state;
} phases[AGX_PHASE_COUNT] = {
    [AGX_PHASE_ABSENT] = { "ABSENT", AGX_STATE_NONE },
    [AGX_PHASE_CREATING] = { "CREATING", AGX_STATE_PENDING },
    [AGX_PHASE_RESUMING] = { "RESUMING", AGX_STATE_PENDING },
    [AGX_PHASE_READY] = { "READY", AGX_STATE_READY },
    [AGX_PHASE_STOPPING] = { "STOPPING", AGX_STATE_READY }, /* until the stop has finished */
    [AGX_PHASE_STOPPED] = { "STOPPED", AGX_STATE_STOPPED },
    [AGX_PHASE_FAILED] = { "FAILED", AGX_STATE_FAILED },
    [AGX_PHASE_DELETING] = { "DELETING", AGX_STATE_DELETING },
    [AGX_PHASE_DELETED] = { "DELETED", AGX_STATE_DELETED },
    [AGX_PHASE_PURGED] = { "PURGED", AGX_STATE_NONE },
};

static const char *const do_names[AGX_DO_COUNT] = {
    [AGX_DO_NONE] = "none", [AGX_DO_CREATE] = "create", [AGX_DO_RESUME] = "resume",
    [AGX_DO_STOP] = "stop", [AGX_DO_DELETE] = "delete", [AGX_DO_REVIVE] = "revive",
    [AGX_DO_HALT] = "halt",
};

static const char *const on_names[AGX_ON_COUNT] = {
    [AGX_ON_CREATE] = "create",
    [AGX_ON_STOP] = "stop",
    [AGX_ON_RESUME] = "resume",
    [AGX_ON_DELETE] = "delete",
    [AGX_ON_EXEC] = "exec",
    [AGX_ON_BEGUN] = "begun",
    [AGX_ON_DONE] = "done",
    [AGX_ON_FAILED] = "failed",
    [AGX_ON_DIED] = "died",
    [AGX_ON_REVIVE] = "revive",
    [AGX_ON_HALT] = "halt",
    [AGX_ON_COMPANION_READY] = "companion_ready",
    [AGX_ON_COMPANION_FAILED] = "companion_failed",
    [AGX_ON_IDLE] = "idle",
    [AGX_ON_CLEANUP] = "cleanup",
    [AGX_ON_RESTART] = "restart",
};

static const char *const cause_names[AGX_CAUSE_COUNT] = {
    [AGX_CAUSE_STOP_REQUESTED] = "stop_requested",
    [AGX_CAUSE_IDLE_TTL] = "idle_ttl",
    [AGX_CAUSE_DELETE_REQUESTED] = "delete_requested",
    [AGX_CAUSE_CLEANUP_TTL] = "cleanup_ttl",
};

enum agx_state agx_phase_state(enum agx_phase phase)
{
    return phases[phase].state;
}

const char *agx_phase_name(enum agx_phase phase)
{
    return phases[phase].name;
}

const char *agx_do_name(enum agx_do op)
{
    return do_names[op];
}

const char *agx_on_name(enum agx_on on)
{
    return on_names[on];
}

const char *agx_cause_name(enum agx_cause cause)
{
    return cause_names[cause];
}

int agx_sandbox_init(struct agx_sandbox *sb, const char *id, struct agx_spec *take_spec,
                     struct agx_error **err)
{
    struct agx_sandbox made = { .life.companions_len = take_spec->companions_len };
    int r = agx_text_set(&made.id, id, err);

    if (r == 0 && made.life.companions_len > 0) {
        made.life.companions = calloc(made.life.companions_len, sizeof(*made.life.companions));
        if (!made.life.companions)
            r = agx_error_no_memory(err);
    }
    if (r < 0) {
        agx_sandbox_done(&made);
        return r;
    }
    made.spec = *take_spec;
    agx_spec_init(take_spec);
    *sb = made;
    return 0;
}

void agx_sandbox_done(struct agx_sandbox *sb)
{
    if (!sb)
        return;
    free(sb->id);
    agx_spec_done(&sb->spec);
    agx_words_done(&sb->warnings);
    agx_life_done(&sb->life);
    *sb = (struct agx_sandbox){ 0 };
}

int agx_life_copy(struct agx_life *to, const struct agx_life *from, struct agx_error **err)
{
    struct agx_life copy = *from;
    int r;

    copy.error_code = copy.error_message = NULL;
    copy.companions = NULL;
    if ((r = agx_text_set(&copy.error_code, from->error_code, err)) == 0)
        r = agx_text_set(&copy.error_message, from->error_message, err);
    if (r == 0 && from->companions_len > 0) {
        copy.companions = malloc(from->companions_len);
        if (copy.companions)
            memcpy(copy.companions, from->companions, from->companions_len);
        else
            r = agx_error_no_memory(err);
    }
    if (r == 0)
        *to = copy;
    else
        agx_life_done(&copy);
    return r;
}

void agx_life_done(struct agx_life *l)
{
    if (!l)
        return;
    free(l->error_code);
    free(l->error_message);
    free(l->companions);
    *l = (struct agx_life){ 0 };
}

static bool is_report(enum agx_on on)
{
    return on == AGX_ON_BEGUN || on == AGX_ON_DONE || on == AGX_ON_FAILED;
}

/* The applicable cell, or NULL for the report of an operation that is not running or no longer
 * wanted.
 */
static const struct agx_cell *find_cell(const struct agx_life *l,
                                        const struct agx_sandbox_input *in)
{
    if (is_report(in->on) && (in->op == AGX_DO_NONE || in->op != l->running || in->op != l->op))
        return NULL;
    return &agx_sandbox_table[l->phase][in->on];
}

bool agx_sandbox_ends_execs(const struct agx_sandbox *sb, const struct agx_sandbox_input *in)
{
    const struct agx_cell *c = find_cell(&sb->life, in);

    return c && (c->flags & AGX_CELL_ENDS_EXECS);
}

/* Was this reported before, or is there no such companion? */
static bool is_old_news(const struct agx_life *l, const struct agx_cell *c, size_t companion)
{
    switch (c->event) {
    case AGX_EVENT_SANDBOX_PREPARING:
        return l->prepared;
    case AGX_EVENT_COMPANION_READY:
        return companion >= l->companions_len || l->companions[companion] == AGX_COMPANION_READY;
    case AGX_EVENT_COMPANION_FAILED:
        return companion >= l->companions_len || l->companions[companion] == AGX_COMPANION_FAILED;
    default:
        return false;
    }
}

static int make_event(const struct agx_sandbox *sb, const struct agx_cell *c,
                      const struct agx_sandbox_input *in, struct agx_event *ret,
                      struct agx_error **err)
{
    enum agx_phase to = c->verdict == AGX_VERDICT_MOVE ? c->to : sb->life.phase;
    enum agx_cause cause = c->cause != AGX_CAUSE_NONE ? c->cause : sb->life.cause;
    struct agx_event_text text = { 0 };
    struct agx_event e = { .sequence = sb->life.last_sequence + 1,
                           .type = c->event,
                           .occurred_at_ns = in->now.wall_ns };
    int r;

    /* Only this event has no state: the sandbox stays READY until the stop has finished. */
    if (c->event != AGX_EVENT_SANDBOX_STOP_REQUESTED)
        e.state = agx_phase_state(to);
    switch (c->event) {
    case AGX_EVENT_SANDBOX_STOP_REQUESTED:
    case AGX_EVENT_SANDBOX_STOPPED:
    case AGX_EVENT_SANDBOX_DELETE_REQUESTED:
    case AGX_EVENT_SANDBOX_DELETED:
        text.reason = agx_cause_name(cause);
        break;
    case AGX_EVENT_SANDBOX_FAILED:
        text.error_code = in->error_code ? in->error_code : c->error_code;
        text.error_message = in->error_message;
        break;
    case AGX_EVENT_COMPANION_FAILED:
        text.error_code = in->error_code ? in->error_code : AGX_FAILED_COMPANION;
        text.error_message = in->error_message;
        text.subject = sb->spec.companions[in->companion].name;
        break;
    case AGX_EVENT_COMPANION_READY:
        text.subject = sb->spec.companions[in->companion].name;
        break;
    default:
        break;
    }
    r = agx_event_init(&e, &text, err);
    if (r == 0)
        *ret = e;
    return r;
}

/* Starts the wanted operation, or cancels another one that runs. */
static void drive(struct agx_life *l, struct agx_sandbox_output *out)
{
    if (l->running == AGX_DO_NONE)
        out->start = l->running = l->op;
    else if (l->running != l->op)
        out->cancel = true;
}

/* The record has error texts only while it is FAILED. */
static int enter_state(struct agx_life *l, enum agx_state to, const struct agx_event *e,
                       const struct agx_stamp *now, struct agx_error **err)
{
    _cleanup_free_ char *code = NULL, *message = NULL;
    int r;

    if (to == agx_phase_state(l->phase))
        return 0;
    if (to == AGX_STATE_FAILED) {
        if ((r = agx_text_set(&code, e->error_code, err)) < 0 ||
            (r = agx_text_set(&message, e->error_message, err)) < 0)
            return r;
    }
    free(l->error_code);
    free(l->error_message);
    l->error_code = AGX_TAKE_PTR(code);
    l->error_message = AGX_TAKE_PTR(message);
    l->changed = *now;
    return 0;
}

static void note_report(struct agx_life *l, const struct agx_cell *c, size_t companion)
{
    if (c->event == AGX_EVENT_SANDBOX_PREPARING)
        l->prepared = true;
    else
        l->companions[companion] =
            c->event == AGX_EVENT_COMPANION_READY ? AGX_COMPANION_READY : AGX_COMPANION_FAILED;
}

static void sandbox_move(struct agx_life *l, const struct agx_cell *c, const struct agx_stamp *now)
{
    if (c->flags & AGX_CELL_IDLE_FROM)
        l->idle_from = *now;
    if (c->cause != AGX_CAUSE_NONE)
        l->cause = c->cause;
    if (c->to == AGX_PHASE_RESUMING && l->companions_len > 0)
        memset(l->companions, AGX_COMPANION_UNKNOWN, l->companions_len);
    l->phase = c->to;
    l->op = c->op;
}

/* The steps that change the record: MOVE and REPORT. */
static int apply(struct agx_sandbox *sb, const struct agx_cell *c,
                 const struct agx_sandbox_input *in, struct agx_sandbox_output *out,
                 struct agx_error **err)
{
    struct agx_life *l = &sb->life;
    bool moves = c->verdict == AGX_VERDICT_MOVE;
    int r = 0;

    if ((c->flags & AGX_CELL_ENDS_EXECS) && l->active_execs > 0)
        return agx_error_set(err, AGX_FAILED_PRECONDITION,
                             "the execs of sandbox '%s' must end first", sb->id);
    out->changed = c->event != AGX_EVENT_NONE || (moves && (c->to != l->phase || c->op != l->op));
    if (c->event != AGX_EVENT_NONE) {
        r = make_event(sb, c, in, &out->event, err);
        if (r < 0)
            return r;
        out->has_event = true;
    }
    if (moves && (r = enter_state(l, agx_phase_state(c->to), &out->event, &in->now, err)) < 0)
        return r;
    if (out->has_event)
        l->last_sequence = out->event.sequence;
    if (!moves) {
        note_report(l, c, in->companion);
        return 0;
    }
    if (l->phase == AGX_PHASE_ABSENT)
        sb->created = in->now;
    if (is_report(in->on) || in->on == AGX_ON_RESTART)
        l->running = AGX_DO_NONE;
    sandbox_move(l, c, &in->now);
    out->purge = c->to == AGX_PHASE_PURGED;
    drive(l, out);
    return 0;
}

int agx_sandbox_step(struct agx_sandbox *sb, const struct agx_sandbox_input *in,
                     struct agx_sandbox_output *out, struct agx_error **err)
{
    const struct agx_cell *c = find_cell(&sb->life, in);
    int r;

    *out = (struct agx_sandbox_output){ 0 };
    if (!c) {
        /* No longer wanted: it only matters that it has ended. */
        if (in->on != AGX_ON_BEGUN && in->op != AGX_DO_NONE && in->op == sb->life.running) {
            sb->life.running = AGX_DO_NONE;
            drive(&sb->life, out);
        }
        return 0;
    }
    switch (c->verdict) {
    case AGX_VERDICT_REFUSE:
        out->reason = c->reason;
        return agx_reason_error(c->reason, sb->id, err);
    case AGX_VERDICT_RESTART:
        sb->life.running = AGX_DO_NONE;
        drive(&sb->life, out);
        return 0;
    case AGX_VERDICT_MOVE:
    case AGX_VERDICT_REPORT:
        if ((c->flags & AGX_CELL_IF_QUIET) && sb->life.active_execs > 0)
            return 0;
        if (is_old_news(&sb->life, c, in->companion))
            return 0;
        r = apply(sb, c, in, out, err);
        if (r < 0) {
            agx_event_done(&out->event);
            *out = (struct agx_sandbox_output){ 0 };
        }
        return r;
    default:
        return 0;
    }
}

int agx_sandbox_order(const struct agx_sandbox *a, const struct agx_sandbox *b)
{
    if (a->created.wall_ns != b->created.wall_ns)
        return a->created.wall_ns > b->created.wall_ns ? -1 : 1;
    return strcmp(a->id, b->id);
}

static uint64_t left(uint64_t ttl_ns, uint64_t age_ns)
{
    return age_ns < ttl_ns ? ttl_ns - age_ns : 0;
}

uint64_t agx_sandbox_idle_left_ns(const struct agx_sandbox *sb, int64_t default_ttl_ns,
                                  const struct agx_stamp *now)
{
    int64_t ttl = sb->spec.idle_ttl_ns != AGX_NS_UNSET ? sb->spec.idle_ttl_ns : default_ttl_ns;

    if (sb->life.phase != AGX_PHASE_READY || sb->life.active_execs > 0 || ttl <= 0)
        return AGX_LEFT_NEVER;
    return left((uint64_t)ttl, agx_stamp_age_ns(&sb->life.idle_from, now));
}

uint64_t agx_sandbox_cleanup_left_ns(const struct agx_sandbox *sb, int64_t cleanup_ttl_ns,
                                     const struct agx_stamp *now)
{
    if (sb->life.phase != AGX_PHASE_STOPPED && sb->life.phase != AGX_PHASE_DELETED)
        return AGX_LEFT_NEVER;
    if (cleanup_ttl_ns <= 0)
        return AGX_LEFT_NEVER;
    return left((uint64_t)cleanup_ttl_ns, agx_stamp_age_ns(&sb->life.changed, now));
}
