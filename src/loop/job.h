/*
 * job.h: blocking work on threads, in bounded pools.
 *
 * Each kind of slow work has its own pool, so that stuck work stops no other kind. A job owns all
 * its data (copies of inputs, room for the result): `run` accesses only the job and nothing of the
 * loop's. Embed struct agx_job and recover the whole with container_of().
 */
#ifndef AGX_LOOP_JOB_H
#define AGX_LOOP_JOB_H

#include "base/list.h"
#include "loop/loop.h"

struct agx_job;
struct agx_pool;

struct agx_job_kind {
    const char *name; /* for messages: "copy" */
    /* Pool thread. The work; may block. */
    int (*run)(struct agx_job *j, struct agx_error **err);
    /* Loop thread, once, never inside agx_job_start(). The callee owns `error` and may free the job
     * or start it again. A job cancelled before its turn has -AGX_CANCELLED and did not run. */
    void (*done)(struct agx_job *j, struct agx_error *error);
    /* Loop thread, while `run` is running: asks it to end early (sets an atomic flag, writes to an
     * eventfd). At most once. NULL: it cannot. */
    void (*cancel)(struct agx_job *j);
};

struct agx_job {
    const struct agx_job_kind *kind;
    /* For the pool. */
    struct agx_pool *pool;
    struct agx_list_node node; /* in `queue` or `finished` of the pool */
    enum { AGX_JOB_IDLE, AGX_JOB_QUEUED, AGX_JOB_RUNNING, AGX_JOB_FINISHED } state;
    bool cancelled;
    struct agx_error *error;
};

struct agx_pool_config {
    const char *name; /* of the pool and, cut to 15 bytes, of its threads */
    unsigned threads;
    size_t max_queued; /* jobs that may wait for a thread */
};

int agx_pool_open(struct agx_loop *l, const struct agx_pool_config *c, struct agx_pool **ret_pool,
                  struct agx_error **err) AGX_MUST_CHECK;

/*
 * Ends the pool: waiting jobs end with AGX_CANCELLED, running ones are asked to end. `stopped` runs
 * when all are done and the pool is freed. Its error (AGX_DEADLINE_EXCEEDED) names jobs that did
 * not end within `deadline_ms`. They are given up: their `done` is never called, and they and their
 * threads are left alone, since they may still use their memory.
 */
void agx_pool_stop(struct agx_pool *p, uint64_t deadline_ms, agx_done_fn stopped, void *user);

/* Loop thread. `kind` must be set, and the job must live until `done`. -AGX_RESOURCE_EXHAUSTED when
 * max_queued jobs already wait, -AGX_UNAVAILABLE when the pool is stopping; then `done` is not
 * called. */
int agx_job_start(struct agx_job *j, struct agx_pool *p, struct agx_error **err) AGX_MUST_CHECK;

/* Loop thread. A waiting job will not run; a running one is asked to end; `done` follows in both
 * cases. No effect on a job that is not started or has ended. */
void agx_job_cancel(struct agx_job *j);

#endif
