/* session_call.c: what the user does with a call: starts it, takes from it, sends to it, ends it.
 */
#include "client/session_internal.h"

#include "agentix/runtime.h"
#include "base/banned.h"
#include "codec/mp_reader.h"

#include <stdarg.h>

/* What a message says beside its item: names of fields, call id, sequence. */
enum { INPUT_EXTRA = 128 };

void agx_session_note(struct agx_call *call)
{
    struct agx_session *s = call->session;

    if (call->news || call->abandoned)
        return;
    call->news = true;
    call->news_next = NULL;
    call->news_prev = s->news_last;
    *(s->news_last ? &s->news_last->news_next : &s->news) = call;
    s->news_last = call;
}

static void unnote(struct agx_call *call)
{
    struct agx_session *s = call->session;

    if (!call->news)
        return;
    call->news = false;
    *(call->news_prev ? &call->news_prev->news_next : &s->news) = call->news_next;
    *(call->news_next ? &call->news_next->news_prev : &s->news_last) = call->news_prev;
}

struct agx_call *agx_session_next(struct agx_session *s)
{
    struct agx_call *call = s->news;

    if (call)
        unnote(call);
    return call;
}

void agx_session_end_call(struct agx_call *call, struct agx_error **take_error)
{
    struct agx_error *error = AGX_TAKE_PTR(*take_error);

    agx_heap_remove(&call->session->deadlines, &call->deadline);
    if (call->flow.closed) {
        agx_buf_done(&call->request);
        agx_items_clear(&call->kept);
    }
    if (call->over) {
        agx_error_free(error);
        return;
    }
    call->over = true;
    call->error = error;
    agx_session_note(call);
}

void agx_session_fail_call(struct agx_call *call, enum agx_code code, const char *type,
                           const char *fmt, ...)
{
    struct agx_error *err = NULL;
    char text[512];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    (void)agx_error_set(&err, code, "%s: %s", call->target, text);
    if (type)
        agx_error_set_remote(err, type, NULL, NULL);
    agx_session_end_call(call, &err);
}

void agx_session_drop_call(struct agx_call *call)
{
    struct agx_session *s = call->session;

    (void)agx_map_remove(&s->by_id, agx_str_from(call->id));
    agx_heap_remove(&s->deadlines, &call->deadline);
    unnote(call);
    for (struct agx_call **p = &s->dirty; call->dirty && *p; p = &(*p)->dirty_next) {
        if (*p == call) {
            *p = call->dirty_next;
            break;
        }
    }
    *(call->prev ? &call->prev->next : &s->calls) = call->next;
    *(call->next ? &call->next->prev : &s->calls_last) = call->prev;
    agx_items_clear(&call->items);
    agx_items_clear(&call->kept);
    agx_buf_done(&call->request);
    agx_error_free(call->error);
    free(call->borrowed);
    free(call->target);
    free(call);
}

void agx_session_collect(struct agx_call *call)
{
    if (call->abandoned && call->flow.closed && !call->dirty)
        agx_session_drop_call(call);
}

/* Exactly one value of that type. */
static int check_value(struct agx_str bytes, enum agx_mp_type type, const char *what,
                       struct agx_error **err)
{
    const struct agx_mp_limits limits = AGX_MP_LIMITS_INIT;
    struct agx_mp_reader rd, ahead;
    struct agx_mp_token t = { .type = AGX_MP_NIL };
    int r = agx_mp_reader_init(&rd, bytes, &limits, err);

    if (r < 0)
        return agx_error_wrap(err, r, "%s", what);
    ahead = rd;
    r = agx_mp_skip(&rd, err);
    if (r == 0)
        r = agx_mp_expect_end(&rd, err);
    if (r == 0)
        r = agx_mp_next(&ahead, &t, err);
    if (r < 0)
        return agx_error_wrap(err, r, "%s", what);
    if (type != AGX_MP_NIL && t.type != type)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "%s: must be of type %s, not %s", what,
                             agx_mp_type_name(type), agx_mp_type_name(t.type));
    return 0;
}

static int write_request(struct agx_call *call, const struct agx_call_request *q,
                         struct agx_error **err)
{
    struct agx_mp_writer w;

    agx_mp_writer_init(&w, &call->request);
    agx_mp_write_map(&w, 2 + (q->args.len > 0) + (q->kwargs.len > 0) + (q->timeout_ms > 0));
    agx_mp_write_str(&w, AGX_STR("call_id"));
    agx_mp_write_str(&w, agx_str_from(call->id));
    agx_mp_write_str(&w, AGX_STR("target"));
    agx_mp_write_str(&w, q->target);
    if (q->args.len > 0) {
        agx_mp_write_str(&w, AGX_STR("args"));
        agx_mp_write_raw(&w, q->args);
    }
    if (q->kwargs.len > 0) {
        agx_mp_write_str(&w, AGX_STR("kwargs"));
        agx_mp_write_raw(&w, q->kwargs);
    }
    if (q->timeout_ms > 0) {
        agx_mp_write_str(&w, AGX_STR("timeout_ms"));
        agx_mp_write_uint(&w, q->timeout_ms);
    }
    return agx_mp_writer_end(&w, err);
}

