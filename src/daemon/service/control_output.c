/*
 * control_output.c: ReadExecOutput: what a command wrote, from an offset on.
 *
 *     READ --at the end, follow--> WAIT --event or timer--> READ
 *      |
 *      +--at the end, and no more can come--> OK
 *
 * inotify watches the log's index, which is written for every piece of output. A timer also checks
 * the log now and then, in case inotify is not available or an event is lost. The sandbox's events
 * report that the command has ended. Invariant: an end counts only if it was known before the log
 * was read to its end.
 */
#include "daemon/service/service_internal.h"

#include "base/caplog.h"
#include "base/mem.h"
#include "wire/control_request.h"
#include "wire/reply.h"

#include <stdio.h>

#include "base/banned.h"

/* Factor by which polling is more frequent without inotify. */
enum { UNWATCHED = 10 };

struct reader {
    struct agx_service *service;
    struct agx_grpc_call *call;
    struct agx_output_request q;
    uint64_t left; /* bytes still to send; UINT64_MAX: all */
    int data_fd, index_fd;
    struct agx_slice slice;
    struct agx_alarm alarm;
    uv_fs_event_t news;
    struct agx_feed *feed; /* NULL: the command has ended, or no follow */
    uid_t uid;
    bool counted; /* counted as a stream of that user */
    bool watched; /* inotify works */
    bool full;    /* the client must read first */
};

static void on_closed(uv_handle_t *h)
{
    struct reader *r = container_of((uv_fs_event_t *)h, struct reader, news);

    agx_closep(&r->data_fd);
    agx_closep(&r->index_fd);
    agx_output_request_done(&r->q);
    free(r);
}

static void reader_free(struct reader *r)
{
    agx_slices_remove(&r->service->slices, &r->slice);
    agx_alarms_clear(&r->service->alarms, &r->alarm);
    r->feed = agx_feed_close(r->feed);
    if (r->counted)
        agx_service_stream_end(r->service, r->uid);
    uv_close((uv_handle_t *)&r->news, on_closed);
}

static void reader_fail(struct reader *r, struct agx_error **take_error)
{
    agx_service_fail(r->call, take_error, &(struct agx_refusal){ 0 });
    reader_free(r);
}

static void reader_finish(struct reader *r)
{
    agx_grpc_call_finish(r->call, &(struct agx_grpc_status){ .code = AGX_OK });
    reader_free(r);
}

/* Has the command ended? Then all its output is in the log. */
static bool is_over(struct reader *r, struct agx_error **err)
{
    struct agx_feed_item item;
    int got;

    while (r->feed && (got = agx_feed_next(r->feed, &item, err)) != 0) {
        if (got < 0)
            return false;
        if (got == AGX_FEED_END || (agx_event_exec_state(item.event->type) > AGX_EXEC_RUNNING &&
                                    agx_text_eq(item.event->subject, r->q.exec_id)))
            r->feed = agx_feed_close(r->feed);
    }
    return !r->feed;
}

/* Sends one piece. Negative on failure. */
static int send_piece(struct reader *r, const uint8_t *data, const struct agx_caplog_piece *piece,
                      struct agx_error **err)
{
    struct agx_buf *out = agx_service_scratch(r->service);
    int sent;

    r->q.offset += piece->skipped;
    sent = agx_reply_output(out, r->q.offset, agx_str_bytes(data, piece->len), piece->skipped);
    if (sent == 0)
        sent = agx_grpc_call_send(r->call, agx_buf_peek(out));
    if (sent < 0)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED,
                             "too much data is queued on this connection to send output");
    r->full = sent > 0;
    r->q.offset += piece->len;
    if (r->left != UINT64_MAX)
        r->left -= piece->len;
    return 0;
}

static int wait_for_news(struct reader *r, struct agx_error **err)
{
    uint64_t ms = r->service->config.output_poll_ms;

    return agx_alarms_set(&r->service->alarms, &r->alarm, r->watched ? ms : ms / UNWATCHED, err);
}

/* 1: there may be more at once; 0: no more for now; AGX_FEED_END: complete. */
static int control_output_step(struct reader *r, struct agx_error **err)
{
    uint8_t data[AGX_OUTPUT_CHUNK];
    struct agx_caplog_piece piece;
    bool over = is_over(r, err);
    int rc;

    if (*err)
        return -(int)(*err)->code;
    if (r->left == 0)
        return AGX_FEED_END;
    rc = agx_caplog_read(r->data_fd, r->index_fd, r->q.offset, data,
                         (size_t)AGX_MIN(r->left, sizeof(data)), &piece, err);
    if (rc < 0)
        return rc;
    if (piece.len > 0 || piece.skipped > 0) {
        rc = send_piece(r, data, &piece, err);
        return rc < 0 ? rc : !r->full;
    }
    if (r->q.offset < piece.total)
        return 1;
    if (over)
        return AGX_FEED_END;
    return wait_for_news(r, err);
}

