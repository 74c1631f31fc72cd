/* test_manager_feed.c: readers of events: from the first event, live, slow, of all sandboxes. */
#include "tests/support/manager.h"

#include "wire/view.h"

#include <stdio.h>

struct reader {
    struct agx_feed *feed;
    unsigned n_ready;
    bool slow; /* does not read when it is told */
    bool ended;
    char text[4096];
    uint64_t last;
};

/* Reads all there is; each event is also what its bytes say. */
static void read_all(struct reader *r)
{
    struct agx_feed_item item;
    int n;

    while ((n = agx_feed_next(r->feed, &item, NULL)) == 1) {
        struct agx_event_view view;
        size_t len = strlen(r->text);

        ASSERT_OK(agx_event_view_decode(&view, item.encoded, NULL));
        ASSERT_UINT(item.event->sequence, view.event.sequence);
        ASSERT_CSTR(item.sandbox_id, view.sandbox_id);
        ASSERT_TRUE(view.replay && !view.snapshot);
        agx_event_view_done(&view);
        snprintf(r->text + len, sizeof(r->text) - len, "%s%s-%d", len ? " " : "", item.sandbox_id,
                 (int)item.event->sequence);
        ASSERT_TRUE(item.position > 0);
        r->last = item.position;
    }
    ASSERT_TRUE(n >= 0);
    r->ended = n == AGX_FEED_END;
}

static void on_ready(void *user)
{
    struct reader *r = user;

    r->n_ready++;
    if (!r->slow)
        read_all(r);
}

static const struct agx_feed_ops ops = { .ready = on_ready };

static void reader_open(struct fixture *f, struct reader *r, const char *id, uint64_t from)
{
    *r = (struct reader){ 0 };
    ASSERT_OK(agx_feed_open(f->manager, id, from, &ops, r, &r->feed, NULL));
}

TEST(a_reader_gets_the_past_then_what_comes)
{
    struct fixture f;
    struct reader r, tail;

    fixture_open(&f);
    make_ready(&f, "box1");
    reader_open(&f, &r, "box1", 0);
    reader_open(&f, &tail, "box1", 3);
    read_all(&r);
    read_all(&tail);
    ASSERT_CSTR("box1-1 box1-2 box1-3", r.text);
    ASSERT_CSTR("", tail.text);
    ASSERT_UINT(0, r.n_ready);
    (void)ask(&f, "box1", AGX_ON_STOP);
    UNTIL(&f, phase_of(&f, "box1") == AGX_PHASE_STOPPED);
    fixture_settle(&f);
    ASSERT_CSTR("box1-1 box1-2 box1-3 box1-4 box1-5", r.text);
    ASSERT_CSTR("box1-4 box1-5", tail.text);
    ASSERT_TRUE(tail.n_ready >= 1 && tail.n_ready <= 2);
    agx_feed_close(r.feed);
    agx_feed_close(tail.feed);
    fixture_close(&f);
}

/* ---- pulls ---- */

struct puller {
    struct reader reader;
    unsigned n;
    struct agx_pull last;
    uint64_t position;
};

static void on_pull(void *user, uint64_t position, const char *sandbox_id,
                    const struct agx_pull *pull)
{
    struct puller *p = container_of(user, struct puller, reader);

    ASSERT_CSTR("box1", sandbox_id);
    p->n++;
    p->last = *pull;
    p->position = position;
}

static const struct agx_feed_ops pull_ops = { .ready = on_ready, .pull = on_pull };

static void puller_open(struct fixture *f, struct puller *p, const char *id)
{
    *p = (struct puller){ 0 };
    ASSERT_OK(agx_feed_open(f->manager, id, 0, &pull_ops, &p->reader, &p->reader.feed, NULL));
}

TEST(readers_of_all_are_told_of_pulls_now_and_then_and_at_their_end)
{
    struct agx_pull pull = { .image = "redis:7", .layers_total = 3 };
    struct puller all, one, behind;
    struct fixture f;

    fixture_open(&f);
    f.world->hold[AGX_DO_CREATE] = true;
    (void)ask_create(&f, "box1");
    puller_open(&f, &all, NULL);
    puller_open(&f, &one, "box1");
    puller_open(&f, &behind, NULL);
    fixture_settle(&f);
    read_all(&all.reader);
    read_all(&one.reader);
    for (pull.layers_done = 0; pull.layers_done < 3; pull.layers_done++)
        world_pull(f.world, "box1", &pull);
    ASSERT_UINT(1, all.n); /* the others came too soon */
    world_pull(f.world, "box1", &pull);
    ASSERT_UINT(2, all.n);
    ASSERT_UINT(3, all.last.layers_done);
    ASSERT_UINT(1, all.position);
    ASSERT_UINT(0, one.n + behind.n);
    world_release(f.world, "box1");
    UNTIL(&f, phase_of(&f, "box1") == AGX_PHASE_READY);
    fixture_settle(&f);
    ASSERT_CSTR("box1-1 box1-2 box1-3", all.reader.text); /* pulls have no sequence */
    agx_feed_close(all.reader.feed);
    agx_feed_close(one.reader.feed);
    agx_feed_close(behind.reader.feed);
    fixture_close(&f);
}

