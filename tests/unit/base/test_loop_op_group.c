/*
 * Operations of a group: several pieces of work in one state.
 *
 *   BOTH --all arrived--> AFTER --> DONE
 *    |                      |
 *    +--------error---------+--> UNDO --> DONE
 */
#include "loop/op.h"
#include "tests/support/loop.h"

enum { PAIR_DONE = AGX_OP_DONE, PAIR_BOTH, PAIR_AFTER, PAIR_UNDO };
enum { N_WORKS = 3, SOON_MS = 1, LONG_MS = 60000 };

/* One piece of work: a timer. */
struct work {
    uv_timer_t timer;
    struct pair_op *op;
    uint64_t ms;
    bool fails, goes_on; /* with another one, before it arrives */
    bool held;
};

struct owner {
    struct agx_op_group group;
    struct agx_loop *loop;
    int n_begun, n_gone, n_finished;
    int n_rest_failed, n_rest_cancelled; /* calls of end_rest */
};

struct pair_op {
    struct agx_op op;
    struct owner *owner;
    struct work works[N_WORKS];
    size_t n_works;    /* that BOTH begins */
    uint64_t undo_ms;  /* pause of UNDO */
    uint64_t pause_ms; /* in BOTH; 0: none */
    bool cannot_begin, without_words;
    char trace[16];
    int n_cancelled; /* calls of cancel_held */
    struct agx_error *error;
    bool finished;
};

static struct pair_op *of(struct agx_op *op)
{
    return container_of(op, struct pair_op, op);
}

static void entered(struct pair_op *p)
{
    size_t n = strlen(p->trace);

    snprintf(p->trace + n, sizeof(p->trace) - n, "%u", p->op.state);
}

static void begin_work(struct work *w, uv_timer_cb done)
{
    w->held = true;
    agx_op_hold(&w->op->op);
    (void)uv_timer_start(&w->timer, done, w->ms, 0);
}

static void on_work_done(uv_timer_t *t)
{
    struct work *w = container_of(t, struct work, timer);
    struct agx_error *error = NULL;

    w->held = false;
    if (w->fails)
        (void)agx_error_set(&error, AGX_DATA_LOSS, "work %d is broken", (int)(w - w->op->works));
    if (w->goes_on)
        begin_work(&w->op->works[N_WORKS - 1], on_work_done);
    agx_op_fail(&w->op->op, &error);
    agx_op_arrive(&w->op->op);
}

static int enter_both(struct agx_op *op, struct agx_error **err)
{
    struct pair_op *p = of(op);

    entered(p);
    for (size_t i = 0; i < p->n_works; i++)
        begin_work(&p->works[i], on_work_done);
    if (p->pause_ms > 0)
        agx_op_pause(op, p->pause_ms);
    if (p->cannot_begin && !p->without_words)
        (void)agx_error_set(err, AGX_UNAVAILABLE, "no more of them");
    return agx_op_wait(op, p->cannot_begin ? -AGX_UNAVAILABLE : 0, PAIR_AFTER, err);
}

static int enter_after(struct agx_op *op, struct agx_error **err)
{
    entered(of(op));
    return agx_op_wait(op, 0, PAIR_DONE, err);
}

static int enter_undo(struct agx_op *op, struct agx_error **err)
{
    entered(of(op));
    if (of(op)->undo_ms > 0)
        agx_op_pause(op, of(op)->undo_ms);
    return agx_op_wait(op, 0, PAIR_DONE, err);
}

/* What blocks is ended; what is about to end is left alone. */
static void cancel_works(struct agx_op *op)
{
    struct pair_op *p = of(op);

    p->n_cancelled++;
    for (size_t i = 0; i < N_WORKS; i++) {
        if (!p->works[i].held || p->works[i].ms < LONG_MS)
            continue;
        p->works[i].held = false;
        (void)uv_timer_stop(&p->works[i].timer);
        agx_op_arrive(op);
    }
}

static void pair_finish(struct agx_op *op, struct agx_error *error)
{
    struct pair_op *p = of(op);

    ASSERT_FALSE(p->finished);
    p->finished = true;
    p->error = error;
    p->owner->n_finished++;
    ASSERT_INT(p->owner->n_finished - 1, p->owner->n_gone);
    for (size_t i = 0; i < N_WORKS; i++)
        uv_close((uv_handle_t *)&p->works[i].timer, NULL);
}

