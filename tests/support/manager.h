/*
 * manager.h: a manager in tests: a store in memory, a scripted backend, short spans, and a loop
 * that the test turns until something holds.
 */
#ifndef AGX_TESTS_MANAGER_H
#define AGX_TESTS_MANAGER_H

#include "daemon/manager/manager.h"
#include "daemon/manager/schema.h"
#include "store/store_mem.h"
#include "tests/support/core.h"
#include "tests/support/loop.h"
#include "tests/support/world.h"

/* The answer to a request. */
struct reply {
    uint64_t sequence; /* of the sandbox in the answer, like the phase */
    enum agx_phase phase;
    unsigned n; /* number of answers */
    enum agx_code code;
    enum agx_reason reason;
    char reason_id[256], text[600];
    char id[AGX_IDENT_MAX + 1];
    char exec_id[AGX_IDENT_MAX + 1], out_path[512], err_path[512];
};

struct fixture {
    struct agx_loop *loop;
    uv_timer_t keep;
    struct agx_store *store;
    struct world *world;
    struct agx_manager_config config;
    struct agx_manager *manager;
    char dir[64]; /* of the logs */
};

void fixture_open(struct fixture *f);
/* The same, without opening the manager: the test may change `config` first. */
void fixture_prepare(struct fixture *f);
void fixture_open_manager(struct fixture *f);
/* Closes manager and backend; the store and the world stay. */
void fixture_close_manager(struct fixture *f);
void fixture_restart(struct fixture *f);
void fixture_close(struct fixture *f);

void fixture_turn(struct fixture *f);
/* Turns the loop once; fails the test if waiting for `what` takes too long. */
void fixture_turn_for(struct fixture *f, unsigned *turns, const char *what);
#define UNTIL(f, condition)                                                                        \
    do {                                                                                           \
        unsigned turns_ = 0;                                                                       \
        while (!(condition))                                                                       \
            fixture_turn_for((f), &turns_, #condition);                                            \
    } while (0)
/* Runs long enough for all pending work, with the fixture's times. */
void fixture_settle(struct fixture *f);

void reply_note(void *user, const struct agx_answer *a);

/* Makes a request and waits for its answer. `id` NULL: without an id. */
struct reply ask_create(struct fixture *f, const char *id);
struct reply ask(struct fixture *f, const char *id, enum agx_on on);
struct reply ask_exec(struct fixture *f, const char *sandbox_id, const char *exec_id);
struct reply ask_cancel(struct fixture *f, const char *exec_id);
/* The same without waiting. */
void send_create(struct fixture *f, const char *id, struct reply *r);
void send_exec(struct fixture *f, const char *sandbox_id, const char *exec_id, int64_t deadline_ns,
               struct reply *r);

/* The state that readers see; ABSENT: no such sandbox. */
enum agx_phase phase_of(struct fixture *f, const char *id);
uint64_t sequence_of(struct fixture *f, const char *id);
/* NONE: there is no such exec. */
enum agx_exec_state exec_state_of(struct fixture *f, const char *exec_id);
/* Makes a sandbox and waits until it is READY. */
void make_ready(struct fixture *f, const char *id);

/*
 * The stored events of a sandbox, as "1 ACCEPTED, 2 PREPARING, ...", checked: from 1 without a gap,
 * each with a position that rises.
 */
const char *events_of(struct fixture *f, const char *id);
/* The number under which the store has the sandbox. */
uint64_t number_of(struct fixture *f, const char *id);

#endif
