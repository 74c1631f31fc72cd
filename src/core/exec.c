/* exec.c: the table of an exec's phases, and the code that executes it; drawn in exec.h. */
#include "core/exec.h"

#include "core/exec_internal.h"

#include "base/banned.h"

/* clang-format off */
#define IGNORE        { .verdict = AGX_EXEC_IGNORE }
#define ACCEPT        { .verdict = AGX_EXEC_ACCEPT }
#define REFUSE(why)   { .verdict = AGX_EXEC_REFUSE, .reason = AGX_REASON_EXEC_##why }
#define STAY(p)       { .verdict = AGX_EXEC_MOVE, .to = AGX_EXEC_PHASE_##p }
#define MOVE(p, what) { .verdict = AGX_EXEC_MOVE, .to = AGX_EXEC_PHASE_##p, \
                        .run = AGX_EXEC_DO_##what }
#define END(how)      { .verdict = AGX_EXEC_END, .to = AGX_EXEC_PHASE_ENDED, \
                        .by = AGX_EXEC_BY_##how }
/* clang-format on */

const struct agx_exec_cell agx_exec_table[AGX_EXEC_PHASE_COUNT][AGX_EXEC_ON_COUNT] = {
    [AGX_EXEC_PHASE_ABSENT] = {
        [AGX_EXEC_ON_CREATE] = { .verdict = AGX_EXEC_CREATE, .to = AGX_EXEC_PHASE_STARTING,
                                 .run = AGX_EXEC_DO_START },
        [AGX_EXEC_ON_CANCEL] = REFUSE(NOT_FOUND),
        [AGX_EXEC_ON_DEADLINE] = IGNORE,
        [AGX_EXEC_ON_BEGUN] = IGNORE,
        [AGX_EXEC_ON_REFUSED] = IGNORE,
        [AGX_EXEC_ON_UNKNOWN] = IGNORE,
        [AGX_EXEC_ON_EXITED] = IGNORE,
        [AGX_EXEC_ON_GONE] = IGNORE,
        [AGX_EXEC_ON_KILL_FAILED] = IGNORE,
        [AGX_EXEC_ON_LOST] = IGNORE,
        [AGX_EXEC_ON_RESTART] = IGNORE,
    },
    [AGX_EXEC_PHASE_STARTING] = {
        [AGX_EXEC_ON_CREATE] = REFUSE(ID_ALREADY_EXISTS),
        [AGX_EXEC_ON_CANCEL] = MOVE(CANCELLING, KILL),
        [AGX_EXEC_ON_DEADLINE] = MOVE(EXPIRING, KILL),
        [AGX_EXEC_ON_BEGUN] = STAY(RUNNING),
        [AGX_EXEC_ON_REFUSED] = END(REFUSAL),
        [AGX_EXEC_ON_UNKNOWN] = IGNORE,
        [AGX_EXEC_ON_EXITED] = END(EXIT),
        [AGX_EXEC_ON_GONE] = IGNORE,
        [AGX_EXEC_ON_KILL_FAILED] = IGNORE,
        [AGX_EXEC_ON_LOST] = END(LOSS),
        [AGX_EXEC_ON_RESTART] = MOVE(STARTING, START),
    },
    [AGX_EXEC_PHASE_RUNNING] = {
        [AGX_EXEC_ON_CREATE] = REFUSE(ID_ALREADY_EXISTS),
        [AGX_EXEC_ON_CANCEL] = MOVE(CANCELLING, KILL),
        [AGX_EXEC_ON_DEADLINE] = MOVE(EXPIRING, KILL),
        [AGX_EXEC_ON_BEGUN] = STAY(RUNNING), /* adopted */
        [AGX_EXEC_ON_REFUSED] = IGNORE,
        [AGX_EXEC_ON_UNKNOWN] = END(RESTART),
        [AGX_EXEC_ON_EXITED] = END(EXIT),
        [AGX_EXEC_ON_GONE] = IGNORE,
        [AGX_EXEC_ON_KILL_FAILED] = IGNORE,
        [AGX_EXEC_ON_LOST] = END(LOSS),
        [AGX_EXEC_ON_RESTART] = MOVE(RUNNING, ADOPT),
    },
    [AGX_EXEC_PHASE_CANCELLING] = {
        [AGX_EXEC_ON_CREATE] = REFUSE(ID_ALREADY_EXISTS),
        [AGX_EXEC_ON_CANCEL] = ACCEPT,
        [AGX_EXEC_ON_DEADLINE] = IGNORE,
        [AGX_EXEC_ON_BEGUN] = MOVE(CANCELLING, KILL),
        [AGX_EXEC_ON_REFUSED] = END(CANCEL),
        [AGX_EXEC_ON_UNKNOWN] = END(CANCEL),
        [AGX_EXEC_ON_EXITED] = MOVE(CANCELLING, KILL), /* others of its group may live on */
        [AGX_EXEC_ON_GONE] = END(CANCEL),
        [AGX_EXEC_ON_KILL_FAILED] = MOVE(CANCELLING, KILL),
        [AGX_EXEC_ON_LOST] = END(CANCEL),
        [AGX_EXEC_ON_RESTART] = MOVE(CANCELLING, KILL),
    },
    [AGX_EXEC_PHASE_EXPIRING] = {
        [AGX_EXEC_ON_CREATE] = REFUSE(ID_ALREADY_EXISTS),
        [AGX_EXEC_ON_CANCEL] = ACCEPT,
        [AGX_EXEC_ON_DEADLINE] = IGNORE,
        [AGX_EXEC_ON_BEGUN] = MOVE(EXPIRING, KILL),
        [AGX_EXEC_ON_REFUSED] = END(DEADLINE),
        [AGX_EXEC_ON_UNKNOWN] = END(DEADLINE),
        [AGX_EXEC_ON_EXITED] = MOVE(EXPIRING, KILL),
        [AGX_EXEC_ON_GONE] = END(DEADLINE),
        [AGX_EXEC_ON_KILL_FAILED] = MOVE(EXPIRING, KILL),
        [AGX_EXEC_ON_LOST] = END(DEADLINE),
        [AGX_EXEC_ON_RESTART] = MOVE(EXPIRING, KILL),
    },
    [AGX_EXEC_PHASE_ENDED] = {
        [AGX_EXEC_ON_CREATE] = REFUSE(ID_ALREADY_EXISTS),
        [AGX_EXEC_ON_CANCEL] = REFUSE(ALREADY_TERMINAL),
        [AGX_EXEC_ON_DEADLINE] = IGNORE,
        [AGX_EXEC_ON_BEGUN] = IGNORE,
        [AGX_EXEC_ON_REFUSED] = IGNORE,
        [AGX_EXEC_ON_UNKNOWN] = IGNORE,
        [AGX_EXEC_ON_EXITED] = IGNORE,
        [AGX_EXEC_ON_GONE] = IGNORE,
        [AGX_EXEC_ON_KILL_FAILED] = IGNORE,
        [AGX_EXEC_ON_LOST] = IGNORE,
        [AGX_EXEC_ON_RESTART] = IGNORE,
    },
};

