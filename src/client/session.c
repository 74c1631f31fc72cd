/* session.c: the connection's states and deadlines. The drawing is in session_internal.h. */
#include "client/session_internal.h"

#include "base/banned.h"

static void set_phase(struct agx_session *s, enum agx_session_phase phase)
{
    s->phase = phase;
}

void agx_session_dial(struct agx_session *s)
{
    s->reason = agx_error_free(s->reason);
    s->attempt++;
    s->phase_deadline = s->now + s->config.connect_timeout_ms;
    set_phase(s, AGX_SESSION_DIALING);
}

int agx_session_new(const struct agx_session_config *config, uint64_t now_ms,
                    struct agx_session **ret, struct agx_error **err)
{
    struct agx_session *s = calloc(1, sizeof(*s));

    if (!s)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "no memory for a session");
    s->config = *config;
    s->host = agx_str_dup(config->host);
    s->token = agx_str_dup(config->token);
    s->scratch.max = AGX_CLIENT_OUT_MAX;
    s->server_max = config->max_message;
    s->retry_ms = AGX_CLIENT_RETRY_MIN_MS;
    s->now = now_ms;
    agx_link_init(&s->link, config->seed, config->max_message);
    agx_map_init(&s->by_id, config->seed);
    if (!s->host || !s->token) {
        agx_session_free(s);
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "no memory for a session");
    }
    agx_session_dial(s);
    *ret = s;
    return 0;
}

struct agx_session *agx_session_free(struct agx_session *s)
{
    if (!s)
        return NULL;
    while (s->calls)
        agx_session_drop_call(s->calls);
    agx_link_done(&s->link);
    agx_map_done(&s->by_id);
    agx_heap_done(&s->deadlines);
    agx_buf_done(&s->scratch);
    agx_error_free(s->fault);
    agx_error_free(s->reason);
    free(s->host);
    free(s->token);
    free(s);
    return NULL;
}

void *agx_session_owner(const struct agx_session *s)
{
    return s->config.owner;
}

uint64_t agx_session_attempt(const struct agx_session *s)
{
    return s->phase == AGX_SESSION_DOWN || s->phase == AGX_SESSION_WAITING ? 0 : s->attempt;
}

int agx_session_state(const struct agx_session *s, struct agx_error **err)
{
    if (s->phase == AGX_SESSION_READY)
        return 1;
    if (s->phase != AGX_SESSION_DOWN)
        return 0;
    if (err)
        *err = agx_error_dup(s->reason);
    return -(int)agx_error_code(s->reason);
}

/* Trying again would give the same answer. */
static bool is_final(const struct agx_error *e)
{
    enum agx_code code = agx_error_code(e);

    return code == AGX_UNAUTHENTICATED || code == AGX_NOT_FOUND ||
           code == AGX_FAILED_PRECONDITION || code == AGX_INVALID_ARGUMENT;
}

/* No connection is to be had: calls end, and the next one begins anew. */
static void go_down(struct agx_session *s, struct agx_error **take_error)
{
    agx_error_free(s->reason);
    s->reason = AGX_TAKE_PTR(*take_error);
    s->id[0] = '\0';
    set_phase(s, AGX_SESSION_DOWN);
    agx_session_abandon_all(s, s->reason);
}

void agx_session_lost(struct agx_session *s, struct agx_error **take_error, uint64_t now_ms)
{
    bool had = s->phase == AGX_SESSION_READY || s->phase == AGX_SESSION_RESUMING;

    s->now = now_ms;
    s->fault = agx_error_free(s->fault);
    s->link.state = AGX_LINK_IDLE;
    if (s->phase == AGX_SESSION_DOWN || s->phase == AGX_SESSION_WAITING) {
        *take_error = agx_error_free(*take_error);
        return;
    }
    if (had)
        s->give_up = s->now + AGX_MIN(s->config.reconnect_ms, s->resume_ms);
    if (s->id[0] == '\0' || is_final(*take_error) || s->now >= s->give_up) {
        go_down(s, take_error);
        return;
    }
    /* Kept for the day when it is given up. */
    agx_error_free(s->reason);
    s->reason = AGX_TAKE_PTR(*take_error);
    s->phase_deadline = s->now + (had ? 0 : s->retry_ms);
    s->retry_ms =
        had ? AGX_CLIENT_RETRY_MIN_MS : AGX_MIN(2 * s->retry_ms, (uint64_t)AGX_CLIENT_RETRY_MAX_MS);
    set_phase(s, AGX_SESSION_WAITING);
}