static const struct agx_op_state pair_states[] = {
    [PAIR_BOTH] = { "both", enter_both, agx_op_cancel_held, PAIR_UNDO },
    [PAIR_AFTER] = { "after", enter_after, agx_op_cancel_held },
    [PAIR_UNDO] = { "undo", enter_undo, agx_op_cancel_held },
};

static const struct agx_op_kind pair_kind = {
    .name = "pair",
    .states = pair_states,
    .n_states = AGX_ARRAY_LEN(pair_states),
    .finish = pair_finish,
    .cancel_held = cancel_works,
};

static void begun(struct agx_op_group *g)
{
    container_of(g, struct owner, group)->n_begun++;
}

static void gone(struct agx_op_group *g)
{
    container_of(g, struct owner, group)->n_gone++;
}

static void end_rest(struct agx_op *op, bool failed)
{
    struct owner *o = of(op)->owner;

    if (failed)
        o->n_rest_failed++;
    else
        o->n_rest_cancelled++;
}

static void owner_open(struct owner *o)
{
    struct agx_loop *l = test_loop_open();

    *o = (struct owner){
        .loop = l, .group = { .loop = l, .end_rest = end_rest, .begun = begun, .gone = gone }
    };
}

static void start(struct owner *o, struct pair_op *p, uint64_t deadline_ms)
{
    p->owner = o;
    for (size_t i = 0; i < N_WORKS; i++) {
        p->works[i].op = p;
        (void)uv_timer_init(agx_loop_uv(o->loop), &p->works[i].timer);
    }
    agx_op_start_in(&p->op, &pair_kind, &o->group, "pair-1", deadline_ms);
    ASSERT_FALSE(p->finished); /* never inside the starting call */
}

static void run(struct owner *o)
{
    test_loop_run(o->loop);
    ASSERT_INT(o->n_begun, o->n_gone);
    ASSERT_INT(o->n_begun, o->n_finished);
    ASSERT_NULL(o->group.first);
    test_loop_close(o->loop);
}

static void expect(struct pair_op *p, enum agx_code code, const char *words, const char *trace)
{
    ASSERT_CSTR(trace, p->trace);
    ASSERT_NOT_NULL(p->error);
    ASSERT_INT(code, p->error->code);
    ASSERT_MESSAGE(p->error, words);
    p->error = agx_error_free(p->error);
}

TEST(op_of_a_group_goes_on_when_all_that_it_holds_has_arrived)
{
    struct pair_op p = { .n_works = 2, .works = { { .ms = SOON_MS }, { .ms = 20 } } };
    struct owner o;

    owner_open(&o);
    start(&o, &p, 0);
    ASSERT_UINT(2, p.op.pending);
    run(&o);
    ASSERT_NULL(p.error);
    ASSERT_CSTR("12", p.trace);
    ASSERT_FALSE(p.works[0].held || p.works[1].held);
    ASSERT_INT(0, p.n_cancelled + o.n_rest_failed + o.n_rest_cancelled);
}

TEST(op_of_a_group_that_holds_nothing_goes_on_at_once)
{
    struct pair_op p = { 0 };
    struct owner o;

    owner_open(&o);
    start(&o, &p, 0);
    ASSERT_CSTR("12", p.trace);
    run(&o);
    ASSERT_NULL(p.error);
}

TEST(op_of_a_group_waits_for_what_a_callback_holds)
{
    struct pair_op p = {
        .n_works = 1,
        .works = { { .ms = SOON_MS, .goes_on = true }, { .ms = 0 }, { .ms = 5, .fails = true } }
    };
    struct owner o;

    owner_open(&o);
    start(&o, &p, 0);
    run(&o);
    expect(&p, AGX_DATA_LOSS, "work 2 is broken", "13");
}

TEST(op_of_a_group_ends_the_rest_of_a_state_with_its_first_failure)
{
    struct pair_op p = { .n_works = 2,
                         .works = { { .ms = SOON_MS, .fails = true }, { .ms = LONG_MS } } };
    struct owner o;

    owner_open(&o);
    start(&o, &p, 0);
    run(&o);
    expect(&p, AGX_DATA_LOSS, "work 0 is broken", "13");
    ASSERT_INT(1, p.n_cancelled);
    ASSERT_INT(1, o.n_rest_failed);
    ASSERT_INT(0, o.n_rest_cancelled);
}