static void control_output_pump(struct reader *r)
{
    struct agx_error *err = NULL;
    int rc;

    if (r->full)
        return;
    rc = control_output_step(r, &err);
    if (rc < 0)
        reader_fail(r, &err);
    else if (rc == AGX_FEED_END)
        reader_finish(r);
    else if (rc > 0)
        agx_slices_add(&r->service->slices, &r->slice);
}

static void run_slice(struct agx_slice *slice)
{
    control_output_pump(container_of(slice, struct reader, slice));
}

static void on_alarm(struct agx_alarm *a)
{
    control_output_pump(container_of(a, struct reader, alarm));
}

static void on_news(uv_fs_event_t *h, const char *name, int events, int status)
{
    struct reader *r = container_of(h, struct reader, news);

    (void)name;
    (void)events;
    (void)status;
    control_output_pump(r);
}

static void on_ready(void *user)
{
    control_output_pump(user);
}

static void on_writable(void *user)
{
    struct reader *r = user;

    r->full = false;
    control_output_pump(r);
}

static void on_ended(void *user, enum agx_code code)
{
    (void)code;
    reader_free(user);
}

static const struct agx_feed_ops feed_ops = { .ready = on_ready };
static const struct agx_grpc_call_ops reader_ops = { .ended = on_ended, .writable = on_writable };

static void watch_index(struct reader *r)
{
    char path[64];

    /* Watches the descriptor's file, even if its name now refers to another file. */
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", r->index_fd);
    r->watched = uv_fs_event_start(&r->news, on_news, path, 0) == 0;
}

/* Follows the output while the command runs. */
static int control_output_follow(struct reader *r, const struct agx_exec *exec, uint64_t sequence,
                                 struct agx_error **err)
{
    struct agx_service *s = r->service;
    int rc;

    if (exec->state != AGX_EXEC_RUNNING)
        return 0;
    rc = agx_service_stream_begin(s, r->call, err);
    if (rc < 0)
        return rc;
    r->counted = true;
    r->uid = agx_grpc_call_peek_peer(r->call)->uid;
    rc = agx_feed_open(s->config.manager, exec->sandbox_id, sequence, &feed_ops, r, &r->feed, err);
    if (rc == 0)
        watch_index(r);
    return rc;
}

static int reader_open(struct reader *r, enum agx_reason *ret_reason, struct agx_error **err)
{
    struct agx_manager *manager = r->service->config.manager;
    struct agx_exec exec;
    uint64_t sequence;
    int rc = agx_manager_exec_find(manager, r->q.exec_id, &exec, &sequence, err);

    if (rc < 0) {
        if (rc == -AGX_NOT_FOUND)
            *ret_reason = AGX_REASON_EXEC_NOT_FOUND;
        return rc;
    }
    rc = agx_manager_open_log(manager, r->q.exec_id,
                              r->q.stream == AGX_OUTPUT_STDERR ? AGX_STREAM_ERR : AGX_STREAM_OUT,
                              &r->data_fd, &r->index_fd, err);
    if (rc == 0 && r->q.follow)
        rc = control_output_follow(r, &exec, sequence, err);
    agx_exec_done(&exec);
    return rc;
}

void agx_service_read_output(void *service, struct agx_grpc_call *call, struct agx_str request)
{
    struct agx_service *s = service;
    struct reader *r = agx_new(struct reader);
    struct agx_refusal why = { .reason = AGX_REASON_NONE };
    struct agx_error *err = NULL;

    if (agx_output_request_decode(&r->q, request, &err) < 0) {
        agx_service_fail(call, &err, &why);
        free(r);
        return;
    }
    r->service = s;
    r->call = call;
    r->left = r->q.max_bytes > 0 ? r->q.max_bytes : UINT64_MAX;
    r->data_fd = r->index_fd = -1;
    r->slice.run = run_slice;
    r->alarm.fire = on_alarm;
    (void)uv_fs_event_init(agx_loop_uv(s->config.loop), &r->news);
    if (reader_open(r, &why.reason, &err) < 0) {
        why.id = r->q.exec_id;
        agx_service_fail(call, &err, &why);
        reader_free(r);
        return;
    }
    agx_grpc_call_watch(call, &reader_ops, r);
    agx_grpc_call_begin(call);
    control_output_pump(r);
}
