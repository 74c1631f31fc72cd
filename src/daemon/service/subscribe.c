/*
 * subscribe.c: event streams: of one sandbox (SubscribeSandboxEvents), or of all (WatchEvents).
 *
 *     FIRST --all sent--> FOLLOW --purged--> OK
 *       |                    |
 *       +--- error, client leaves, server stops ---> end
 *
 * FIRST sends the messages made at the stream's begin: a snapshot, or the start of a watch.
 * A stream then pulls events from its feed while its client reads them. A client that does not read
 * is left alone and costs only its entry in the feed. At most AGX_FEED_PAGE events are sent in one
 * go, the rest in slices, so a long history does not delay others.
 */
#include "daemon/service/service_internal.h"

#include "base/clock.h"
#include "base/mem.h"
#include "core/label.h"
#include "wire/control_request.h"
#include "wire/reply.h"

#include "base/banned.h"

/* Messages sent before the events, and whether events follow. */
struct first {
    struct agx_buf bytes; /* each message is preceded by its length (size_t) */
    size_t at;
    struct agx_error *error; /* ends the stream; NULL: events follow */
    struct agx_refusal why;
    char id[AGX_IDENT_MAX + 1]; /* of `why` */
};

/* The filter of a WatchEvents. */
struct filter {
    struct agx_pairs selector;
    struct agx_words sandbox_ids;
    uint32_t skipped; /* events since the last message */
};

/* Keep this small: there may be ten thousand, most of them idle. */
struct stream {
    struct agx_service *service;
    struct agx_grpc_call *call;
    struct agx_feed *feed;
    struct first *first;   /* NULL: all were sent */
    struct filter *filter; /* NULL: a stream of one sandbox */
    struct agx_slice slice;
    uid_t uid;
    bool full; /* the client must read first */
};

static void first_free(struct first *f)
{
    if (!f)
        return;
    agx_buf_done(&f->bytes);
    agx_error_free(f->error);
    free(f);
}

static void filter_free(struct filter *f)
{
    if (!f)
        return;
    agx_pairs_done(&f->selector);
    agx_words_done(&f->sandbox_ids);
    free(f);
}

static void stream_free(struct stream *t)
{
    agx_slices_remove(&t->service->slices, &t->slice);
    t->feed = agx_feed_close(t->feed);
    agx_service_stream_end(t->service, t->uid);
    first_free(t->first);
    filter_free(t->filter);
    free(t);
}

static void stream_fail(struct stream *t, struct agx_error **take_error,
                        const struct agx_refusal *why)
{
    agx_service_fail(t->call, take_error, why);
    stream_free(t);
}

/* 1: sent, or filtered out; 0: the client must read first; negative: the stream has ended. */
static int stream_send(struct stream *t, struct agx_str message)
{
    struct agx_error *err = NULL;
    int r = agx_grpc_call_send(t->call, message);

    if (r < 0) {
        (void)agx_error_set(&err, AGX_RESOURCE_EXHAUSTED,
                            "too much data is queued on this connection to send an event");
        stream_fail(t, &err, &(struct agx_refusal){ 0 });
        return -1;
    }
    t->full = r > 0;
    return !t->full;
}

/* Sends the messages that precede the events. Returns as stream_send() does. */
static int send_first(struct stream *t)
{
    struct first *f = t->first;
    int r = 1;

    while (r > 0 && f->at < f->bytes.len) {
        size_t len;

        memcpy(&len, f->bytes.data + f->at, sizeof(len));
        f->at += sizeof(len) + len;
        r = stream_send(t, agx_str_bytes(f->bytes.data + f->at - len, len));
    }
    if (r < 0 || f->at < f->bytes.len)
        return r;
    if (f->error) {
        stream_fail(t, &f->error, &f->why);
        return -1;
    }
    first_free(f);
    t->first = NULL;
    return r;
}

static bool is_wanted(struct stream *t, const char *sandbox_id)
{
    const struct agx_sandbox *sb;

    if (t->filter->sandbox_ids.len > 0 && !agx_words_has(&t->filter->sandbox_ids, sandbox_id))
        return false;
    if (t->filter->selector.len == 0)
        return true;
    return agx_manager_find(t->service->config.manager, sandbox_id, &sb, NULL) == 0 &&
           agx_label_match(&sb->spec.labels, &t->filter->selector);
}

/* Sends one event of a watch. Returns as stream_send() does. */
static int send_watched(struct stream *t, const struct agx_feed_item *item)
{
    struct agx_buf *out = agx_service_scratch(t->service);
    const struct agx_event *event = is_wanted(t, item->sandbox_id) ? item->event : NULL;
    struct agx_error *err = NULL;

    /* A message now and then tells the client up to which position it has seen everything. */
    if (!event && ++t->filter->skipped < AGX_WATCH_SKIP_MAX)
        return 1;
    t->filter->skipped = 0;
    if (agx_reply_watch(out, item->position, event, item->sandbox_id) < 0) {
        (void)agx_error_set(&err, AGX_RESOURCE_EXHAUSTED, "no memory for an event");
        stream_fail(t, &err, &(struct agx_refusal){ 0 });
        return -1;
    }
    return stream_send(t, agx_buf_peek(out));
}