void agx_session_settle(struct agx_session *s)
{
    struct agx_error *fault = AGX_TAKE_PTR(s->fault);

    if (fault)
        agx_session_lost(s, &fault, s->now);
}

void agx_session_dialed(struct agx_session *s, uint64_t now_ms)
{
    _cleanup_buf_ struct agx_buf hello = AGX_BUF_INIT(AGX_HTTP_HEAD_MAX);
    int r;

    s->now = now_ms;
    if (s->phase != AGX_SESSION_DIALING)
        return;
    set_phase(s, AGX_SESSION_HANDSHAKE);
    s->heard = now_ms;
    r = agx_hello_encode(&hello, agx_str_from(s->token), agx_str_from(s->id),
                         s->config.max_message);
    if (r < 0)
        (void)agx_error_set(&s->fault, AGX_RESOURCE_EXHAUSTED, "no memory for the handshake");
    else
        (void)!agx_link_begin(&s->link, agx_str_from(s->host), agx_str_from(s->token),
                              agx_buf_peek(&hello), &s->fault);
    agx_session_settle(s);
}

static bool has_link(const struct agx_session *s)
{
    return s->phase == AGX_SESSION_HANDSHAKE || s->phase == AGX_SESSION_RESUMING ||
           s->phase == AGX_SESSION_READY;
}

void agx_session_read(struct agx_session *s, uint8_t *data, size_t len, uint64_t now_ms)
{
    struct agx_link_event e;

    s->now = now_ms;
    s->heard = now_ms;
    while (has_link(s) && !s->fault) {
        int r = agx_link_read(&s->link, &data, &len, &e, &s->fault);

        if (r <= 0)
            break;
        if (e.connected)
            agx_session_connected(s, e.data);
        else
            agx_session_event(s, e.name, e.data);
    }
    if (agx_ack_due(s->unacked))
        agx_session_emit_acks(s);
    agx_session_settle(s);
}

void agx_session_want(struct agx_session *s, uint8_t **ret_room, size_t *ret_len)
{
    *ret_room = NULL;
    *ret_len = 0;
    if (has_link(s))
        agx_link_want(&s->link, ret_room, ret_len);
}

void agx_session_filled(struct agx_session *s, size_t n)
{
    agx_link_filled(&s->link, n);
}

struct agx_str agx_session_pending(const struct agx_session *s)
{
    return has_link(s) ? agx_link_pending(&s->link) : AGX_STR("");
}

void agx_session_sent(struct agx_session *s, size_t n)
{
    agx_link_sent(&s->link, n);
}

uint64_t agx_session_deadline(const struct agx_session *s)
{
    const struct agx_heap_node *first = agx_heap_peek(&s->deadlines);
    uint64_t at = first ? first->key : UINT64_MAX;

    switch (s->phase) {
    case AGX_SESSION_DOWN:
        break;
    case AGX_SESSION_READY:
        at = AGX_MIN(at, s->heard + s->link.silence_ms);
        if (s->dirty)
            at = AGX_MIN(at, s->ack_at);
        break;
    default:
        at = AGX_MIN(at, s->phase_deadline);
        if (s->id[0] != '\0')
            at = AGX_MIN(at, s->give_up);
        break;
    }
    return at;
}

static void end_late_calls(struct agx_session *s)
{
    struct agx_heap_node *n;

    while ((n = agx_heap_peek(&s->deadlines)) && n->key <= s->now) {
        struct agx_call *call = container_of(n, struct agx_call, deadline);

        agx_heap_remove(&s->deadlines, n);
        if (call->sent && !call->cancelled) {
            call->cancelled = true;
            agx_session_emit_cancel(s, call);
        }
        call->flow.closed = call->flow.closed || !call->sent;
        agx_session_fail_call(call, AGX_DEADLINE_EXCEEDED, "CallTimeout",
                              "no result within %llu ms", (unsigned long long)call->timeout_ms);
    }
}