/* A call in the session's lists, with its request written; nothing stays behind on failure. */
static int new_call(struct agx_session *s, const struct agx_call_request *q, struct agx_call **ret,
                    struct agx_error **err)
{
    struct agx_call *call = calloc(1, sizeof(*call));
    int r;

    if (!call)
        return agx_error_no_memory(err);
    call->session = s;
    agx_remote_flow_init(&call->flow, q->kind);
    call->user = q->user;
    call->timeout_ms = q->timeout_ms;
    call->request.max = s->config.max_message;
    agx_items_init(&call->items);
    agx_items_init(&call->kept);
    (void)snprintf(call->id, sizeof(call->id), "%08x-%llx", (unsigned)s->config.seed.k0,
                   (unsigned long long)++s->last_call);
    *(s->calls_last ? &s->calls_last->next : &s->calls) = call;
    call->prev = s->calls_last;
    s->calls_last = call;
    call->target = agx_str_dup(q->target);
    r = call->target && agx_map_put(&s->by_id, agx_str_from(call->id), call, NULL) == 0
            ? write_request(call, q, err)
            : agx_error_no_memory(err);
    if (r == 0 && q->timeout_ms > 0 &&
        agx_heap_put(&s->deadlines, &call->deadline, s->now + q->timeout_ms) < 0)
        r = agx_error_no_memory(err);
    if (r < 0)
        agx_session_drop_call(call);
    else
        *ret = call;
    return r;
}

int agx_session_call(struct agx_session *s, const struct agx_call_request *q, uint64_t now_ms,
                     struct agx_call **ret_call, struct agx_error **err)
{
    int r = 0;

    s->now = now_ms;
    if (q->target.len == 0)
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "a call needs a target: 'module::function'");
    if (q->args.len > 0)
        r = check_value(q->args, AGX_MP_ARRAY, "args", err);
    if (r == 0 && q->kwargs.len > 0)
        r = check_value(q->kwargs, AGX_MP_MAP, "kwargs", err);
    if (r == 0)
        r = new_call(s, q, ret_call, err);
    if (r < 0)
        return r;
    if (s->phase == AGX_SESSION_READY)
        agx_session_send_request(*ret_call);
    else if (s->phase == AGX_SESSION_DOWN)
        agx_session_dial(s);
    agx_session_settle(s);
    return 0;
}

void agx_session_send_request(struct agx_call *call)
{
    struct agx_session *s = call->session;

    if (call->request.len > s->server_max) {
        call->flow.closed = true;
        agx_session_fail_call(call, AGX_RESOURCE_EXHAUSTED, "MessageTooLarge",
                              "a request of %zu bytes, the server takes %zu", call->request.len,
                              s->server_max);
        return;
    }
    call->sent = true;
    agx_session_emit_payload(s, (enum agx_remote_event)(AGX_EV_UNARY + call->flow.kind),
                             agx_buf_peek(&call->request));
    agx_remote_flow_begin(&call->flow);
    agx_session_send_input(call);
}

static void emit_input(struct agx_call *call, const struct agx_item *item)
{
    struct agx_session *s = call->session;
    struct agx_mp_writer w;

    if (item->len + INPUT_EXTRA > s->server_max) {
        call->cancelled = true;
        agx_session_emit_cancel(s, call);
        agx_session_fail_call(call, AGX_RESOURCE_EXHAUSTED, "MessageTooLarge",
                              "an item of %zu bytes, the server takes messages of %zu", item->len,
                              s->server_max);
        return;
    }
    agx_buf_clear(&s->scratch);
    agx_mp_writer_init(&w, &s->scratch);
    agx_remote_write_input(&w, agx_str_from(call->id), item->seq, item->end);
    if (!item->end)
        agx_mp_write_raw(&w, agx_str_bytes(item->bytes, item->len));
    agx_session_emit(s, item->end ? AGX_EV_BIDI_END_IN : AGX_EV_BIDI_IN,
                     agx_mp_writer_end(&w, NULL));
}

void agx_session_send_input(struct agx_call *call)
{
    if (!agx_session_is_ready(call->session) || !call->sent)
        return;
    for (const struct agx_item *item = call->kept.first; item; item = item->next) {
        if (item->seq <= call->flow.in_sent)
            continue;
        emit_input(call, item);
        if (call->over)
            break;
        call->flow.in_sent = item->seq;
    }
}