int agx_exec_init(struct agx_exec *e, const char *id, const char *sandbox_id,
                  struct agx_error **err)
{
    struct agx_exec made = { 0 };
    int r;

    if ((r = agx_text_set(&made.id, id, err)) < 0 ||
        (r = agx_text_set(&made.sandbox_id, sandbox_id, err)) < 0) {
        agx_exec_done(&made);
        return r;
    }
    *e = made;
    return 0;
}

void agx_exec_done(struct agx_exec *e)
{
    if (!e)
        return;
    free(e->id);
    free(e->sandbox_id);
    agx_words_done(&e->command);
    free(e->cwd);
    agx_pairs_done(&e->env_overrides);
    free(e->error_code);
    free(e->error_message);
    *e = (struct agx_exec){ 0 };
}

int agx_exec_check(const struct agx_exec *e, struct agx_error **err)
{
    if (e->command.len == 0)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "command must not be empty");
    if (e->deadline_ns < 0)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "deadline must not be negative");
    return agx_ident_check("exec_id", agx_str_from(agx_text(e->id)), err);
}

/* How it ended, for the record and the event. */
struct end {
    enum agx_event_type event;
    int32_t exit_code;
    const char *error_code, *error_message;
    char text[64];
};

/* The peer's texts, which its users may search for. */
static void end_failed(struct end *end, int32_t exit_code, const char *message)
{
    end->exit_code = exit_code;
    end->event = AGX_EVENT_EXEC_FAILED;
    end->error_code = AGX_FAILED_EXEC_RUN;
    if (!message)
        (void)snprintf(end->text, sizeof(end->text), "docker exec failed: exit code %d", exit_code);
    end->error_message = message ? message : end->text;
}

