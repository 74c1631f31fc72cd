/*
 * engine.c: one Docker Engine, and the API version that is used with it.
 *
 *     version 0 --first call--> ping --answer--> version 1.x --connection lost--> version 0
 *                                 |
 *                                 +--no answer, too old--> waiting calls fail; version 0
 *
 * An engine that comes back may be another one, so the version is negotiated again.
 *
 * Invariants:
 *  (1) a ping is in progress exactly while calls wait for it;
 *  (2) a user's callback is the last thing that a function here does, or the engine is pinned.
 */
#include "backend/docker/api/engine_internal.h"

#include <assert.h>

#include "base/banned.h"

static int parse_version(struct agx_str text, unsigned *ret_minor)
{
    uint64_t minor;

    if (!agx_str_starts(text, AGX_STR("1.")) || !agx_parse_u64(agx_str_skip(text, 2), 999, &minor))
        return -AGX_INVALID_ARGUMENT;
    *ret_minor = (unsigned)minor;
    return 0;
}

static int too_old(const struct agx_docker_engine *e, unsigned version, struct agx_error **err)
{
    return agx_error_set(err, AGX_FAILED_PRECONDITION,
                         "Docker Engine API 1.%u at '%s' is too old: Docker 20.10 (API 1.%u) or "
                         "newer is needed",
                         version, e->endpoint.host, AGX_DOCKER_API_OLDEST);
}

static int set_fixed(struct agx_docker_engine *e, const char *text, struct agx_error **err)
{
    if (!text || !*text)
        return 0;
    if (parse_version(agx_str_from(text), &e->fixed) < 0)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "Docker API version '%s' is not 1.x", text);
    if (e->fixed < AGX_DOCKER_API_OLDEST)
        return too_old(e, e->fixed, err);
    e->version = e->fixed;
    return 0;
}

static void copy_where(struct agx_engine_endpoint *to, const struct agx_engine_endpoint *from)
{
    *to = (struct agx_engine_endpoint){ .host = docker_dup(from->host),
                                        .unix_socket = docker_dup(from->unix_socket),
                                        .base = docker_dup(from->base),
                                        .ca_file = docker_dup(from->ca_file),
                                        .cert_file = docker_dup(from->cert_file),
                                        .key_file = docker_dup(from->key_file),
                                        .insecure = from->insecure,
                                        .is_local = from->is_local };
}

static void engine_free(struct agx_docker_engine *e)
{
    agx_engine_endpoint_done(&e->endpoint);
    free(e);
}

int agx_docker_engine_open(struct agx_loop *l, const struct agx_docker_engine_config *config,
                           struct agx_docker_engine **ret_engine, struct agx_error **err)
{
    struct agx_fetch_config fetch = AGX_FETCH_CONFIG_INIT;
    struct agx_docker_engine *e = agx_new(struct agx_docker_engine);
    int r;

    e->loop = l;
    e->config = *config;
    copy_where(&e->endpoint, config->endpoint);
    fetch.endpoint = (struct agx_fetch_endpoint){ .unix_socket = e->endpoint.unix_socket,
                                                  .base = e->endpoint.base,
                                                  .ca_file = e->endpoint.ca_file,
                                                  .cert_file = e->endpoint.cert_file,
                                                  .key_file = e->endpoint.key_file,
                                                  .insecure = e->endpoint.insecure };
    r = set_fixed(e, config->api_version, err);
    if (r == 0)
        r = agx_fetch_open(l, &fetch, &e->fetch, err);
    if (r < 0) {
        engine_free(e);
        return r;
    }
    *ret_engine = e;
    return 0;
}

static struct docker_wait *first_waiting(const struct agx_docker_engine *e)
{
    return AGX_LIST_FIRST(&e->waiting, struct docker_wait, node);
}

struct agx_docker_engine *agx_docker_engine_close(struct agx_docker_engine *e)
{
    struct docker_wait *w;

    if (!e)
        return NULL;
    assert(!e->closed);
    e->closed = true;
    while ((w = first_waiting(e)))
        w->kind->drop(w);
    while ((w = AGX_LIST_FIRST(&e->running, struct docker_wait, node)))
        w->kind->drop(w);
    e->fetch = agx_fetch_close(e->fetch);
    if (e->pins == 0)
        engine_free(e);
    return NULL;
}