void agx_session_drop_input(struct agx_call *call, size_t n)
{
    while (n-- > 0)
        free(agx_items_pop(&call->kept));
}

struct agx_session *agx_session_of(const struct agx_call *call)
{
    return call->session;
}

enum agx_remote_kind agx_session_call_kind(const struct agx_call *call)
{
    return call->flow.kind;
}

void *agx_call_user(const struct agx_call *call)
{
    return call->user;
}

int agx_session_take(struct agx_call *call, struct agx_str *ret_value, uint64_t now_ms,
                     struct agx_error **err)
{
    struct agx_item *item = agx_items_pop(&call->items);

    call->session->now = now_ms;
    if (item) {
        free(call->borrowed);
        call->borrowed = item;
        agx_credit_count(&call->flow.taken, item->len);
        *ret_value = agx_str_bytes(item->bytes, item->len);
        if (!call->over && call->flow.kind != AGX_REMOTE_UNARY &&
            agx_remote_flow_grant(&call->flow))
            agx_session_emit_credit(call->session, call);
        agx_session_settle(call->session);
        return AGX_TAKE_VALUE;
    }
    if (!call->over)
        return AGX_TAKE_NOTHING;
    if (!call->error)
        return AGX_TAKE_END;
    if (err)
        *err = agx_error_dup(call->error);
    return -(int)agx_error_code(call->error);
}

static bool takes_input(const struct agx_call *call)
{
    return call->flow.kind == AGX_REMOTE_BIDI && !call->over && !call->flow.in_ended;
}

bool agx_session_can_send(const struct agx_call *call)
{
    return takes_input(call) && agx_remote_flow_may_send(&call->flow);
}

bool agx_session_wants_credit(const struct agx_call *call)
{
    return takes_input(call) && !agx_remote_flow_may_send(&call->flow);
}

/* Queues one item (or the end) of the input and sends what may go. */
static int queue_input(struct agx_call *call, struct agx_str bytes, bool end,
                       struct agx_error **err)
{
    struct agx_item *item = agx_item_new(bytes, call->flow.in_queued + 1);

    if (!item)
        return agx_error_no_memory(err);
    item->end = end;
    agx_items_push(&call->kept, item);
    if (end)
        agx_remote_flow_queue_end(&call->flow);
    else
        agx_remote_flow_queue_item(&call->flow, bytes.len);
    agx_session_send_input(call);
    agx_session_settle(call->session);
    return 0;
}

int agx_session_send(struct agx_call *call, struct agx_str item, uint64_t now_ms,
                     struct agx_error **err)
{
    int r;

    call->session->now = now_ms;
    if (call->flow.kind != AGX_REMOTE_BIDI)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "only a bidi call takes input");
    if (call->over)
        return agx_error_set(err, AGX_FAILED_PRECONDITION, "the call is over");
    if (!agx_session_can_send(call))
        return agx_error_set(err, AGX_FAILED_PRECONDITION,
                             call->flow.in_ended ? "the input has ended"
                                                 : "the function has not taken its input yet");
    r = check_value(item, AGX_MP_NIL, "item", err);
    return r < 0 ? r : queue_input(call, item, false, err);
}

int agx_session_end_input(struct agx_call *call, uint64_t now_ms, struct agx_error **err)
{
    call->session->now = now_ms;
    if (call->flow.kind != AGX_REMOTE_BIDI)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "only a bidi call takes input");
    if (call->flow.in_ended || call->over)
        return 0;
    return queue_input(call, AGX_STR(""), true, err);
}

void agx_session_cancel(struct agx_call *call, uint64_t now_ms)
{
    struct agx_session *s = call->session;

    s->now = now_ms;
    if (call->over || call->cancelled)
        return;
    call->cancelled = true;
    if (call->sent) {
        agx_session_emit_cancel(s, call);
    } else {
        call->flow.closed = true;
        agx_session_fail_call(call, AGX_CANCELLED, "Cancelled", "remote call cancelled");
    }
    agx_session_settle(s);
}

struct agx_call *agx_session_release(struct agx_call *call, uint64_t now_ms)
{
    struct agx_session *s;

    if (!call)
        return NULL;
    s = call->session;
    s->now = now_ms;
    unnote(call);
    call->abandoned = true;
    agx_heap_remove(&s->deadlines, &call->deadline);
    agx_items_clear(&call->items);
    if (!call->flow.closed && call->sent && !call->cancelled) {
        call->cancelled = true;
        agx_session_emit_cancel(s, call);
    }
    call->over = true;
    /* What the server does not know, or will forget because the resume does not name it. */
    if (!call->sent || (s->phase != AGX_SESSION_READY && s->phase != AGX_SESSION_RESUMING))
        agx_session_drop_call(call);
    else
        agx_session_collect(call);
    agx_session_settle(s);
    return NULL;
}
