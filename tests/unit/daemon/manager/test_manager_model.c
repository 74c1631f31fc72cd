/*
 * test_manager_model.c: random requests, reports, deaths, failing disks and dying daemons, on a few
 * sandboxes at once; after each restart and at the end the state must be consistent. The test
 * prints its seed. AGX_MANAGER_SEED sets the seed, AGX_MANAGER_STEPS the number of steps.
 */
#include "tests/support/manager.h"

#include "tests/support/random.h"

#include <stdio.h>

/* So many at a time; one that is deleted makes room for another. */
enum { BOXES = 12, BOXES_MAX = 4000, EXECS = 1000, STEPS = 4000 };

/* What was promised of one sandbox. */
struct promise {
    unsigned number;
    char id[16];
    struct reply create, other;
    bool asked, sent_other;
    enum agx_on on;
    bool accepted;     /* the create was acknowledged */
    bool deleted;      /* so was a delete */
    uint64_t sequence; /* the newest that anybody was told */
};

struct model {
    struct fixture f;
    struct test_random random;
    struct promise boxes[BOXES];
    struct {
        char id[16];
        struct reply r;
        bool asked;
    } execs[EXECS];
    size_t n_execs;
    struct agx_feed *feed;    /* of all */
    uint64_t seen[BOXES_MAX]; /* newest sequence that the reader got of each */
    unsigned n_boxes;
    uint64_t position;
    unsigned n_restarts;
};

static void turn(struct model *m)
{
    (void)uv_run(agx_loop_uv(m->f.loop), UV_RUN_NOWAIT);
}

/* The reader of all gets each event once, in order, across restarts. */
static void read_feed(void *user)
{
    struct model *m = user;
    struct agx_feed_item item;
    int r;

    while ((r = agx_feed_next(m->feed, &item, NULL)) == 1) {
        unsigned box = 0;

        ASSERT_INT(1, sscanf(item.sandbox_id, "box-%u", &box));
        ASSERT_TRUE(item.position > m->position);
        ASSERT_UINT(m->seen[box] + 1, item.event->sequence);
        m->position = item.position;
        m->seen[box] = item.event->sequence;
    }
    ASSERT_INT(0, r);
}

static const struct agx_feed_ops feed_ops = { .ready = read_feed };

static void open_feed(struct model *m)
{
    ASSERT_OK(agx_feed_open(m->f.manager, NULL, m->position, &feed_ops, m, &m->feed, NULL));
    read_feed(m);
}

static void new_box(struct model *m, struct promise *p)
{
    *p = (struct promise){ .number = m->n_boxes++ };
    snprintf(p->id, sizeof(p->id), "box-%u", p->number);
}

static void note_answers(struct model *m)
{
    for (size_t i = 0; i < BOXES; i++) {
        struct promise *p = &m->boxes[i];

        if (p->asked && p->create.n > 0) {
            p->accepted |= p->create.code == AGX_OK;
            p->asked = p->accepted;
            p->sequence = AGX_MAX(p->sequence, p->create.sequence);
            p->create = (struct reply){ 0 };
        }
        if (p->sent_other && p->other.n > 0) {
            p->deleted |= p->other.code == AGX_OK && p->on == AGX_ON_DELETE;
            p->sequence = AGX_MAX(p->sequence, p->other.sequence);
            p->sent_other = false;
        }
    }
}

/* Nothing that was acknowledged is missing, and nothing that was deleted came back. */
static void check(struct model *m)
{
    note_answers(m);
    for (size_t i = 0; i < BOXES; i++) {
        const struct promise *p = &m->boxes[i];
        enum agx_phase phase = phase_of(&m->f, p->id);

        if (!p->accepted)
            continue;
        ASSERT_TRUE(phase != AGX_PHASE_ABSENT);
        ASSERT_TRUE(sequence_of(&m->f, p->id) >= p->sequence);
        if (p->deleted)
            ASSERT_TRUE(phase == AGX_PHASE_DELETING || phase == AGX_PHASE_DELETED ||
                        phase == AGX_PHASE_FAILED);
        (void)events_of(&m->f, p->id);
    }
}

/* The daemon dies. Half of the time what is on its way to the disk gets there. */
static void restart(struct model *m)
{
    bool lost = test_random_below(&m->random, 2) == 0;

    agx_store_mem_hold(m->f.store, false);
    agx_store_mem_fail(m->f.store, AGX_UNAVAILABLE, lost ? 100000 : 0);
    fixture_close_manager(&m->f);
    agx_feed_close(m->feed);
    agx_store_mem_fail(m->f.store, AGX_UNAVAILABLE, 0);
    fixture_open_manager(&m->f);
    open_feed(m);
    check(m);
    m->n_restarts++;
}

static void ask_something(struct model *m, struct promise *p)
{
    static const enum agx_on asks[] = { AGX_ON_STOP, AGX_ON_RESUME, AGX_ON_STOP, AGX_ON_RESUME,
                                        AGX_ON_DELETE };

    if (p->deleted && !p->sent_other && m->n_boxes < BOXES_MAX &&
        phase_of(&m->f, p->id) == AGX_PHASE_DELETED)
        new_box(m, p);
    if (!p->asked) {
        p->asked = true;
        send_create(&m->f, p->id, &p->create);
    } else if (!p->sent_other) {
        p->on = asks[test_random_below(&m->random, AGX_ARRAY_LEN(asks))];
        if (p->on == AGX_ON_DELETE && test_random_below(&m->random, 4) != 0)
            p->on = AGX_ON_RESUME;
        if (phase_of(&m->f, p->id) == AGX_PHASE_FAILED) /* nothing else helps it */
            p->on = AGX_ON_DELETE;
        p->sent_other = true;
        p->other = (struct reply){ 0 };
        agx_manager_ask(m->f.manager, p->id, p->on, reply_note, &p->other);
    }
}

