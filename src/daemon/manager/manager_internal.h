/*
 * manager_internal.h: the manager's struct, for its files.
 *
 * When a small allocation of the manager fails, the process ends (base/mem.h); an allocation sized
 * by a client is refused instead.
 */
#ifndef AGX_DAEMON_MANAGER_MANAGER_INTERNAL_H
#define AGX_DAEMON_MANAGER_MANAGER_INTERNAL_H

#include "base/list.h"
#include "base/map.h"
#include "daemon/manager/manager.h"
#include "daemon/manager/schema.h"
#include "daemon/manager/sorted_index.h"
#include "daemon/manager/uid_quota.h"
#include "daemon/manager/unit.h"

/* An answer that needs no commit. It must not come inside the request: it waits for a turn. */
struct agx_later {
    struct agx_list_node node;
    agx_answer_fn answer;
    void *user;
    struct agx_error *error;
    enum agx_reason reason;
    char *id;
};

struct agx_manager {
    struct agx_loop *loop;
    struct agx_manager_config config;
    uint64_t boot;             /* identifies the boot in stamps */
    struct agx_map units;      /* by id, including those not born */
    struct agx_map execs;      /* likewise */
    struct agx_map unreadable; /* ids of unreadable records; values unused */
    uint64_t n_unreadable;
    struct agx_sorted_index sandbox_index; /* sandboxes of born units, in list order */
    struct agx_sorted_index exec_index;    /* those of `execs`, by id */
    struct agx_uid_quota uid_quota;
    struct agx_alarms alarms;
    struct agx_logs logs;
    struct agx_pool *accept_pool;
    struct agx_list acceptances; /* of struct agx_acceptance: creates that wait for it */
    /* The turn: what was queued since the last one is done after the loop's next poll. */
    uv_check_t check;
    uv_idle_t spin; /* keeps the loop from sleeping until then */
    bool awake, started;
    struct agx_list dirty; /* of struct agx_unit */
    struct agx_list later; /* of struct agx_later */
    /* The store. */
    uint64_t position, next_position; /* newest committed; newest assigned */
    size_t commits;                   /* in flight */
    bool failing;                     /* the last commit failed */
    struct agx_feeds feeds;
    bool purging;            /* a page of purge.c is on its way */
    unsigned purge_failures; /* in a row */
    struct agx_alarm purge_again;
    /* The backend. */
    struct agx_look *look; /* at all sandboxes */
    uint64_t looks;        /* how many were begun */
    unsigned look_failures;
    bool look_again; /* an event came during a look */
    bool recovered;  /* one look at all sandboxes has succeeded */
    struct agx_alarm look_due;
    struct agx_list writes;   /* of struct agx_write */
    struct agx_list removals; /* of struct agx_removal */
    uint64_t operations, abandoned;
    /* The end. */
    bool closing, ended;
    unsigned n_open; /* pools, then handles */
    agx_done_fn closed;
    void *closed_user;
};

struct agx_stamp agx_manager_now(const struct agx_manager *e);
/* Schedules a run of the queues in this turn. */
void agx_manager_wake(struct agx_manager *e);
void agx_manager_alarm(struct agx_manager *e, struct agx_alarm *a, uint64_t ms,
                       void (*fire)(struct agx_alarm *a));
/* The unit, if readers may see it; else NULL with the error. */
struct agx_unit *agx_manager_unit(struct agx_manager *e, const char *id, struct agx_error **err);

/* Each answers in a later turn. The first takes *take_error. */
/* The daemon is stopping. */
void agx_manager_refuse_stopping(struct agx_manager *e, agx_answer_fn answer, void *user);
void agx_manager_answer_later(struct agx_manager *e, agx_answer_fn answer, void *user,
                              struct agx_error **take_error, enum agx_reason reason,
                              const char *id);
void agx_manager_refuse_later(struct agx_manager *e, agx_answer_fn answer, void *user,
                              enum agx_reason reason, const char *id);

/* Why an exec that is not active cannot be used: it has ended, or there is none. Negative. */
int agx_manager_refuse_exec(struct agx_manager *e, const char *exec_id, enum agx_reason *ret_reason,
                            struct agx_error **err);

/* While closing: takes the next step when nothing is in flight. */
void agx_manager_close_on(struct agx_manager *e);

#endif
