/* cworker.c: joins libraries, calls and threads. */
#include "worker/cworker.h"

#include "base/mem.h"
#include "worker/fnpool.h"

#include "base/banned.h"

struct agx_cworker {
    struct agx_fnlib *lib;
    struct agx_fnpool *pool;
    struct agx_dispatch *dispatch;
    void *user;
    void (*send)(void *user, enum agx_remote_kind kind, struct agx_str frame, bool wait);
};

static void on_send(void *user, enum agx_remote_kind kind, struct agx_str frame, bool wait)
{
    struct agx_cworker *w = user;

    w->send(w->user, kind, frame, wait);
}

static int on_start(void *user, struct agx_fncall *take_call, struct agx_error **err)
{
    struct agx_cworker *w = user;

    return agx_fnpool_start(w->pool, take_call, err);
}

struct agx_cworker *agx_cworker_new(const struct agx_cworker_config *config)
{
    struct agx_cworker *w = agx_new(struct agx_cworker);
    struct agx_dispatch_io io = { .user = w, .send = on_send, .start = on_start };

    w->user = config->user;
    w->send = config->send;
    w->lib = agx_fnlib_new(config->path);
    w->pool = agx_fnpool_new(w->lib, config->max_threads);
    w->dispatch = agx_dispatch_new(&io);
    return w;
}

struct agx_cworker *agx_cworker_free(struct agx_cworker *w)
{
    if (!w)
        return NULL;
    /* The threads first: one may still be returning from a call. */
    w->pool = agx_fnpool_free(w->pool);
    w->dispatch = agx_dispatch_free(w->dispatch);
    w->lib = agx_fnlib_free(w->lib);
    free(w);
    return NULL;
}

int agx_cworker_frame(struct agx_cworker *w, enum agx_remote_lane lane, struct agx_str frame,
                      uint64_t *ret_grace_ms, struct agx_error **err)
{
    return agx_dispatch_frame(w->dispatch, lane, frame, ret_grace_ms, err);
}

int agx_cworker_parsed(struct agx_cworker *w, enum agx_remote_lane lane,
                       const struct agx_worker_frame *f, struct agx_error **err)
{
    return agx_dispatch_parsed(w->dispatch, lane, f, err);
}

bool agx_cworker_has(struct agx_cworker *w, uint64_t id)
{
    return agx_dispatch_has(w->dispatch, id);
}

size_t agx_cworker_count(struct agx_cworker *w)
{
    return agx_dispatch_count(w->dispatch);
}

void agx_cworker_stop(struct agx_cworker *w)
{
    agx_dispatch_stop(w->dispatch);
}
