/*
 * test_core_model.c: random lives of sandboxes against a backend that fails, dies and forgets.
 *
 * The world models the backend's objects: the main process and the processes of execs. It carries
 * out the operations that the rules start, in any order, with any result, and the daemon restarts
 * at any moment in between. After each step the test checks the promises of core/sandbox.h and
 * core/exec.h.
 *
 * AGX_MODEL_SEED repeats a run, AGX_MODEL_STEPS makes it longer.
 */
#include "core/reconcile.h"
#include "tests/support/core.h"
#include "tests/support/random.h"

#include <inttypes.h>
#include <stdio.h>

#define SLOTS 8
#define EXECS 4
#define STEPS 1000000

struct run {
    struct agx_exec exec;
    bool in_use;
    bool alive;            /* the world: a process of it lives */
    bool known;            /* the world: the backend has heard of it */
    enum agx_exec_do busy; /* the world: what it does for us */
    unsigned starts, ends; /* events seen */
};

struct slot {
    struct agx_sandbox sb;
    bool objects, main_up; /* the world */
    enum agx_do busy;
    unsigned execs_made;
    struct run runs[EXECS];
    uint64_t sequence;        /* of the last event seen */
    enum agx_event_type last; /* and its type */
    enum agx_state told;      /* the last state that an event told */
    bool stop_open;           /* STOP_REQUESTED was seen and not answered yet */
};

static struct {
    struct test_random random;
    uint64_t step, second;
    unsigned sandboxes_made;
    struct slot slots[SLOTS];
    uint64_t deleted, restarts, events;
} model;