TEST(whoever_saw_an_event_finds_its_state)
{
    struct fixture f;
    struct reader r;

    fixture_open(&f);
    make_ready(&f, "box1");
    reader_open(&f, &r, "box1", 3);
    read_all(&r);
    agx_store_mem_hold(f.store, true);
    agx_manager_ask(f.manager, "box1", AGX_ON_DELETE, reply_note, &(struct reply){ 0 });
    fixture_settle(&f);
    ASSERT_UINT(0, r.n_ready);
    agx_store_mem_hold(f.store, false);
    (void)ask_create(&f, "box2");
    UNTIL(&f, r.n_ready > 0);
    ASSERT_TRUE(sequence_of(&f, "box1") >= 4);
    UNTIL(&f, phase_of(&f, "box1") == AGX_PHASE_DELETED);
    agx_feed_close(r.feed);
    fixture_close(&f);
}

TEST(a_slow_reader_is_told_once_and_misses_nothing)
{
    struct fixture f;
    struct reader slow, quick;

    fixture_open(&f);
    make_ready(&f, "box1");
    reader_open(&f, &slow, "box1", 3);
    reader_open(&f, &quick, "box1", 3);
    read_all(&slow);
    read_all(&quick);
    slow.slow = true;
    for (int i = 0; i < 5; i++) {
        (void)ask(&f, "box1", AGX_ON_STOP);
        UNTIL(&f, phase_of(&f, "box1") == AGX_PHASE_STOPPED);
        (void)ask(&f, "box1", AGX_ON_RESUME);
        UNTIL(&f, phase_of(&f, "box1") == AGX_PHASE_READY);
    }
    fixture_settle(&f);
    ASSERT_UINT(1, slow.n_ready);
    read_all(&slow);
    ASSERT_CSTR(quick.text, slow.text);
    ASSERT_TRUE(strstr(slow.text, "box1-23") != NULL);
    agx_feed_close(slow.feed);
    agx_feed_close(quick.feed);
    fixture_close(&f);
}

TEST(a_reader_of_all_goes_on_at_its_position_after_a_restart)
{
    struct fixture f;
    struct reader r, again, whole;
    char first[4096];
    uint64_t at;

    fixture_open(&f);
    make_ready(&f, "box1");
    reader_open(&f, &r, NULL, 0);
    read_all(&r);
    make_ready(&f, "box2");
    fixture_settle(&f);
    ASSERT_CSTR("box1-1 box1-2 box1-3 box2-1 box2-2 box2-3", r.text);
    at = r.last;
    ASSERT_UINT(agx_manager_position(f.manager), at);
    snprintf(first, sizeof(first), "%s", r.text);
    fixture_close_manager(&f);
    ASSERT_CODE(AGX_UNAVAILABLE, agx_feed_next(r.feed, &(struct agx_feed_item){ 0 }, NULL));
    agx_feed_close(r.feed);
    fixture_open_manager(&f);
    ASSERT_UINT(at, agx_manager_position(f.manager));
    reader_open(&f, &again, NULL, at);
    read_all(&again);
    ASSERT_CSTR("", again.text);
    (void)ask(&f, "box1", AGX_ON_STOP);
    UNTIL(&f, phase_of(&f, "box1") == AGX_PHASE_STOPPED);
    fixture_settle(&f);
    ASSERT_CSTR("box1-4 box1-5", again.text);
    reader_open(&f, &whole, NULL, 0);
    read_all(&whole);
    ASSERT_TRUE(strncmp(whole.text, first, strlen(first)) == 0);
    ASSERT_TRUE(strstr(whole.text, "box1-4 box1-5") != NULL);
    agx_feed_close(again.feed);
    agx_feed_close(whole.feed);
    fixture_close(&f);
}

TEST(positions_stay_in_order_when_commits_fail)
{
    struct fixture f;
    struct reader r;

    fixture_open(&f);
    reader_open(&f, &r, NULL, 0);
    read_all(&r);
    make_ready(&f, "box1");
    agx_store_mem_fail(f.store, AGX_UNAVAILABLE, 3);
    ASSERT_INT(AGX_UNAVAILABLE, ask(&f, "box1", AGX_ON_STOP).code);
    ASSERT_INT(AGX_UNAVAILABLE, ask_create(&f, "box2").code);
    ASSERT_INT(AGX_UNAVAILABLE, ask(&f, "box1", AGX_ON_STOP).code);
    make_ready(&f, "box3");
    (void)ask(&f, "box1", AGX_ON_DELETE);
    UNTIL(&f, phase_of(&f, "box1") == AGX_PHASE_DELETED);
    fixture_settle(&f);
    ASSERT_CSTR("box1-1 box1-2 box1-3 box3-1 box3-2 box3-3 box1-4 box1-5", r.text);
    agx_feed_close(r.feed);
    fixture_close(&f);
}