/* In a sandbox that is being stopped or deleted, a lost exec was killed by that. */
static bool is_stopped(const struct agx_sandbox *sb)
{
    return sb->life.phase == AGX_PHASE_STOPPING || sb->life.phase == AGX_PHASE_DELETING;
}

static void describe_end(enum agx_exec_outcome by, const struct agx_exec_input *in,
                         const struct agx_sandbox *sb, struct end *end)
{
    *end = (struct end){ .event = AGX_EVENT_EXEC_FINISHED };
    switch (by) {
    case AGX_EXEC_BY_EXIT:
        if (in->exit_code != 0)
            end_failed(end, in->exit_code, NULL);
        break;
    case AGX_EXEC_BY_REFUSAL:
        end_failed(end, 0, agx_text(in->error_message));
        break;
    case AGX_EXEC_BY_LOSS:
        if (is_stopped(sb))
            end_failed(end, AGX_EXEC_EXIT_KILLED, NULL);
        else
            end_failed(end, in->exit_code, in->error_message);
        break;
    case AGX_EXEC_BY_RESTART:
        end->event = AGX_EVENT_EXEC_FAILED;
        end->error_code = AGX_FAILED_EXEC_RESTARTED;
        end->error_message = "exec was running when daemon restarted";
        break;
    case AGX_EXEC_BY_CANCEL:
        end->event = AGX_EVENT_EXEC_CANCELLED;
        break;
    case AGX_EXEC_BY_DEADLINE:
        end->event = AGX_EVENT_EXEC_FAILED;
        end->exit_code = AGX_EXEC_EXIT_KILLED;
        end->error_code = AGX_FAILED_EXEC_DEADLINE;
        end->error_message = "exec ran past its deadline";
        break;
    }
}

/* Gives the event the sandbox's next number; the sandbox takes it when the step completes. */
static int make_event(const struct agx_exec *e, const struct agx_sandbox *sb, const struct end *end,
                      const struct agx_stamp *now, struct agx_event *ret, struct agx_error **err)
{
    struct agx_event made = { .sequence = sb->life.last_sequence + 1,
                              .type = end->event,
                              .occurred_at_ns = now->wall_ns,
                              .exit_code = end->exit_code };
    struct agx_event_text text = { .subject = e->id,
                                   .error_code = end->error_code,
                                   .error_message = end->error_message };
    int r = agx_event_init(&made, &text, err);

    if (r == 0)
        *ret = made;
    return r;
}

static void exec_start(struct agx_exec *e, enum agx_exec_do what, struct agx_exec_output *out)
{
    if (e->running == AGX_EXEC_DO_NONE)
        out->start = e->running = what;
}

static int exec_create(struct agx_exec *e, struct agx_sandbox *sb, const struct agx_exec_cell *c,
                       const struct agx_exec_input *in, struct agx_exec_output *out,
                       struct agx_error **err)
{
    const struct end begin = { .event = AGX_EVENT_EXEC_STARTED };
    int r;

    if (sb->life.phase != AGX_PHASE_READY) {
        out->reason = AGX_REASON_SANDBOX_NOT_READY;
        return agx_reason_error(out->reason, sb->id, err);
    }
    r = make_event(e, sb, &begin, &in->now, &out->event, err);
    if (r < 0)
        return r;
    e->created = in->now;
    e->state = AGX_EXEC_RUNNING;
    e->phase = c->to;
    sb->life.active_execs++;
    sb->life.last_sequence = out->event.sequence;
    out->has_event = out->changed = true;
    exec_start(e, c->run, out);
    return 0;
}