#define CHECK(e)                                                                                   \
    do {                                                                                           \
        if (!(e))                                                                                  \
            FAIL("AGX_MODEL_SEED=%" PRIu64 " step %" PRIu64 ": %s", model.random.seed, model.step, \
                 #e);                                                                              \
    } while (0)

static uint64_t random_below(uint64_t n)
{
    return test_random_below(&model.random, n);
}

static bool chance(unsigned percent)
{
    return random_below(100) < percent;
}

static void see_event(struct slot *s, struct agx_event *e)
{
    struct agx_sandbox *sb = &s->sb;

    model.events++;
    CHECK(e->sequence == s->sequence + 1);
    CHECK(e->sequence == sb->life.last_sequence);
    CHECK(s->last != AGX_EVENT_SANDBOX_DELETED);
    CHECK(e->occurred_at_ns > 0);
    if (e->state != AGX_STATE_NONE) {
        CHECK(e->state == agx_sandbox_state(sb));
        s->told = e->state;
    }
    if (e->type == AGX_EVENT_SANDBOX_STOP_REQUESTED) {
        CHECK(!s->stop_open);
        s->stop_open = true;
    } else if (e->type == AGX_EVENT_SANDBOX_STOPPED) {
        CHECK(s->stop_open);
        CHECK(!s->main_up);
        s->stop_open = false;
    } else if (e->type == AGX_EVENT_SANDBOX_FAILED ||
               e->type == AGX_EVENT_SANDBOX_DELETE_REQUESTED) {
        s->stop_open = false;
    } else if (e->type == AGX_EVENT_SANDBOX_READY) {
        CHECK(s->objects && s->main_up);
    } else if (e->type == AGX_EVENT_SANDBOX_DELETED) {
        CHECK(!s->objects && !s->main_up);
        model.deleted++;
    }
    for (size_t i = 0; i < EXECS; i++) {
        struct run *r = &s->runs[i];

        if (agx_event_details(e->type) != AGX_EVENT_DETAILS_EXEC || !r->in_use ||
            !agx_text_eq(r->exec.id, e->subject))
            continue;
        if (e->type == AGX_EVENT_EXEC_STARTED)
            r->starts++;
        else
            r->ends++;
        CHECK(r->starts == 1 && r->ends <= 1);
    }
    s->sequence = e->sequence;
    s->last = e->type;
    agx_event_done(e);
}

static void check_slot(const struct slot *s)
{
    const struct agx_life *l = &s->sb.life;
    unsigned active = 0;

    CHECK(l->last_sequence == s->sequence);
    CHECK(l->running == s->busy);
    CHECK(l->running != AGX_DO_NONE || l->op == AGX_DO_NONE);
    CHECK((l->phase == AGX_PHASE_FAILED) == (l->error_code != NULL));
    if (l->phase != AGX_PHASE_ABSENT && l->phase != AGX_PHASE_PURGED)
        CHECK(s->told == agx_sandbox_state(&s->sb));
    CHECK(s->stop_open == (l->phase == AGX_PHASE_STOPPING));
    for (size_t i = 0; i < EXECS; i++) {
        const struct run *r = &s->runs[i];
        bool ended = r->exec.phase == AGX_EXEC_PHASE_ENDED;

        if (!r->in_use)
            continue;
        active += !ended;
        CHECK(r->exec.running == r->busy || ended);
        CHECK((r->exec.state == AGX_EXEC_RUNNING) == !ended);
        CHECK(r->ends == ended);
    }
    CHECK(l->active_execs == active);
    if (l->phase == AGX_PHASE_STOPPED || l->phase == AGX_PHASE_DELETED)
        CHECK(active == 0);
}

static struct agx_stamp now(void)
{
    return test_at(++model.second);
}

static void exec_step(struct slot *s, struct run *r, struct agx_exec_input in)
{
    struct agx_exec_output out;
    int taken;

    in.now = now();
    if (chance(5)) { /* the commit fails: as if it had never been */
        struct agx_exec before = r->exec;
        struct agx_life saved = { 0 };

        ASSERT_OK(agx_life_copy(&saved, &s->sb.life, NULL));
        (void)!agx_exec_step(&r->exec, &s->sb, &in, &out, NULL);
        agx_event_done(&out.event);
        agx_exec_undo(&r->exec, &before);
        agx_life_done(&s->sb.life);
        s->sb.life = saved;
    }
    taken = agx_exec_step(&r->exec, &s->sb, &in, &out, NULL);
    CHECK((taken < 0) == (out.reason != AGX_REASON_NONE));
    if (out.has_event)
        see_event(s, &out.event);
    if (r->exec.phase == AGX_EXEC_PHASE_ENDED || in.on == AGX_EXEC_ON_BEGUN ||
        in.on == AGX_EXEC_ON_KILL_FAILED ||
        (in.on == AGX_EXEC_ON_EXITED && r->busy != AGX_EXEC_DO_KILL))
        r->busy = AGX_EXEC_DO_NONE;
    if (out.start != AGX_EXEC_DO_NONE) {
        CHECK(r->busy == AGX_EXEC_DO_NONE);
        r->busy = out.start;
    }
}

/* As the daemon does it: no process is left, so the execs end before the sandbox does. */
static void end_execs(struct slot *s)
{
    for (size_t i = 0; i < EXECS; i++) {
        s->runs[i].alive = false;
        if (s->runs[i].in_use && s->runs[i].exec.phase != AGX_EXEC_PHASE_ENDED)
            exec_step(s, &s->runs[i],
                      (struct agx_exec_input){ .on = AGX_EXEC_ON_LOST,
                                               .exit_code = AGX_EXEC_EXIT_KILLED });
    }
}

static int step(struct slot *s, struct agx_sandbox_input in)
{
    enum agx_phase before = s->sb.life.phase;
    struct agx_sandbox_output out;
    struct agx_life saved = { 0 };
    int r;

    in.now = now();
    if (agx_sandbox_ends_execs(&s->sb, &in))
        end_execs(s);
    if (chance(5)) { /* the commit fails: as if it had never been */
        ASSERT_OK(agx_life_copy(&saved, &s->sb.life, NULL));
        (void)!agx_sandbox_step(&s->sb, &in, &out, NULL);
        agx_event_done(&out.event);
        agx_life_done(&s->sb.life);
        s->sb.life = saved;
    }
    r = agx_sandbox_step(&s->sb, &in, &out, NULL);
    CHECK((r < 0) == (out.reason != AGX_REASON_NONE));
    if (r == 0 && (in.on == AGX_ON_DONE || in.on == AGX_ON_FAILED) && in.op == s->busy)
        s->busy = AGX_DO_NONE;
    if (in.on == AGX_ON_RESTART)
        s->busy = AGX_DO_NONE;
    if (out.has_event)
        see_event(s, &out.event);
    if (out.start != AGX_DO_NONE) {
        CHECK(s->busy == AGX_DO_NONE);
        s->busy = out.start;
    }
    CHECK(!out.cancel || s->busy != AGX_DO_NONE);
    if (before == AGX_PHASE_DELETED || before == AGX_PHASE_PURGED)
        CHECK(s->sb.life.phase == before || s->sb.life.phase == AGX_PHASE_PURGED);
    if (before == AGX_PHASE_DELETING)
        CHECK(s->sb.life.phase == before || s->sb.life.phase == AGX_PHASE_DELETED ||
              s->sb.life.phase == AGX_PHASE_FAILED);
    return r;
}

static void fresh(struct slot *s)
{
    char id[32];

    for (size_t i = 0; i < EXECS; i++)
        agx_exec_done(&s->runs[i].exec);
    agx_sandbox_done(&s->sb);
    *s = (struct slot){ 0 };
    (void)snprintf(id, sizeof(id), "box-%u", model.sandboxes_made++);
    test_sandbox(&s->sb, id);
}

static void create_exec(struct slot *s)
{
    struct run *r = &s->runs[random_below(EXECS)];
    char id[64];

    if (r->in_use && r->exec.phase != AGX_EXEC_PHASE_ENDED)
        return;
    agx_exec_done(&r->exec);
    *r = (struct run){ .in_use = true };
    (void)snprintf(id, sizeof(id), "%s-%u", s->sb.id, s->execs_made++);
    test_exec(&r->exec, id, s->sb.id);
    exec_step(s, r, (struct agx_exec_input){ .on = AGX_EXEC_ON_CREATE });
    if (r->exec.phase == AGX_EXEC_PHASE_ABSENT) {
        CHECK(s->sb.life.phase != AGX_PHASE_READY);
        agx_exec_done(&r->exec);
        r->in_use = false;
    }
}

/* What an operation leaves behind in the world, whether or not anybody hears of it. */
static void take_effect(struct slot *s, enum agx_do op, bool good)
{
    switch (op) {
    case AGX_DO_CREATE: /* a failed one undoes its steps, or fails in that too */
        s->objects = s->main_up = good || chance(10);
        break;
    case AGX_DO_RESUME:
    case AGX_DO_REVIVE:
        s->main_up = s->objects && (good || chance(30));
        break;
    case AGX_DO_STOP:
    case AGX_DO_HALT:
        s->main_up = s->main_up && !good;
        break;
    case AGX_DO_DELETE:
        s->objects = s->objects && !good && chance(50);
        s->main_up = s->main_up && s->objects;
        break;
    default:
        break;
    }
    if (!s->main_up)
        for (size_t i = 0; i < EXECS; i++)
            s->runs[i].alive = false;
}

static void end_op(struct slot *s, bool good)
{
    enum agx_do op = s->busy;

    if (op == AGX_DO_NONE)
        return;
    if ((op == AGX_DO_RESUME || op == AGX_DO_REVIVE) && !s->objects)
        good = false;
    take_effect(s, op, good);
    CHECK(step(s, (struct agx_sandbox_input){ .on = good ? AGX_ON_DONE : AGX_ON_FAILED,
                                              .op = op,
                                              .error_message = "it did not work" }) == 0);
}

static enum agx_seen look_at(const struct slot *s)
{
    return !s->objects ? AGX_SEEN_MISSING : s->main_up ? AGX_SEEN_RUNNING : AGX_SEEN_EXITED;
}

/* What runs in the background finds out that the world has changed. */
static void notice(struct slot *s)
{
    struct agx_sandbox_input died = { .on = AGX_ON_DIED,
                                      .error_code = AGX_FAILED_NOT_RUNNING,
                                      .error_message = "gone" };
    enum agx_seen seen = look_at(s);

    if (s->sb.life.phase != AGX_PHASE_READY || seen == AGX_SEEN_RUNNING)
        return;
    if (seen == AGX_SEEN_MISSING || chance(20))
        (void)step(s, died);
    else
        (void)step(s, (struct agx_sandbox_input){ .on = AGX_ON_REVIVE });
}

static void progress_exec(struct slot *s, struct run *r, bool good)
{
    struct agx_exec_input in = { .exit_code = (int32_t)random_below(3), .error_message = "no" };
    enum agx_exec_do op = r->busy;

    if (op == AGX_EXEC_DO_START && !r->known) {
        r->known = true;
        r->alive = s->main_up && good;
        in.on = r->alive ? AGX_EXEC_ON_BEGUN : AGX_EXEC_ON_REFUSED;
    } else if (op == AGX_EXEC_DO_START || op == AGX_EXEC_DO_ADOPT) {
        in.on = r->alive                  ? AGX_EXEC_ON_BEGUN
                : good && r->known        ? AGX_EXEC_ON_EXITED
                : op == AGX_EXEC_DO_START ? AGX_EXEC_ON_REFUSED
                                          : AGX_EXEC_ON_UNKNOWN;
    } else if (op == AGX_EXEC_DO_KILL && chance(30)) {
        in.on = AGX_EXEC_ON_EXITED; /* the command ends by itself; its children do not */
    } else if (op == AGX_EXEC_DO_KILL) {
        r->alive = r->alive && !good;
        in.on = good ? AGX_EXEC_ON_GONE : AGX_EXEC_ON_KILL_FAILED;
    } else if (r->exec.phase == AGX_EXEC_PHASE_RUNNING) {
        r->alive = false;
        in.on = AGX_EXEC_ON_EXITED;
    } else {
        return;
    }
    exec_step(s, r, in);
}

static void restart(void)
{
    model.restarts++;
    for (size_t i = 0; i < SLOTS; i++) {
        struct slot *s = &model.slots[i];
        struct agx_recovery_plan plan;

        if (s->busy != AGX_DO_NONE && chance(50)) /* it was done, and nobody was left to hear it */
            take_effect(s, s->busy, chance(80));
        s->sb.life.running = AGX_DO_NONE; /* as read from the store */
        s->sb.life.active_execs = 0;
        for (size_t k = 0; k < EXECS; k++) {
            struct run *r = &s->runs[k];

            if (r->busy == AGX_EXEC_DO_START && chance(50))
                r->known = r->alive = s->main_up;
            r->busy = r->exec.running = AGX_EXEC_DO_NONE;
            if (r->in_use)
                exec_step(s, r, (struct agx_exec_input){ .on = AGX_EXEC_ON_RESTART });
        }
        CHECK(step(s, (struct agx_sandbox_input){ .on = AGX_ON_RESTART }) == 0);
        plan = agx_reconcile_start(s->sb.life.phase, chance(10) ? AGX_SEEN_UNKNOWN : look_at(s),
                                   false);
        if (plan.action == AGX_RECOVERY_FAIL)
            (void)step(s, (struct agx_sandbox_input){ .on = AGX_ON_DIED,
                                                      .error_code = plan.error_code,
                                                      .error_message = plan.error_message });
        else if (plan.action == AGX_RECOVERY_REVIVE)
            (void)step(s, (struct agx_sandbox_input){ .on = AGX_ON_REVIVE });
        else if (plan.action == AGX_RECOVERY_HALT)
            (void)step(s, (struct agx_sandbox_input){ .on = AGX_ON_HALT });
        else if (plan.action == AGX_RECOVERY_REMOVE)
            CHECK(s->sb.life.phase == AGX_PHASE_ABSENT); /* nothing is left of a deleted one */
        check_slot(s);
    }
}

static void request_create(struct slot *s)
{
    if (s->sb.life.phase == AGX_PHASE_PURGED && chance(50)) {
        CHECK(step(s, (struct agx_sandbox_input){ .on = AGX_ON_CREATE }) == -AGX_ALREADY_EXISTS);
        fresh(s);
    }
    (void)step(s, (struct agx_sandbox_input){ .on = AGX_ON_CREATE });
}

static void stray(struct slot *s)
{
    enum agx_do op = (enum agx_do)random_below(AGX_DO_COUNT);

    if (op != s->busy)
        CHECK(step(s, (struct agx_sandbox_input){ .on = chance(50) ? AGX_ON_DONE : AGX_ON_FAILED,
                                                  .op = op }) == 0);
}

static void random_step(struct slot *s)
{
    static const enum agx_on plain[] = { AGX_ON_STOP, AGX_ON_STOP,   AGX_ON_RESUME, AGX_ON_RESUME,
                                         AGX_ON_IDLE, AGX_ON_DELETE, AGX_ON_CLEANUP };
    struct run *r = &s->runs[random_below(EXECS)];
    enum agx_phase phase = s->sb.life.phase;
    bool dull = phase == AGX_PHASE_ABSENT || phase == AGX_PHASE_PURGED; /* little can happen */

    /* Not to spend most of the run where a life has ended. */
    if (phase == AGX_PHASE_DELETED && chance(40))
        (void)step(s, (struct agx_sandbox_input){ .on = AGX_ON_CLEANUP });
    else if (phase == AGX_PHASE_FAILED && chance(20))
        (void)step(s, (struct agx_sandbox_input){ .on = AGX_ON_DELETE });
    switch (random_below(dull ? 2 : 16)) {
    case 0:
        request_create(s);
        break;
    case 1:
    case 2:
        (void)step(s,
                   (struct agx_sandbox_input){ .on = plain[random_below(AGX_ARRAY_LEN(plain))] });
        break;
    case 3:
    case 4:
        create_exec(s);
        break;
    case 5:
    case 6:
    case 7:
        end_op(s, chance(80));
        break;
    case 8:
        if (s->busy != AGX_DO_NONE)
            (void)step(s, (struct agx_sandbox_input){ .on = AGX_ON_BEGUN, .op = s->busy });
        break;
    case 9:
        (void)step(s, (struct agx_sandbox_input){ .on = chance(50) ? AGX_ON_COMPANION_READY
                                                                   : AGX_ON_COMPANION_FAILED,
                                                  .companion = random_below(3) });
        break;
    case 10:
    case 11:
        if (r->in_use)
            progress_exec(s, r, chance(80));
        break;
    case 12:
        if (r->in_use)
            exec_step(s, r,
                      (struct agx_exec_input){ .on = chance(60) ? AGX_EXEC_ON_CANCEL
                                                                : AGX_EXEC_ON_DEADLINE });
        break;
    case 13: /* somebody kills it behind our back */
        if (s->busy == AGX_DO_NONE && chance(20)) {
            s->main_up = false;
            s->objects = s->objects && chance(60);
        }
        break;
    case 14:
        notice(s);
        break;
    default:
        stray(s);
        break;
    }
    check_slot(s);
}

/* Every operation that was accepted comes to an end, and a deleted sandbox leaves nothing. */
static void settle(void)
{
    for (size_t i = 0; i < SLOTS; i++) {
        struct slot *s = &model.slots[i];

        for (int turns = 0; s->busy != AGX_DO_NONE; turns++) {
            CHECK(turns < 4);
            end_op(s, true);
        }
        for (size_t k = 0; k < EXECS; k++)
            for (int turns = 0; s->runs[k].in_use && s->runs[k].busy != AGX_EXEC_DO_NONE; turns++) {
                CHECK(turns < 100);
                progress_exec(s, &s->runs[k], true);
            }
        CHECK(s->sb.life.phase != AGX_PHASE_CREATING && s->sb.life.phase != AGX_PHASE_RESUMING &&
              s->sb.life.phase != AGX_PHASE_STOPPING && s->sb.life.phase != AGX_PHASE_DELETING);
        check_slot(s);
    }
}

static void delete_all(void)
{
    for (size_t i = 0; i < SLOTS; i++) {
        struct slot *s = &model.slots[i];

        if (s->sb.life.phase != AGX_PHASE_ABSENT && s->sb.life.phase != AGX_PHASE_PURGED)
            CHECK(step(s, (struct agx_sandbox_input){ .on = AGX_ON_DELETE }) == 0);
    }
    settle();
    for (size_t i = 0; i < SLOTS; i++) {
        struct slot *s = &model.slots[i];

        CHECK(!s->objects && !s->main_up && s->sb.life.active_execs == 0);
        for (size_t k = 0; k < EXECS; k++)
            CHECK(!s->runs[k].alive);
    }
}

TEST(core_model_keeps_its_promises_whatever_happens)
{
    uint64_t steps = test_from_env("AGX_MODEL_STEPS", STEPS);

    test_random_init(&model.random, "AGX_MODEL_SEED");
    printf("# AGX_MODEL_SEED=%" PRIu64 " AGX_MODEL_STEPS=%" PRIu64 "\n", model.random.seed, steps);
    (void)fflush(stdout);
    for (size_t i = 0; i < SLOTS; i++)
        fresh(&model.slots[i]);
    for (model.step = 0; model.step < steps; model.step++) {
        if (random_below(500) == 0)
            restart();
        else
            random_step(&model.slots[random_below(SLOTS)]);
        if (random_below(20000) == 0)
            settle();
    }
    settle();
    delete_all();
    printf("# %" PRIu64 " events, %u sandboxes, %" PRIu64 " deleted, %" PRIu64 " restarts\n",
           model.events, model.sandboxes_made, model.deleted, model.restarts);
    CHECK(steps < STEPS || (model.deleted > 100 && model.restarts > 100));
    for (size_t i = 0; i < SLOTS; i++) {
        for (size_t k = 0; k < EXECS; k++)
            agx_exec_done(&model.slots[i].runs[k].exec);
        agx_sandbox_done(&model.slots[i].sb);
    }
}