/* Sends as much as the client and fairness allow. */
static void subscribe_pump(struct stream *t)
{
    struct agx_error *err = NULL;
    struct agx_feed_item item;
    int r = t->full ? 0 : t->first ? send_first(t) : 1;

    for (unsigned n = 0; r > 0 && n < AGX_FEED_PAGE; n++) {
        int got = agx_feed_next(t->feed, &item, &err);

        if (got == 0)
            return; /* `ready` follows */
        if (got < 0) {
            stream_fail(t, &err, &(struct agx_refusal){ 0 });
            return;
        }
        if (got == AGX_FEED_END) {
            agx_grpc_call_finish(t->call, &(struct agx_grpc_status){ .code = AGX_OK });
            stream_free(t);
            return;
        }
        r = t->filter ? send_watched(t, &item) : stream_send(t, item.encoded);
    }
    if (r > 0)
        agx_slices_add(&t->service->slices, &t->slice);
}

static void run_slice(struct agx_slice *slice)
{
    subscribe_pump(container_of(slice, struct stream, slice));
}

static void on_ready(void *user)
{
    subscribe_pump(user);
}

static void on_writable(void *user)
{
    struct stream *t = user;

    t->full = false;
    subscribe_pump(t);
}

static void on_ended(void *user, enum agx_code code)
{
    (void)code;
    stream_free(user);
}

/* Progress is dropped while the client is behind: it is of use only while it is new. */
static void on_pull(void *user, uint64_t position, const char *sandbox_id,
                    const struct agx_pull *pull)
{
    struct stream *t = user;
    struct agx_buf *out = agx_service_scratch(t->service);

    if (!t->full && !t->first && is_wanted(t, sandbox_id) &&
        agx_reply_pull(out, position, sandbox_id, pull) == 0)
        (void)stream_send(t, agx_buf_peek(out));
}

static const struct agx_feed_ops feed_ops = { .ready = on_ready };
static const struct agx_feed_ops watch_ops = { .ready = on_ready, .pull = on_pull };
static const struct agx_grpc_call_ops stream_ops = { .ended = on_ended, .writable = on_writable };

/* Makes a stream and counts it for its user. */
static int stream_new(struct agx_service *s, struct agx_grpc_call *call, struct stream **ret,
                      struct agx_error **err)
{
    struct stream *t;
    int r = agx_service_stream_begin(s, call, err);

    if (r < 0)
        return r;
    t = agx_new(struct stream);
    t->service = s;
    t->call = call;
    t->uid = agx_grpc_call_peek_peer(call)->uid;
    t->slice.run = run_slice;
    *ret = t;
    return 0;
}

static void stream_start(struct stream *t)
{
    agx_grpc_call_watch(t->call, &stream_ops, t);
    agx_grpc_call_begin(t->call); /* the client learns that it is subscribed */
    subscribe_pump(t);
}

/* Adds a message that precedes the events. */
static int first_event(struct first *f, const struct agx_event *e, const char *sandbox_id)
{
    size_t at = f->bytes.len, len = 0;
    int r = agx_buf_append(&f->bytes, agx_str_bytes(&len, sizeof(len)));

    if (r == 0)
        r = agx_reply_event(&f->bytes, e, sandbox_id, true);
    if (r < 0)
        return r;
    len = f->bytes.len - at - sizeof(len);
    memcpy(f->bytes.data + at, &len, sizeof(len));
    return 0;
}

/* For a feed that is closed again at once. */
static const struct agx_feed_ops quiet_ops;

/* The inputs of a snapshot. */
struct snapshot {
    struct first *first;
    const struct agx_sandbox *sandbox;
    int64_t now_ns;
    int r;
};

static int snapshot_exec(void *user, const struct agx_exec *exec, uint64_t sequence)
{
    struct snapshot *p = user;
    struct agx_event e = { 0 };

    (void)sequence;
    p->r = agx_event_snapshot_exec(&e, exec->id, p->sandbox->life.last_sequence,
                                   agx_sandbox_state(p->sandbox), p->now_ns, NULL);
    if (p->r == 0)
        p->r = first_event(p->first, &e, p->sandbox->id);
    agx_event_done(&e);
    return p->r < 0;
}

/* Repeats the newest event, then adds one event for each running exec. */
static int make_snapshot(struct stream *t, const struct agx_sandbox *sb, struct agx_error **err)
{
    struct agx_manager *manager = t->service->config.manager;
    struct snapshot p = { .first = t->first, .sandbox = sb, .now_ns = agx_clock_wall_ns() };
    const char *id = sb->id;
    struct agx_feed *newest = NULL;
    struct agx_feed_item item;
    int r = agx_feed_open(manager, id, sb->life.last_sequence - 1, &quiet_ops, NULL, &newest, err);

    if (r < 0)
        return r;
    r = agx_feed_next(newest, &item, err);
    if (r == 1)
        p.r = first_event(t->first, item.event, id);
    newest = agx_feed_close(newest);
    if (r < 0)
        return r;
    if (p.r == 0)
        agx_manager_exec_list(manager, id, NULL, snapshot_exec, &p);
    return p.r < 0 ? agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "no memory for a snapshot") : 0;
}

