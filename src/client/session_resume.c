/* session_resume.c: what happens to calls when a connection comes back, or does not. */
#include "client/session_internal.h"

#include "base/banned.h"

/* Calls that ended and that the server will not be asked for again. */
static void drop_ended(struct agx_session *s)
{
    struct agx_call *next;

    s->dirty = NULL;
    s->unacked = 0;
    for (struct agx_call *c = s->calls; c; c = next) {
        next = c->next;
        c->dirty = false;
        /* Ended for us alone: a server that is not told its name cancels it. */
        if (c->over && c->sent)
            c->flow.closed = true;
        agx_session_collect(c);
    }
}

void agx_session_abandon_all(struct agx_session *s, const struct agx_error *why)
{
    enum agx_code code = agx_error_code(why);
    char text[400];

    /* A refusal says what to do about it; all else means that the server is out of reach. */
    if (code != AGX_UNAUTHENTICATED && code != AGX_FAILED_PRECONDITION)
        code = AGX_UNAVAILABLE;
    drop_ended(s);
    agx_error_format(why, text, sizeof(text));
    for (struct agx_call *c = s->calls; c; c = c->next) {
        if (c->over)
            continue;
        c->flow.closed = true;
        agx_session_fail_call(
            c, code, NULL, "%s%s",
            c->sent ? "the connection was lost, and the function may have run: " : "", text);
    }
}

/* The server has forgotten the session, or is another one. */
static void fail_sent(struct agx_session *s)
{
    for (struct agx_call *c = s->calls; c; c = c->next) {
        if (c->over || !c->sent)
            continue;
        c->flow.closed = true;
        agx_session_fail_call(c, AGX_DATA_LOSS, "ResultUnavailable",
                              "the server no longer has the session; the function may have run");
    }
}

static void send_unsent(struct agx_session *s)
{
    for (struct agx_call *c = s->calls; c && !s->fault; c = c->next) {
        if (!c->sent && !c->over)
            agx_session_send_request(c);
    }
}

static void go_ready(struct agx_session *s)
{
    s->phase = AGX_SESSION_READY;
    s->retry_ms = AGX_CLIENT_RETRY_MIN_MS;
    s->reason = agx_error_free(s->reason);
    send_unsent(s);
}

/* Names every open call: the last event seen, and its credit. */
static void emit_resume(struct agx_session *s)
{
    struct agx_mp_writer w;
    size_t n = 0;

    for (struct agx_call *c = s->calls; c; c = c->next) {
        c->named = c->sent && !c->over;
        n += c->named;
    }
    agx_buf_clear(&s->scratch);
    agx_mp_writer_init(&w, &s->scratch);
    agx_remote_write_list(&w, n);
    for (struct agx_call *c = s->calls; c; c = c->next) {
        if (c->named)
            agx_remote_write_resumed(&w, agx_str_from(c->id), &c->flow);
    }
    agx_session_emit(s, AGX_EV_RESUME, agx_mp_writer_end(&w, NULL));
}

void agx_session_connected(struct agx_session *s, struct agx_str answer)
{
    struct agx_hello hello;

    if (agx_hello_decode(answer, &hello, &s->fault) < 0)
        return;
    memcpy(s->id, hello.session.ptr, hello.session.len);
    s->id[hello.session.len] = '\0';
    s->resume_ms = hello.resume_ms;
    s->server_max = (size_t)AGX_MIN(hello.max_message, (uint64_t)s->config.max_message);
    drop_ended(s);
    if (hello.resumed) {
        s->phase = AGX_SESSION_RESUMING;
        s->phase_deadline = s->now + s->config.connect_timeout_ms;
        emit_resume(s);
        return;
    }
    fail_sent(s);
    go_ready(s);
}

/* The server knows the call and its input up to `seq`. */
static void known(struct agx_call *call, uint64_t seq)
{
    agx_buf_done(&call->request);
    agx_session_drop_input(call, agx_remote_flow_known(&call->flow, seq));
    agx_session_send_input(call);
    if (call->cancelled)
        agx_session_emit_cancel(call->session, call);
}

/* The server never received it. */
static void unknown(struct agx_call *call)
{
    if (call->over || call->cancelled) {
        call->flow.closed = true;
        agx_session_fail_call(call, AGX_CANCELLED, "Cancelled", "remote call cancelled");
    } else if (!agx_remote_flow_unknown(&call->flow)) {
        call->flow.closed = true;
        agx_session_fail_call(call, AGX_DATA_LOSS, "ResultUnavailable",
                              "the server has forgotten the call");
    } else {
        agx_session_send_request(call);
    }
}

/* The named call of that id, once. */
static struct agx_call *take_named(struct agx_session *s, struct agx_str id)
{
    struct agx_call *call = agx_map_get(&s->by_id, id);

    if (!call || !call->named)
        return NULL;
    call->named = false;
    return call;
}

/* What the server says of each call; negative where that is malformed. */
static int read_answers(struct agx_session *s, struct agx_str payload)
{
    struct agx_resume_done done;
    struct agx_call *call;
    struct agx_str id;
    uint64_t seq;
    int r = agx_resume_done_read(payload, &done, NULL);

    if (r < 0)
        return r;
    while ((r = agx_resume_done_known(&done, &id, &seq, NULL)) > 0) {
        if ((call = take_named(s, id)))
            known(call, seq);
    }
    if (r < 0)
        return r;
    while ((r = agx_resume_done_unknown(&done, &id, NULL)) > 0) {
        if ((call = take_named(s, id)))
            unknown(call);
    }
    return r;
}

void agx_session_resume_done(struct agx_session *s, struct agx_str payload)
{
    struct agx_call *next;

    if (s->phase != AGX_SESSION_RESUMING)
        return;
    s->phase = AGX_SESSION_READY;
    if (read_answers(s, payload) < 0) {
        if (!s->fault)
            (void)agx_error_set(&s->fault, AGX_INTERNAL,
                                "the server's answer to resume is malformed");
        return;
    }
    for (struct agx_call *c = s->calls; c; c = next) {
        next = c->next;
        if (c->named) {
            c->named = false;
            c->flow.closed = true;
            agx_session_fail_call(c, AGX_DATA_LOSS, "ResultUnavailable",
                                  "the server did not answer for the call");
        }
        agx_session_collect(c);
    }
    go_ready(s);
}