static int end(struct agx_exec *e, struct agx_sandbox *sb, const struct agx_exec_cell *c,
               const struct agx_exec_input *in, struct agx_exec_output *out, struct agx_error **err)
{
    _cleanup_free_ char *code = NULL, *message = NULL;
    struct end how;
    int r;

    describe_end(c->by, in, sb, &how);
    if ((r = agx_text_set(&code, how.error_code, err)) < 0 ||
        (r = agx_text_set(&message, how.error_message, err)) < 0 ||
        (r = make_event(e, sb, &how, &in->now, &out->event, err)) < 0)
        return r;
    e->phase = c->to;
    e->running = AGX_EXEC_DO_NONE;
    e->state = agx_event_exec_state(how.event);
    e->exit_code = how.exit_code;
    e->error_code = AGX_TAKE_PTR(code); /* both were NULL: an exec ends once */
    e->error_message = AGX_TAKE_PTR(message);
    sb->life.active_execs--;
    sb->life.idle_from = in->now; /* however it ended, the sandbox was in use */
    sb->life.last_sequence = out->event.sequence;
    out->has_event = out->changed = true;
    return 0;
}

/* Does this input report on an operation that is not running? */
static bool is_stray(enum agx_exec_on on, enum agx_exec_do running)
{
    switch (on) {
    case AGX_EXEC_ON_BEGUN:
        return running != AGX_EXEC_DO_START && running != AGX_EXEC_DO_ADOPT;
    case AGX_EXEC_ON_REFUSED:
        return running != AGX_EXEC_DO_START;
    case AGX_EXEC_ON_UNKNOWN:
        return running != AGX_EXEC_DO_ADOPT;
    case AGX_EXEC_ON_GONE:
    case AGX_EXEC_ON_KILL_FAILED:
        return running != AGX_EXEC_DO_KILL;
    default:
        return false;
    }
}

/* The operation that runs after this input, before a new one starts. */
static enum agx_exec_do still_running(enum agx_exec_on on, enum agx_exec_do running)
{
    switch (on) {
    case AGX_EXEC_ON_RESTART:
    case AGX_EXEC_ON_BEGUN:
    case AGX_EXEC_ON_KILL_FAILED:
        return AGX_EXEC_DO_NONE;
    case AGX_EXEC_ON_EXITED: /* ends a start or an adoption; a kill goes on */
        return running == AGX_EXEC_DO_KILL ? running : AGX_EXEC_DO_NONE;
    default:
        return running;
    }
}

static void exec_move(struct agx_exec *e, struct agx_sandbox *sb, const struct agx_exec_cell *c,
                      const struct agx_exec_input *in, struct agx_exec_output *out)
{
    if (in->on == AGX_EXEC_ON_RESTART)
        sb->life.active_execs++; /* the count is not stored */
    out->changed = e->phase != c->to;
    e->phase = c->to;
    e->running = still_running(in->on, e->running);
    if (c->run != AGX_EXEC_DO_NONE)
        exec_start(e, c->run, out);
}

int agx_exec_step(struct agx_exec *e, struct agx_sandbox *sb, const struct agx_exec_input *in,
                  struct agx_exec_output *out, struct agx_error **err)
{
    const struct agx_exec_cell *c = &agx_exec_table[e->phase][in->on];

    *out = (struct agx_exec_output){ 0 };
    if (is_stray(in->on, e->running))
        return 0;
    switch (c->verdict) {
    case AGX_EXEC_REFUSE:
        out->reason = c->reason;
        return agx_reason_error(c->reason, e->id, err);
    case AGX_EXEC_CREATE:
        return exec_create(e, sb, c, in, out, err);
    case AGX_EXEC_MOVE:
        exec_move(e, sb, c, in, out);
        return 0;
    case AGX_EXEC_END:
        return end(e, sb, c, in, out, err);
    default:
        return 0;
    }
}

void agx_exec_undo(struct agx_exec *e, const struct agx_exec *before)
{
    /* Only the last step sets the texts, so texts that are not in the copy are new. */
    if (e->error_code != before->error_code)
        free(e->error_code);
    if (e->error_message != before->error_message)
        free(e->error_message);
    *e = *before;
}

uint64_t agx_exec_deadline_left_ns(const struct agx_exec *e, const struct agx_stamp *now)
{
    uint64_t age;

    if (e->deadline_ns <= 0 ||
        (e->phase != AGX_EXEC_PHASE_STARTING && e->phase != AGX_EXEC_PHASE_RUNNING))
        return AGX_LEFT_NEVER;
    age = agx_stamp_age_ns(&e->created, now);
    return age < (uint64_t)e->deadline_ns ? (uint64_t)e->deadline_ns - age : 0;
}