static struct first *first_new(void)
{
    struct first *f = agx_new(struct first);

    f->bytes.max = AGX_GRPC_CONN_BYTES_MAX;
    return f;
}

/* Everything up to the first message. If a snapshot is wanted, a sequence that does not exist
 * yet is refused after it. */
static int subscribe_prepare(struct stream *t, const struct agx_subscribe_request *q,
                             const struct agx_sandbox *sb, struct agx_refusal *why,
                             struct agx_error **err)
{
    const char *id = sb->id;
    int r;

    if (q->snapshot) {
        t->first = first_new();
        r = make_snapshot(t, sb, err);
        if (r < 0)
            return r;
    }
    r = agx_event_check_from(id, sb->life.last_sequence, q->from_sequence,
                             t->first ? &t->first->error : err);
    if (r == 0)
        return agx_feed_open(t->service->config.manager, id, q->from_sequence, &feed_ops, t,
                             &t->feed, err);
    *why = (struct agx_refusal){ .reason = AGX_REASON_SEQUENCE_EXPIRED,
                                 .id = id,
                                 .from_sequence = q->from_sequence };
    if (!t->first)
        return r;
    memcpy(t->first->id, id, AGX_MIN(strlen(id), sizeof(t->first->id) - 1));
    t->first->why = *why;
    t->first->why.id = t->first->id;
    return 0;
}

void agx_service_subscribe(void *service, struct agx_grpc_call *call, struct agx_str request)
{
    struct agx_service *s = service;
    struct agx_subscribe_request q;
    struct agx_refusal why = { .reason = AGX_REASON_NONE };
    struct agx_error *err = NULL;
    const struct agx_sandbox *sb = NULL;
    struct stream *t = NULL;
    int r = agx_subscribe_request_decode(&q, request, &err);

    if (r < 0) {
        agx_service_fail(call, &err, &why);
        return;
    }
    r = agx_manager_find(s->config.manager, q.sandbox_id, &sb, &err);
    if (r < 0)
        why = (struct agx_refusal){ .reason = AGX_REASON_SANDBOX_NOT_FOUND, .id = q.sandbox_id };
    else
        r = stream_new(s, call, &t, &err);
    if (r == 0)
        r = subscribe_prepare(t, &q, sb, &why, &err);
    if (r == 0)
        stream_start(t);
    else
        agx_service_fail(call, &err, &why);
    if (r < 0 && t)
        stream_free(t);
    agx_subscribe_request_done(&q);
}

/* The position where a watch begins; its first message has it. */
static int watch_from(struct agx_service *s, const struct agx_watch_request *q, uint64_t *ret,
                      struct agx_error **err)
{
    uint64_t newest = agx_manager_position(s->config.manager);

    if (q->after_position > newest)
        return agx_error_set(err, AGX_OUT_OF_RANGE,
                             "after_position %llu: the newest event has position %llu",
                             (unsigned long long)q->after_position, (unsigned long long)newest);
    *ret = q->from_now ? newest : q->after_position;
    return 0;
}

static int prepare_watch(struct stream *t, struct agx_watch_request *q, struct agx_error **err)
{
    size_t len = 0;
    uint64_t from = 0;
    int r = watch_from(t->service, q, &from, err);

    if (r < 0)
        return r;
    t->filter = agx_new(struct filter);
    t->filter->selector = q->selector;
    t->filter->sandbox_ids = q->sandbox_ids;
    q->selector = (struct agx_pairs){ 0 };
    q->sandbox_ids = (struct agx_words){ 0 };
    t->first = first_new();
    if (agx_buf_append(&t->first->bytes, agx_str_bytes(&len, sizeof(len))) < 0 ||
        agx_reply_watch(&t->first->bytes, from, NULL, NULL) < 0)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "no memory for a watch");
    len = t->first->bytes.len - sizeof(len);
    memcpy(t->first->bytes.data, &len, sizeof(len));
    return agx_feed_open(t->service->config.manager, NULL, from, &watch_ops, t, &t->feed, err);
}

void agx_service_watch(void *service, struct agx_grpc_call *call, struct agx_str request)
{
    struct agx_watch_request q;
    struct agx_error *err = NULL;
    struct stream *t = NULL;
    int r = agx_watch_request_decode(&q, request, &err);

    if (r < 0) {
        agx_service_fail(call, &err, &(struct agx_refusal){ 0 });
        return;
    }
    r = stream_new(service, call, &t, &err);
    if (r == 0)
        r = prepare_watch(t, &q, &err);
    if (r == 0)
        stream_start(t);
    else
        agx_service_fail(call, &err, &(struct agx_refusal){ 0 });
    if (r < 0 && t)
        stream_free(t);
    agx_watch_request_done(&q);
}
