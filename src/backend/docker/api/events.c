/*
 * events.c: the engine's events, requested again whenever they end.
 *
 *     ASKED --answer begins--> UP --it ends--> PAUSED --pause is over--> ASKED
 *       |                                        ^
 *       +---------------- it fails --------------+
 *
 * Invariant: either `call` is set (ASKED, UP) or the timer runs (PAUSED).
 */
#include "backend/docker/api/events.h"

#include "base/mem.h"

#include <time.h>

#include "base/banned.h"

struct agx_docker_events {
    struct agx_docker_engine *engine;
    struct agx_docker_events_config config;
    const struct agx_docker_events_ops *ops;
    void *user;
    char *filters;
    time_t since; /* no event was missed up to then; the host's clock */
    struct agx_docker_call *call;
    uv_timer_t timer;
    uint64_t pause_ms; /* of the next pause */
    uint64_t up_ms;    /* when the current answer began; loop time */
    bool is_up;
    bool told_down; /* since it was last up */
};

static const struct {
    const char *action;
    enum agx_docker_happened what;
} actions[] = {
    { "start", AGX_DOCKER_START },
    { "die", AGX_DOCKER_DIE },
    { "oom", AGX_DOCKER_OOM },
    { "destroy", AGX_DOCKER_DESTROY },
    { "health_status", AGX_DOCKER_HEALTH }, /* "health_status: healthy" */
};

const char *agx_docker_event_get(const struct agx_docker_event *ev, const char *attribute)
{
    return json_string_value(json_object_get(ev->attributes, attribute));
}

/* Only containers with this label, and only these actions. */
static char *filters_new(const char *label)
{
    _cleanup_json_ json_t *filters =
        json_pack("{s:[s],s:[s],s:[]}", "type", "container", "label", label, "event");
    json_t *events = json_object_get(filters, "event");

    for (size_t i = 0; i < AGX_ARRAY_LEN(actions); i++)
        if (json_array_append_new(events, json_string(actions[i].action)) < 0)
            return NULL;
    return json_dumps(filters, JSON_COMPACT);
}

static char *path_new(const struct agx_docker_events *v)
{
    char since[24];

    (void)snprintf(since, sizeof(since), "%lld", (long long)v->since);
    return v->filters ? agx_docker_path("/events?filters=%s&since=%s", v->filters, since) : NULL;
}

static void on_object(void *user, json_t *object)
{
    struct agx_docker_events *v = user;
    const char *action = json_string_value(json_object_get(object, "Action"));
    const json_t *actor = json_object_get(object, "Actor");
    struct agx_docker_event ev = { .container = json_string_value(json_object_get(actor, "ID")),
                                   .attributes = json_object_get(actor, "Attributes") };
    size_t len = action ? strcspn(action, ":") : 0;

    if (!ev.container || !v->ops->event)
        return;
    for (size_t i = 0; i < AGX_ARRAY_LEN(actions); i++) {
        if (!agx_str_eq((struct agx_str){ action, len }, agx_str_from(actions[i].action)))
            continue;
        ev.what = actions[i].what;
        v->ops->event(v->user, &ev);
        return;
    }
}

static void on_begun(void *user)
{
    struct agx_docker_events *v = user;

    v->is_up = true;
    v->told_down = false;
    v->up_ms = uv_now(agx_loop_uv(agx_docker_engine_loop(v->engine)));
    if (v->ops->up)
        v->ops->up(v->user);
}

static void on_timer(uv_timer_t *timer);

/* Takes `error`; NULL: the engine ended the stream, as it does when it stops. */
static void pause_after(struct agx_docker_events *v, struct agx_error *error)
{
    uint64_t now = uv_now(agx_loop_uv(agx_docker_engine_loop(v->engine)));
    bool tell = !v->told_down;

    if (v->is_up && now - v->up_ms >= v->config.stable_ms)
        v->pause_ms = v->config.retry_first_ms;
    if (v->is_up)
        v->since = time(NULL);
    v->is_up = false;
    v->told_down = true;
    (void)uv_timer_start(&v->timer, on_timer, v->pause_ms, 0);
    v->pause_ms = AGX_MIN(2 * v->pause_ms, v->config.retry_max_ms);
    if (!tell || !v->ops->down) {
        agx_error_free(error);
        return;
    }
    if (!error)
        (void)agx_error_set(&error, AGX_UNAVAILABLE, "the Docker Engine ended its events");
    v->ops->down(v->user, error);
}

static void on_done(void *user, const struct agx_docker_answer *answer, struct agx_error *error)
{
    struct agx_docker_events *v = user;

    (void)answer;
    v->call = NULL;
    pause_after(v, error);
}

static int events_ask(struct agx_docker_events *v, struct agx_error **err)
{
    static const struct agx_docker_stream_ops ops = { on_begun, on_object, on_done };
    _cleanup_free_ char *path = path_new(v);

    return agx_docker_stream(
        v->engine,
        &(struct agx_docker_request){ .method = "GET", .path = path, .what = "watch events" }, &ops,
        v, &v->call, err);
}

static void on_timer(uv_timer_t *timer)
{
    struct agx_docker_events *v = container_of(timer, struct agx_docker_events, timer);
    struct agx_error *error = NULL;

    if (events_ask(v, &error) < 0)
        pause_after(v, error);
}

static void events_free(struct agx_docker_events *v)
{
    free(v->filters);
    free(v);
}

int agx_docker_events_open(struct agx_docker_engine *e,
                           const struct agx_docker_events_config *config,
                           const struct agx_docker_events_ops *ops, void *user,
                           struct agx_docker_events **ret_events, struct agx_error **err)
{
    struct agx_docker_events *v = agx_new(struct agx_docker_events);
    int r;

    v->engine = e;
    v->config = *config;
    v->config.label = NULL;
    v->ops = ops;
    v->user = user;
    v->pause_ms = config->retry_first_ms;
    v->filters = filters_new(config->label);
    v->since = time(NULL);
    r = events_ask(v, err);
    if (r < 0) {
        events_free(v);
        return r;
    }
    (void)uv_timer_init(agx_loop_uv(agx_docker_engine_loop(e)), &v->timer); /* never fails */
    *ret_events = v;
    return 0;
}

static void on_timer_closed(uv_handle_t *h)
{
    events_free(container_of((uv_timer_t *)h, struct agx_docker_events, timer));
}

struct agx_docker_events *agx_docker_events_close(struct agx_docker_events *v)
{
    if (!v)
        return NULL;
    agx_docker_cancel(v->call);
    v->call = NULL;
    uv_close((uv_handle_t *)&v->timer, on_timer_closed);
    return NULL;
}