TEST(a_purge_waits_for_a_slow_reader_and_then_ends_it)
{
    struct fixture f;
    struct reader r, all;

    fixture_prepare(&f);
    f.config.cleanup_ttl_ns = 1000000;
    f.config.sweep_ms = 150; /* it waits for so many of them: long enough for a busy machine */
    fixture_open_manager(&f);
    make_ready(&f, "box1");
    reader_open(&f, &r, "box1", 0);
    reader_open(&f, &all, NULL, 0);
    (void)ask(&f, "box1", AGX_ON_DELETE);
    UNTIL(&f, phase_of(&f, "box1") == AGX_PHASE_DELETED);
    fixture_settle(&f);
    ASSERT_INT(AGX_PHASE_DELETED, phase_of(&f, "box1"));
    read_all(&r);
    ASSERT_CSTR("box1-1 box1-2 box1-3 box1-4 box1-5", r.text);
    ASSERT_FALSE(r.ended);
    UNTIL(&f, phase_of(&f, "box1") == AGX_PHASE_ABSENT);
    UNTIL(&f, r.ended);
    ASSERT_CODE(AGX_NOT_FOUND, agx_feed_open(f.manager, "box1", 0, &ops, &r, &r.feed, NULL));
    /* Of all: what was purged is gone, and the position stays. */
    read_all(&all);
    ASSERT_CSTR("", all.text);
    make_ready(&f, "box2");
    fixture_settle(&f);
    ASSERT_CSTR("box2-1 box2-2 box2-3", all.text);
    ASSERT_UINT(8, all.last);
    agx_feed_close(r.feed);
    agx_feed_close(all.feed);
    fixture_close(&f);
}

TEST(a_position_is_not_given_twice_when_its_event_was_purged)
{
    struct fixture f;

    fixture_prepare(&f);
    f.config.cleanup_ttl_ns = 1000000;
    fixture_open_manager(&f);
    make_ready(&f, "box1");
    (void)ask(&f, "box1", AGX_ON_DELETE);
    UNTIL(&f, phase_of(&f, "box1") == AGX_PHASE_ABSENT);
    ASSERT_UINT(5, agx_manager_position(f.manager));
    fixture_restart(&f);
    ASSERT_UINT(5, agx_manager_position(f.manager));
    make_ready(&f, "box2");
    ASSERT_UINT(8, agx_manager_position(f.manager));
    fixture_close(&f);
}

TEST(a_thousand_readers_get_an_event_in_one_turn)
{
    enum { READERS = 1000 };
    struct fixture f;
    struct reader *r = calloc(READERS, sizeof(*r)), other;
    struct agx_manager_stats stats;

    fixture_open(&f);
    make_ready(&f, "box1");
    make_ready(&f, "box2");
    reader_open(&f, &other, "box2", 3);
    read_all(&other);
    for (int i = 0; i < READERS; i++) {
        reader_open(&f, &r[i], "box1", 3);
        read_all(&r[i]);
    }
    agx_manager_stats(f.manager, &stats);
    ASSERT_UINT(READERS + 1, stats.feeds);
    f.world->hold[AGX_DO_STOP] = true;
    (void)ask(&f, "box1", AGX_ON_STOP);
    UNTIL(&f, r[0].n_ready == 1);
    for (int i = 0; i < READERS; i++) {
        ASSERT_UINT(1, r[i].n_ready);
        ASSERT_CSTR("box1-4", r[i].text);
        agx_feed_close(r[i].feed);
    }
    ASSERT_UINT(0, other.n_ready);
    agx_feed_close(other.feed);
    free(r);
    fixture_close(&f);
}

TEST(a_reader_may_close_itself_or_others_when_it_is_told)
{
    struct fixture f;
    struct reader r[3];
    struct agx_manager_stats stats;

    fixture_open(&f);
    make_ready(&f, "box1");
    for (int i = 0; i < 3; i++) {
        reader_open(&f, &r[i], "box1", 3);
        read_all(&r[i]);
    }
    (void)ask(&f, "box1", AGX_ON_STOP);
    r[1].feed = agx_feed_close(r[1].feed);
    UNTIL(&f, phase_of(&f, "box1") == AGX_PHASE_STOPPED);
    fixture_settle(&f);
    ASSERT_CSTR("box1-4 box1-5", r[0].text);
    ASSERT_CSTR("box1-4 box1-5", r[2].text);
    agx_manager_stats(f.manager, &stats);
    ASSERT_UINT(2, stats.feeds);
    agx_feed_close(r[0].feed);
    agx_feed_close(r[2].feed);
    fixture_close(&f);
}