struct agx_loop *agx_docker_engine_loop(const struct agx_docker_engine *e)
{
    return e->loop;
}

char *docker_versioned(const struct agx_docker_engine *e, const char *path)
{
    char *all = NULL;

    assert(e->version > 0);
    return asprintf(&all, "/v1.%u%s", e->version, path) < 0 ? NULL : all;
}

/* ---- who waits ---- */

void docker_wait_end(struct docker_wait *w)
{
    struct agx_docker_engine *e = w->engine;

    agx_list_remove(&w->node);
    if (first_waiting(e) || !e->ping)
        return;
    agx_fetch_cancel(e->ping); /* no call waits for it any more */
    e->ping = NULL;
}

static void wake_one(struct docker_wait *w, const struct agx_error *error)
{
    struct agx_error *why = error ? agx_error_dup(error) : NULL;

    agx_list_remove(&w->node);
    agx_list_push_front(&w->engine->running, &w->node);
    if (error || w->kind->go(w, &why) < 0)
        w->kind->fail(w, why);
}

static int version_of(struct agx_docker_engine *e, const struct agx_fetch_answer *answer,
                      struct agx_error **err)
{
    const char *text = agx_fetch_answer_header(answer, "API-Version");
    unsigned version;

    if (answer->status != 200)
        return docker_refused(answer->status, answer->body, err);
    if (!text || parse_version(agx_str_from(text), &version) < 0)
        return agx_error_set(err, AGX_DATA_LOSS,
                             "'%s' does not say which version of Docker's API it has",
                             e->endpoint.host);
    if (version < AGX_DOCKER_API_OLDEST)
        return too_old(e, version, err);
    e->version = AGX_MIN(version, (unsigned)AGX_DOCKER_API_NEWEST);
    return 0;
}

static void on_ping(void *user, const struct agx_fetch_answer *answer, struct agx_error *error);

static int ping(struct agx_docker_engine *e, struct agx_error **err)
{
    return agx_fetch_start(e->fetch,
                           &(struct agx_fetch_request){ .method = "GET",
                                                        .path = "/_ping",
                                                        .connect_ms = e->config.connect_ms,
                                                        .deadline_ms = AGX_DOCKER_PING_MS,
                                                        .done = on_ping },
                           e, &e->ping, err);
}

/* Wakes all that waited for the ping that has ended. Calls made meanwhile wait for the next one. */
static void engine_wake(struct agx_docker_engine *e, struct agx_error *error)
{
    struct agx_error *why = NULL;
    struct docker_wait *w;

    e->pins++;
    e->waking = true;
    e->round++;
    while (!e->closed && (w = first_waiting(e)) && w->round != e->round)
        wake_one(w, error);
    e->waking = false;
    agx_error_free(error);
    if (!e->closed && first_waiting(e) && ping(e, &why) < 0)
        engine_wake(e, why);
    if (--e->pins == 0 && e->closed)
        engine_free(e);
}

static void on_ping(void *user, const struct agx_fetch_answer *answer, struct agx_error *error)
{
    struct agx_docker_engine *e = user;
    struct agx_error *why = NULL;

    e->ping = NULL;
    if (error)
        (void)docker_unreached(e, &error, &why);
    else
        (void)!version_of(e, answer, &why);
    engine_wake(e, why);
}

int docker_wait_start(struct docker_wait *w, struct agx_error **err)
{
    struct agx_docker_engine *e = w->engine;
    int r;

    agx_loop_assert(e->loop);
    assert(!e->closed);
    if (e->version > 0) {
        agx_list_push_front(&e->running, &w->node);
        r = w->kind->go(w, err);
        if (r < 0)
            agx_list_remove(&w->node);
        return r;
    }
    if (!e->ping && !e->waking) {
        r = ping(e, err);
        if (r < 0)
            return r;
    }
    w->round = e->round;
    agx_list_push_back(&e->waiting, &w->node);
    return 0;
}
