/* service.c: opens and closes the services, and what their handlers share. */
#include "daemon/service/service_internal.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/uuid.h"
#include "grpc/server.h"
#include "wire/reply.h"

#include <assert.h>

#include "base/banned.h"

/* How much memory the scratch buffer keeps between answers: almost all answers fit. */
enum { SCRATCH_KEEP = 64 << 10 };

static int service_prepare(struct agx_service *s, struct agx_error **err)
{
    struct agx_siphash_key seed;
    int r = agx_random_bytes(&seed, sizeof(seed), err);

    if (r < 0)
        return r;
    agx_map_init(&s->writers, seed);
    if (agx_reply_ping(&s->pong, s->config.version, s->config.name) < 0)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "no memory for a service");
    r = agx_grpc_server_add(s->config.server, agx_service_agbox_methods,
                            agx_service_agbox_methods_len, s, err);
    if (r == 0)
        r = agx_grpc_server_add(s->config.server, agx_service_control_methods,
                                agx_service_control_methods_len, s, err);
    if (r == 0 && s->config.images)
        r = agx_grpc_server_add(s->config.server, agx_service_image_methods,
                                agx_service_image_methods_len, s, err);
    return r;
}

static void service_free(struct agx_service *s)
{
    agx_map_done(&s->writers);
    agx_buf_done(&s->pong);
    agx_buf_done(&s->scratch);
    free(s->streams);
    free(s);
}

int agx_service_open(const struct agx_service_config *config, struct agx_service **ret_service,
                     struct agx_error **err)
{
    struct agx_service *s = agx_new(struct agx_service);
    int r;

    s->config = *config;
    s->started_ns = agx_clock_ns();
    s->pong.max = s->scratch.max = AGX_GRPC_CONN_BYTES_MAX;
    r = service_prepare(s, err);
    if (r < 0) {
        service_free(s);
        return r;
    }
    agx_slices_open(&s->slices, config->loop);
    agx_alarms_open(&s->alarms, config->loop);
    agx_turnwatch_open(&s->turns, config->loop);
    s->n_open = 3;
    *ret_service = s;
    return 0;
}

static void handle_closed(uv_handle_t *h)
{
    struct agx_service *s = h->data;
    agx_done_fn closed = s->closed;
    void *user = s->user;

    if (--s->n_open > 0)
        return;
    service_free(s);
    if (closed)
        closed(user, NULL);
}

void agx_service_close(struct agx_service *s, agx_done_fn closed, void *user)
{
    s->closed = closed;
    s->user = user;
    agx_slices_close(&s->slices, handle_closed, s);
    agx_alarms_close(&s->alarms, handle_closed, s);
    agx_turnwatch_close(&s->turns, handle_closed, s);
}

struct agx_buf *agx_service_scratch(struct agx_service *s)
{
    if (s->scratch.cap > SCRATCH_KEEP)
        agx_buf_done(&s->scratch);
    agx_buf_clear(&s->scratch);
    return &s->scratch;
}

void agx_service_reply(struct agx_service *s, struct agx_grpc_call *call, int r)
{
    if (r < 0)
        agx_service_fail_memory(call);
    else
        agx_grpc_call_reply(call, agx_buf_peek(&s->scratch));
}

int agx_service_put_sandbox(const struct agx_service *s, struct agx_buf *out,
                            const struct agx_sandbox *sb)
{
    return agx_reply_sandbox(out, sb, s->config.compat);
}

/* A user's counter, by linear search: users are few. */
static struct agx_uid_count *count_of(struct agx_service *s, uid_t uid)
{
    for (size_t i = 0; i < s->streams_len; i++) {
        if (s->streams[i].uid == uid)
            return &s->streams[i];
    }
    return NULL;
}

static struct agx_uid_count *count_add(struct agx_service *s, uid_t uid)
{
    struct agx_uid_count *more = realloc(s->streams, (s->streams_len + 1) * sizeof(*more));

    if (!more)
        return NULL;
    s->streams = more;
    more += s->streams_len++;
    *more = (struct agx_uid_count){ .uid = uid };
    return more;
}

int agx_service_stream_begin(struct agx_service *s, const struct agx_grpc_call *call,
                             struct agx_error **err)
{
    uid_t uid = agx_grpc_call_peek_peer(call)->uid;
    uint32_t max = s->config.subscribers_per_uid;
    struct agx_uid_count *c = count_of(s, uid);

    if (!c)
        c = count_add(s, uid);
    if (!c)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "no memory for a stream");
    if (max > 0 && c->n >= max)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED,
                             "user %u has %u event streams and waits already (%s)", uid, c->n,
                             s->config.subscribers_key);
    c->n++;
    return 0;
}

void agx_service_stream_end(struct agx_service *s, uid_t uid)
{
    struct agx_uid_count *c = count_of(s, uid);

    assert(c && c->n > 0);
    if (--c->n == 0)
        *c = s->streams[--s->streams_len];
}