static void tick_phase(struct agx_session *s)
{
    struct agx_error *err = NULL;

    switch (s->phase) {
    case AGX_SESSION_DOWN:
        return;
    case AGX_SESSION_READY:
        if (s->now >= s->heard + s->link.silence_ms)
            (void)agx_error_set(&s->fault, AGX_UNAVAILABLE,
                                "the server has been silent for %llu ms",
                                (unsigned long long)s->link.silence_ms);
        else if (s->dirty && s->now >= s->ack_at)
            agx_session_emit_acks(s);
        return;
    case AGX_SESSION_WAITING:
        if (s->now >= s->give_up) {
            err = AGX_TAKE_PTR(s->reason);
            go_down(s, &err);
        } else if (s->now >= s->phase_deadline) {
            agx_session_dial(s);
        }
        return;
    default:
        if (s->now >= s->phase_deadline || (s->id[0] != '\0' && s->now >= s->give_up)) {
            (void)agx_error_set(&err, AGX_UNAVAILABLE, "no connection within %llu ms",
                                (unsigned long long)s->config.connect_timeout_ms);
            agx_session_lost(s, &err, s->now);
        }
    }
}

void agx_session_tick(struct agx_session *s, uint64_t now_ms)
{
    s->now = now_ms;
    end_late_calls(s);
    tick_phase(s);
    agx_session_settle(s);
}

void agx_session_emit_payload(struct agx_session *s, enum agx_remote_event ev,
                              struct agx_str payload)
{
    if (!has_link(s) || s->fault)
        return;
    if (agx_link_emit(&s->link, agx_remote_event_name(ev), payload) < 0)
        (void)agx_error_set(&s->fault, AGX_RESOURCE_EXHAUSTED, "no room for what is to be sent");
}

void agx_session_emit(struct agx_session *s, enum agx_remote_event ev, int status)
{
    if (status < 0 && !s->fault)
        (void)agx_error_set(&s->fault, AGX_RESOURCE_EXHAUSTED, "no memory for a message");
    agx_session_emit_payload(s, ev, agx_buf_peek(&s->scratch));
}

void agx_session_emit_cancel(struct agx_session *s, const struct agx_call *call)
{
    struct agx_mp_writer w;

    if (!agx_session_is_ready(s))
        return;
    agx_buf_clear(&s->scratch);
    agx_mp_writer_init(&w, &s->scratch);
    agx_remote_write_cancel(&w, agx_str_from(call->id));
    agx_session_emit(s, AGX_EV_CANCEL, agx_mp_writer_end(&w, NULL));
}

void agx_session_emit_credit(struct agx_session *s, const struct agx_call *call)
{
    struct agx_mp_writer w;

    if (!agx_session_is_ready(s))
        return;
    agx_buf_clear(&s->scratch);
    agx_mp_writer_init(&w, &s->scratch);
    agx_remote_write_credit(&w, agx_str_from(call->id), &call->flow);
    agx_session_emit(s, AGX_EV_CREDIT, agx_mp_writer_end(&w, NULL));
}

void agx_session_emit_acks(struct agx_session *s)
{
    struct agx_mp_writer w;
    size_t n = 0;

    if (!agx_session_is_ready(s) || !s->dirty)
        return;
    for (struct agx_call *c = s->dirty; c; c = c->dirty_next)
        n++;
    agx_buf_clear(&s->scratch);
    agx_mp_writer_init(&w, &s->scratch);
    agx_remote_write_list(&w, 2 * n);
    for (struct agx_call *c = s->dirty; c; c = c->dirty_next)
        agx_remote_write_acked(&w, agx_str_from(c->id), &c->flow);
    agx_session_emit(s, AGX_EV_ACK, agx_mp_writer_end(&w, NULL));
    if (s->fault)
        return;
    s->unacked = 0;
    while (s->dirty) {
        struct agx_call *c = s->dirty;

        s->dirty = c->dirty_next;
        c->dirty = false;
        agx_session_collect(c);
    }
}

void agx_session_goodbye(struct agx_session *s)
{
    agx_session_emit_acks(s);
    if (has_link(s))
        (void)!agx_link_goodbye(&s->link);
    agx_session_settle(s);
}