static void exec_something(struct model *m, const struct promise *p)
{
    size_t i = test_random_below(&m->random, EXECS);

    if (!m->execs[i].asked && p->accepted) {
        m->execs[i].asked = true;
        snprintf(m->execs[i].id, sizeof(m->execs[i].id), "exec-%zu", i);
        send_exec(&m->f, p->id, m->execs[i].id, 0, &m->execs[i].r);
    } else if (m->execs[i].asked && world_exec(m->f.world, m->execs[i].id)) {
        if (test_random_below(&m->random, 3) == 0)
            agx_manager_exec_cancel(m->f.manager, m->execs[i].id, reply_note, &m->execs[i].r);
        else
            world_exit(m->f.world, m->execs[i].id, (int32_t)test_random_below(&m->random, 3));
    }
}

static void disturb_backend(struct model *m, const struct promise *p)
{
    struct world *w = m->f.world;
    enum agx_do verb = AGX_DO_CREATE + (int)test_random_below(&m->random, AGX_DO_HALT);

    switch (test_random_below(&m->random, 5)) {
    case 0:
        w->hold[verb] = true;
        break;
    case 1:
        w->hold[verb] = false;
        for (size_t i = 0; i < BOXES; i++)
            world_release(w, m->boxes[i].id);
        break;
    case 2:
        w->fail[verb] = 1;
        break;
    case 3:
        if (world_box(w, p->id) && !world_box(w, p->id)->busy &&
            world_box(w, p->id)->seen == AGX_SEEN_RUNNING)
            world_die(w, p->id, AGX_SEEN_EXITED);
        break;
    default:
        w->fail_kills = 1;
    }
}

static void step(struct model *m)
{
    struct promise *p = &m->boxes[test_random_below(&m->random, BOXES)];

    switch (test_random_below(&m->random, 16)) {
    case 0:
        disturb_backend(m, p);
        break;
    case 1:
        agx_store_mem_fail(m->f.store, AGX_RESOURCE_EXHAUSTED, 1);
        break;
    case 2:
        agx_store_mem_hold(m->f.store, test_random_below(&m->random, 4) == 0);
        break;
    case 3:
    case 4:
    case 5:
    case 6:
        exec_something(m, p);
        break;
    case 7:
    case 8:
    case 9:
    case 10:
        ask_something(m, p);
        break;
    case 11:
        if (test_random_below(&m->random, 10) == 0)
            restart(m);
        break;
    default:
        turn(m);
        note_answers(m);
    }
}

/* Everything may go on now: what the records say is what the world has. */
static void check_end(struct model *m)
{
    struct world *w = m->f.world;

    memset(w->hold, 0, sizeof(w->hold));
    memset(w->fail, 0, sizeof(w->fail));
    w->fail_kills = 0;
    agx_store_mem_fail(m->f.store, AGX_UNAVAILABLE, 0);
    restart(m);
    fixture_settle(&m->f);
    fixture_settle(&m->f);
    check(m);
    for (size_t i = 0; i < BOXES; i++) {
        const struct world_box *box = world_box(w, m->boxes[i].id);
        enum agx_phase phase = phase_of(&m->f, m->boxes[i].id);

        if (!m->boxes[i].accepted)
            continue;
        ASSERT_UINT(sequence_of(&m->f, m->boxes[i].id), m->seen[m->boxes[i].number]);
        if (phase == AGX_PHASE_READY)
            ASSERT_INT(AGX_SEEN_RUNNING, box->seen);
        if (phase == AGX_PHASE_DELETED)
            ASSERT_INT(AGX_SEEN_MISSING, box->seen);
        ASSERT_TRUE(phase == AGX_PHASE_READY || phase == AGX_PHASE_STOPPED ||
                    phase == AGX_PHASE_FAILED || phase == AGX_PHASE_DELETED);
    }
    for (size_t i = 0; i < w->n_execs; i++)
        ASSERT_UINT(1, w->execs[i].starts);
}

TEST(random_histories_with_crashes_add_up)
{
    struct model *m = calloc(1, sizeof(*m));
    uint64_t steps = test_from_env("AGX_MANAGER_STEPS", STEPS);

    test_random_init(&m->random, "AGX_MANAGER_SEED");
    printf("# AGX_MANAGER_SEED=%ju\n", (uintmax_t)m->random.seed);
    for (size_t i = 0; i < BOXES; i++)
        new_box(m, &m->boxes[i]);
    fixture_prepare(&m->f);
    m->f.config.watch.window_ms = 100000; /* no crash loops by the speed of this machine */
    fixture_open_manager(&m->f);
    open_feed(m);
    for (uint64_t i = 0; i < steps; i++)
        step(m);
    check_end(m);
    printf("# %u sandboxes, %ju events, %zu execs, %u calls of the backend, %u restarts\n",
           m->n_boxes, (uintmax_t)agx_manager_position(m->f.manager), m->f.world->n_execs,
           m->f.world->n_calls, m->n_restarts);
    agx_feed_close(m->feed);
    fixture_close(&m->f);
    free(m);
}
