/* stats.c: GetStatsResponse. */
#include "wire/stats.h"

#include "core/spec.h"
#include "wire/pack_internal.h"
#include "wire/unpack_internal.h"

#include "agentix_v1_control.pb-c.h"

#include "base/banned.h"

/* The generated names, shortened. */
typedef Agentix__V1__GetStatsResponse stats_pb;
typedef Agentix__V1__RpcStats rpc_pb;
typedef Agentix__V1__StoreStats store_pb;

/* Both sides of every field that is a plain number. */
#define RPC_FIELDS(do)                                                                             \
    do                                                                                             \
    (connections) do(calls) do(bytes) do(calls_started) do(connections_calmed)
#define STORE_FIELDS(do)                                                                           \
    do                                                                                             \
    (commits) do(batches) do(refused) do(failed) do(bytes) do(group_max) do(map_bytes) do(         \
        file_bytes) do(map_growths)

static void pack_counts(struct agx_pack *p, const struct agx_stats *s, stats_pb *m)
{
    size_t n = 0;

    m->sandboxes = agx_pack_messages(p, &agentix__v1__state_count__descriptor, AGX_STATE_COUNT,
                                     &m->n_sandboxes);
    for (size_t i = 0; i < m->n_sandboxes; i++) {
        if (s->sandboxes[i] == 0)
            continue;
        m->sandboxes[n]->state = (Agbox__V1__SandboxState)i;
        m->sandboxes[n++]->count = s->sandboxes[i];
    }
    m->n_sandboxes = n;
}

int agx_stats_encode(struct agx_buf *out, const struct agx_stats *s)
{
    stats_pb m = AGENTIX__V1__GET_STATS_RESPONSE__INIT;
    rpc_pb rpc = AGENTIX__V1__RPC_STATS__INIT;
    store_pb store = AGENTIX__V1__STORE_STATS__INIT;
    struct agx_pack p;

    agx_pack_init(&p);
    m.version = agx_pack_text(s->version);
    m.uptime = agx_pack_duration(&p, (int64_t)s->uptime_ns);
    m.pid = s->pid;
    m.backend = agx_pack_text(s->backend);
    m.rss_bytes = s->rss_bytes;
    pack_counts(&p, s, &m);
    m.active_execs = s->active_execs;
    m.subscribers = s->subscribers;
#define COPY(field) rpc.field = s->rpc.field;
    RPC_FIELDS(COPY)
#undef COPY
    m.rpc = &rpc;
#define COPY(field) store.field = s->store.field;
    STORE_FIELDS(COPY)
#undef COPY
    m.store = &store;
    m.longest_turn = agx_pack_duration(&p, (int64_t)s->longest_turn_ns);
    return agx_pack(&p, &m.base, out);
}

/* A non-negative duration. */
static int unpack_span(struct agx_unpack *u, const char *field, const Google__Protobuf__Duration *d,
                       uint64_t *ret)
{
    int64_t ns;
    int r = agx_unpack_duration(u, field, d, &ns);

    if (r == 0 && d && ns < 0)
        return agx_unpack_fault(u, field, "is negative");
    if (r == 0)
        *ret = d ? (uint64_t)ns : 0;
    return r;
}

static int view_stats(struct agx_unpack *u, const stats_pb *m, struct agx_stats *s)
{
    int r;

    s->pid = m->pid;
    s->rss_bytes = m->rss_bytes;
    s->active_execs = m->active_execs;
    s->subscribers = m->subscribers;
    for (size_t i = 0; i < m->n_sandboxes; i++)
        if ((uint32_t)m->sandboxes[i]->state < AGX_STATE_COUNT)
            s->sandboxes[m->sandboxes[i]->state] = m->sandboxes[i]->count;
#define COPY(field) s->rpc.field = m->rpc->field;
    if (m->rpc) {
        RPC_FIELDS(COPY)
    }
#undef COPY
#define COPY(field) s->store.field = m->store->field;
    if (m->store) {
        STORE_FIELDS(COPY)
    }
#undef COPY
    if ((r = unpack_span(u, "uptime", m->uptime, &s->uptime_ns)) < 0 ||
        (r = unpack_span(u, "longest_turn", m->longest_turn, &s->longest_turn_ns)) < 0 ||
        (r = agx_unpack_id(u, m->version, &s->version)) < 0)
        return r;
    return agx_unpack_id(u, m->backend, &s->backend);
}

int agx_stats_decode(struct agx_stats *s, struct agx_str bytes, struct agx_error **err)
{
    struct agx_unpack u;
    stats_pb *m;
    int r;

    agx_unpack_init(&u, AGX_INTERNAL, err);
    *s = (struct agx_stats){ 0 };
    r = agx_unpack_message(&u, &agentix__v1__get_stats_response__descriptor, bytes, &m);
    if (r == 0)
        r = view_stats(&u, m, s);
    agx_unpack_done(&u);
    if (r < 0)
        agx_stats_done(s);
    return r;
}

void agx_stats_done(struct agx_stats *s)
{
    free(s->version);
    free(s->backend);
    *s = (struct agx_stats){ 0 };
}
