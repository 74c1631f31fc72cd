/*
 * health.c: grpc.health.v1.Health.
 *
 * A watcher gets the current status when it can take a message: quick successive changes are sent
 * as one.
 */
#include "grpc/health.h"

#include "base/list.h"
#include "base/map.h"
#include "base/uuid.h"
#include "grpc/server.h"
#include "wire/health_wire.h"

#include "base/banned.h"

enum { RESPONSE_MAX = 16 };

struct watcher {
    struct agx_grpc_health *health;
    struct agx_grpc_call *call;
    char *service;        /* owned */
    enum agx_health told; /* the last status that was sent */
    bool told_any, full;  /* `full`: there has to be a pause */
    struct agx_list_node node;
};

struct agx_grpc_health {
    struct agx_map services;  /* name -> a value of `states` */
    struct agx_list watchers; /* of struct watcher */
};

/* The map's values point here. */
static const enum agx_health states[] = { AGX_HEALTH_NOT_SERVING, AGX_HEALTH_SERVING };

static enum agx_health status_of(const struct agx_grpc_health *h, const char *service)
{
    const enum agx_health *state = agx_map_get(&h->services, agx_str_from(service));

    return state ? *state : AGX_HEALTH_SERVICE_UNKNOWN;
}

static void health_check(void *service, struct agx_grpc_call *call, struct agx_str request)
{
    struct agx_grpc_health *h = service;
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(RESPONSE_MAX);
    _cleanup_free_ char *name = NULL;
    struct agx_error *err = NULL;
    enum agx_health status;
    int r = agx_health_request_decode(request, &name, &err);

    if (r == 0) {
        status = status_of(h, name);
        if (status == AGX_HEALTH_SERVICE_UNKNOWN)
            r = agx_error_set(&err, AGX_NOT_FOUND, "unknown service '%.200s'", name);
        else if (agx_health_response_encode(&out, status) < 0)
            r = agx_error_set(&err, AGX_RESOURCE_EXHAUSTED, "no memory for an answer");
    }
    if (r < 0)
        agx_grpc_call_fail(call, &err);
    else
        agx_grpc_call_reply(call, agx_buf_peek(&out));
}

static void watcher_free(struct watcher *w)
{
    agx_list_remove(&w->node);
    free(w->service);
    free(w);
}

static void health_tell(struct watcher *w)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(RESPONSE_MAX);
    enum agx_health status = status_of(w->health, w->service);
    int r;

    if (w->full || (w->told_any && w->told == status))
        return;
    r = agx_health_response_encode(&out, status);
    if (r == 0)
        r = agx_grpc_call_send(w->call, agx_buf_peek(&out));
    if (r < 0) {
        agx_grpc_call_finish(w->call, &(struct agx_grpc_status){
                                          .code = AGX_RESOURCE_EXHAUSTED,
                                          .message = AGX_STR("no room for the next status") });
        watcher_free(w);
        return;
    }
    w->full = r > 0;
    w->told = status;
    w->told_any = true;
}

static void on_ended(void *user, enum agx_code code)
{
    (void)code;
    watcher_free(user);
}

static void on_writable(void *user)
{
    struct watcher *w = user;

    w->full = false;
    health_tell(w);
}

static const struct agx_grpc_call_ops watch_ops = { .ended = on_ended, .writable = on_writable };

static void health_watch(void *service, struct agx_grpc_call *call, struct agx_str request)
{
    struct agx_grpc_health *h = service;
    struct watcher *w = calloc(1, sizeof(*w));
    struct agx_error *err = NULL;

    int r = w ? agx_health_request_decode(request, &w->service, &err)
              : agx_error_set(&err, AGX_RESOURCE_EXHAUSTED, "no memory for a watcher");

    if (r < 0) {
        free(w);
        agx_grpc_call_fail(call, &err);
        return;
    }
    w->health = h;
    w->call = call;
    agx_list_push_front(&h->watchers, &w->node);
    agx_grpc_call_watch(call, &watch_ops, w);
    health_tell(w);
}

static const struct agx_grpc_method methods[] = {
    { "/grpc.health.v1.Health/Check", AGX_GRPC_UNARY, false, health_check },
    { "/grpc.health.v1.Health/Watch", AGX_GRPC_SERVER_STREAM, true, health_watch },
};

int agx_grpc_health_new(struct agx_grpc_server *s, struct agx_grpc_health **ret_health,
                        struct agx_error **err)
{
    struct agx_grpc_health *h = calloc(1, sizeof(*h));
    struct agx_siphash_key seed;
    int r;

    if (!h)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "no memory for the health service");
    r = agx_random_bytes(&seed, sizeof(seed), err);
    if (r == 0) {
        agx_map_init(&h->services, seed);
        r = agx_grpc_health_set(h, AGX_STR(""), true, err);
    }
    if (r == 0)
        r = agx_grpc_server_add(s, methods, AGX_ARRAY_LEN(methods), h, err);
    if (r < 0) {
        (void)agx_grpc_health_free(h);
        return r;
    }
    *ret_health = h;
    return 0;
}

int agx_grpc_health_set(struct agx_grpc_health *h, struct agx_str service, bool serving,
                        struct agx_error **err)
{
    void *state = (void *)&states[serving];

    if (agx_map_put(&h->services, service, state, NULL) < 0)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "no memory for a service's health");
    AGX_LIST_FOR_EACH (struct watcher, w, &h->watchers, node)
        health_tell(w);
    return 0;
}

struct agx_grpc_health *agx_grpc_health_free(struct agx_grpc_health *h)
{
    if (h)
        agx_map_done(&h->services);
    free(h);
    return NULL;
}