/* What cannot be ended early is waited for, and keeps the first error. */
TEST(op_of_a_group_keeps_its_first_failure_and_the_state_until_all_have_arrived)
{
    struct pair_op p = {
        .n_works = 2, .works = { { .ms = SOON_MS, .fails = true }, { .ms = 20, .fails = true } }
    };
    struct owner o;

    owner_open(&o);
    start(&o, &p, 0);
    run(&o);
    expect(&p, AGX_DATA_LOSS, "work 0 is broken", "13");
    ASSERT_FALSE(p.works[1].held);
    ASSERT_INT(1, p.n_cancelled);
}

TEST(op_of_a_group_that_cannot_begin_all_ends_what_was_begun)
{
    struct pair_op p = { .n_works = 1, .works = { { .ms = LONG_MS } }, .cannot_begin = true };
    struct pair_op mute = { .cannot_begin = true, .without_words = true };
    struct owner o;

    owner_open(&o);
    start(&o, &p, 0);
    start(&o, &mute, 0);
    run(&o);
    expect(&p, AGX_UNAVAILABLE, "no more of them", "13");
    expect(&mute, AGX_UNAVAILABLE, "'pair' failed", "13");
}

TEST(op_of_a_group_pauses_and_is_woken)
{
    struct pair_op over = { .pause_ms = SOON_MS }, woken = { .pause_ms = LONG_MS };
    struct owner o;

    owner_open(&o);
    start(&o, &over, 0);
    start(&o, &woken, 0);
    agx_op_wake(&woken.op);
    agx_op_wake(&woken.op); /* there is none any more */
    run(&o);
    ASSERT_NULL(over.error);
    ASSERT_NULL(woken.error);
    ASSERT_CSTR("12", over.trace);
    ASSERT_CSTR("12", woken.trace);
}

TEST(op_of_a_group_that_is_cancelled_ends_its_pause_and_what_it_holds)
{
    struct pair_op p = { .n_works = 1, .works = { { .ms = LONG_MS } }, .pause_ms = LONG_MS };
    struct owner o;

    owner_open(&o);
    start(&o, &p, 0);
    agx_op_cancel(&p.op, AGX_CANCELLED);
    agx_op_cancel(&p.op, AGX_CANCELLED); /* acts once */
    run(&o);
    expect(&p, AGX_CANCELLED, "pair stopped in state 'both'", "13");
    ASSERT_INT(1, p.n_cancelled);
    ASSERT_INT(0, o.n_rest_failed);
    ASSERT_INT(1, o.n_rest_cancelled);
}

TEST(op_of_a_group_past_its_deadline_ends_what_it_holds)
{
    struct pair_op p = { .n_works = 2, .works = { { .ms = LONG_MS }, { .ms = LONG_MS } } };
    struct owner o;

    owner_open(&o);
    start(&o, &p, SOON_MS);
    run(&o);
    expect(&p, AGX_DEADLINE_EXCEEDED, "pair stopped in state 'both'", "13");
}

/* For the end of its owner; a cancel leaves an undo alone. */
TEST(op_of_a_group_that_is_aborted_ends_its_undo_too)
{
    struct pair_op p = { .cannot_begin = true, .undo_ms = LONG_MS };
    struct owner o;

    owner_open(&o);
    start(&o, &p, 0);
    ASSERT_CSTR("13", p.trace);
    agx_op_cancel(&p.op, AGX_CANCELLED);
    ASSERT_UINT(1, p.op.pending);
    agx_op_abort(&p.op);
    agx_op_abort(&p.op); /* it ends */
    run(&o);
    expect(&p, AGX_UNAVAILABLE, "no more of them", "13");
}

TEST(op_group_knows_its_operations_until_they_have_finished)
{
    struct pair_op p[3] = { { .pause_ms = LONG_MS }, { .pause_ms = LONG_MS }, { .n_works = 0 } };
    struct owner o;
    int n = 0;

    owner_open(&o);
    for (size_t i = 0; i < AGX_ARRAY_LEN(p); i++)
        start(&o, &p[i], 0);
    ASSERT_INT(3, o.n_begun);
    ASSERT_INT(0, o.n_gone);
    for (struct agx_op *op = o.group.first; op; op = op->next)
        n++;
    ASSERT_INT(3, n);
    for (struct agx_op *op = o.group.first; op; op = op->next)
        agx_op_abort(op);
    run(&o);
    expect(&p[0], AGX_CANCELLED, "stopped", "13");
    expect(&p[1], AGX_CANCELLED, "stopped", "13");
    ASSERT_NULL(p[2].error);
}
