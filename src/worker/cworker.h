/*
 * cworker.h: everything that runs C functions, behind a few functions: for the program
 * agentix-worker, and for a Python worker that meets a "c:" target.
 *
 *     w = agx_cworker_new(&config);
 *     a frame with a "c:" target, or with an id for which agx_cworker_has():
 *         r = agx_cworker_frame(w, lane, frame, &grace_ms, err);      never blocks, nor does
 *         r = agx_cworker_parsed(w, lane, &f, err);
 *     config.send(user, kind, frame, wait)                            from any thread
 *     agx_cworker_stop(w);    cancel; wait until agx_cworker_count() is 0, or leave with _exit()
 *     agx_cworker_free(w);
 */
#ifndef AGX_WORKER_CWORKER_H
#define AGX_WORKER_CWORKER_H

#include "worker/dispatch.h"

struct agx_cworker_config {
    struct agx_str path;  /* directories of shared objects, separated by ':'; copied */
    unsigned max_threads; /* AGX_FN_THREADS_MAX */
    void *user;
    /*
     * A frame with its prefix, to be written to the server whole. `wait`: it comes from a thread of
     * a function, which may be held back until the server has taken what is queued; otherwise from
     * the thread that brought us a frame, which may not.
     */
    void (*send)(void *user, enum agx_remote_kind kind, struct agx_str frame, bool wait);
};

struct agx_cworker;

struct agx_cworker *agx_cworker_new(const struct agx_cworker_config *config);
/* Requires that all calls have ended. Waits for the threads. */
struct agx_cworker *agx_cworker_free(struct agx_cworker *w);

/* As agx_dispatch_frame(). One thread at a time for each lane. */
int agx_cworker_frame(struct agx_cworker *w, enum agx_remote_lane lane, struct agx_str frame,
                      uint64_t *ret_grace_ms, struct agx_error **err) AGX_MUST_CHECK;
/* As agx_dispatch_parsed(). */
int agx_cworker_parsed(struct agx_cworker *w, enum agx_remote_lane lane,
                       const struct agx_worker_frame *f, struct agx_error **err) AGX_MUST_CHECK;

bool agx_cworker_has(struct agx_cworker *w, uint64_t id);
size_t agx_cworker_count(struct agx_cworker *w);
/* Cancels every call. */
void agx_cworker_stop(struct agx_cworker *w);

#endif
