/* control_request.c: the requests of agentix.v1.ControlService. */
#include "wire/control_request.h"

#include "wire/pack_internal.h"
#include "wire/unpack_internal.h"

#include "agentix_v1_control.pb-c.h"

#include "base/banned.h"

/* The generated names, shortened. */
typedef Agbox__V1__SandboxState state_pb;
typedef Agentix__V1__ListSandboxesRequest page_pb;
typedef Agentix__V1__ReadExecOutputRequest output_pb;
typedef Agentix__V1__WaitExecRequest wait_exec_pb;
typedef Agentix__V1__WaitSandboxRequest wait_sandbox_pb;
typedef Agentix__V1__WatchEventsRequest watch_pb;
typedef Agentix__V1__WriteExecInputRequest input_pb;

static int watch_unpack(struct agx_unpack *u, struct agx_str bytes, struct agx_watch_request *q)
{
    watch_pb *m;
    int r = agx_unpack_message(u, &agentix__v1__watch_events_request__descriptor, bytes, &m);

    if (r < 0)
        return r;
    q->after_position = m->after_position;
    q->from_now = m->from_now;
    if (q->from_now && q->after_position > 0)
        return agx_unpack_fault(u, "from_now", "and after_position exclude each other");
    r = agx_unpack_pairs(u, "label_selector", m->n_label_selector, m->label_selector, &q->selector);
    return r < 0 ? r
                 : agx_unpack_words(u, "sandbox_ids", m->n_sandbox_ids, m->sandbox_ids,
                                    &q->sandbox_ids);
}

int agx_watch_request_decode(struct agx_watch_request *q, struct agx_str bytes,
                             struct agx_error **err)
{
    struct agx_unpack u;
    int r;

    agx_unpack_init(&u, AGX_INVALID_ARGUMENT, err);
    *q = (struct agx_watch_request){ 0 };
    r = watch_unpack(&u, bytes, q);
    agx_unpack_done(&u);
    if (r < 0)
        agx_watch_request_done(q);
    return r;
}

int agx_watch_request_encode(struct agx_buf *out, const struct agx_watch_request *q)
{
    watch_pb m = AGENTIX__V1__WATCH_EVENTS_REQUEST__INIT;
    struct agx_pack p;

    agx_pack_init(&p);
    m.after_position = q->after_position;
    m.from_now = q->from_now;
    m.label_selector =
        agx_pack_pairs(&p, &agentix__v1__watch_events_request__label_selector_entry__descriptor,
                       &q->selector, &m.n_label_selector);
    m.n_sandbox_ids = q->sandbox_ids.len;
    m.sandbox_ids = q->sandbox_ids.items;
    return agx_pack(&p, &m.base, out);
}

void agx_watch_request_done(struct agx_watch_request *q)
{
    agx_pairs_done(&q->selector);
    agx_words_done(&q->sandbox_ids);
    *q = (struct agx_watch_request){ 0 };
}

int agx_output_request_decode(struct agx_output_request *q, struct agx_str bytes,
                              struct agx_error **err)
{
    struct agx_unpack u;
    output_pb *m;
    int r;

    agx_unpack_init(&u, AGX_INVALID_ARGUMENT, err);
    *q = (struct agx_output_request){ 0 };
    r = agx_unpack_message(&u, &agentix__v1__read_exec_output_request__descriptor, bytes, &m);
    if (r == 0 && m->stream != AGENTIX__V1__OUTPUT_STREAM__OUTPUT_STREAM_STDOUT &&
        m->stream != AGENTIX__V1__OUTPUT_STREAM__OUTPUT_STREAM_STDERR)
        r = agx_unpack_fault(&u, "stream", "is neither STDOUT nor STDERR");
    if (r == 0) {
        q->stream = (enum agx_output_stream)m->stream;
        q->offset = m->offset;
        q->follow = m->follow;
        q->max_bytes = m->max_bytes;
        r = agx_unpack_id(&u, m->exec_id, &q->exec_id);
    }
    agx_unpack_done(&u);
    return r;
}

int agx_output_request_encode(struct agx_buf *out, const struct agx_output_request *q)
{
    output_pb m = AGENTIX__V1__READ_EXEC_OUTPUT_REQUEST__INIT;

    m.exec_id = agx_pack_text(q->exec_id);
    m.stream = (Agentix__V1__OutputStream)q->stream;
    m.offset = q->offset;
    m.follow = q->follow;
    m.max_bytes = q->max_bytes;
    return agx_pack_plain(&m.base, out);
}

void agx_output_request_done(struct agx_output_request *q)
{
    free(q->exec_id);
    *q = (struct agx_output_request){ 0 };
}

static int unpack_states(struct agx_unpack *u, size_t n, const state_pb *states, uint32_t *ret)
{
    *ret = 0;
    for (size_t i = 0; i < n; i++) {
        if (states[i] <= AGBOX__V1__SANDBOX_STATE__SANDBOX_STATE_UNSPECIFIED ||
            (uint32_t)states[i] >= AGX_STATE_COUNT)
            return agx_unpack_fault(u, "states", "has a value that is not a state");
        *ret |= UINT32_C(1) << states[i];
    }
    return 0;
}

/* Writes the states of a set to `storage`; returns their number. */
static size_t pack_states(uint32_t set, state_pb storage[AGX_STATE_COUNT])
{
    size_t n = 0;

    for (unsigned i = 0; i < AGX_STATE_COUNT; i++)
        if (set & UINT32_C(1) << i)
            storage[n++] = (state_pb)i;
    return n;
}

static int page_unpack(struct agx_unpack *u, struct agx_str bytes, struct agx_list_request *q)
{
    page_pb *m;
    int r = agx_unpack_message(u, &agentix__v1__list_sandboxes_request__descriptor, bytes, &m);

    if (r < 0)
        return r;
    q->page_size = m->page_size;
    q->include_deleted = m->include_deleted;
    if ((r = unpack_states(u, m->n_states, m->states, &q->states)) < 0 ||
        (r = agx_unpack_text(u, m->page_token, &q->page_token)) < 0)
        return r;
    return agx_unpack_pairs(u, "label_selector", m->n_label_selector, m->label_selector,
                            &q->selector);
}

int agx_page_request_decode(struct agx_list_request *q, struct agx_str bytes,
                            struct agx_error **err)
{
    struct agx_unpack u;
    int r;

    agx_unpack_init(&u, AGX_INVALID_ARGUMENT, err);
    *q = (struct agx_list_request){ 0 };
    r = page_unpack(&u, bytes, q);
    agx_unpack_done(&u);
    if (r < 0)
        agx_list_request_done(q);
    return r;
}

int agx_page_request_encode(struct agx_buf *out, const struct agx_list_request *q)
{
    page_pb m = AGENTIX__V1__LIST_SANDBOXES_REQUEST__INIT;
    state_pb states[AGX_STATE_COUNT];
    struct agx_pack p;

    agx_pack_init(&p);
    m.page_size = q->page_size;
    m.page_token = agx_pack_text(q->page_token);
    m.include_deleted = q->include_deleted;
    m.label_selector =
        agx_pack_pairs(&p, &agentix__v1__list_sandboxes_request__label_selector_entry__descriptor,
                       &q->selector, &m.n_label_selector);
    m.n_states = pack_states(q->states, states);
    m.states = states;
    return agx_pack(&p, &m.base, out);
}

static int unpack_timeout(struct agx_unpack *u, const Google__Protobuf__Duration *d, int64_t *ret)
{
    int r = agx_unpack_duration(u, "timeout", d, ret);

    return r == 0 && d && *ret < 0 ? agx_unpack_fault(u, "timeout", "is negative") : r;
}

int agx_wait_sandbox_decode(struct agx_wait_request *q, struct agx_str bytes,
                            struct agx_error **err)
{
    struct agx_unpack u;
    wait_sandbox_pb *m;
    int r;

    agx_unpack_init(&u, AGX_INVALID_ARGUMENT, err);
    *q = (struct agx_wait_request){ 0 };
    r = agx_unpack_message(&u, &agentix__v1__wait_sandbox_request__descriptor, bytes, &m);
    if (r == 0) {
        q->after_sequence = m->after_sequence;
        r = unpack_states(&u, m->n_states, m->states, &q->states);
    }
    if (r == 0)
        r = unpack_timeout(&u, m->timeout, &q->timeout_ns);
    if (r == 0)
        r = agx_unpack_id(&u, m->sandbox_id, &q->id);
    agx_unpack_done(&u);
    return r;
}

int agx_wait_sandbox_encode(struct agx_buf *out, const struct agx_wait_request *q)
{
    wait_sandbox_pb m = AGENTIX__V1__WAIT_SANDBOX_REQUEST__INIT;
    state_pb states[AGX_STATE_COUNT];
    struct agx_pack p;

    agx_pack_init(&p);
    m.sandbox_id = agx_pack_text(q->id);
    m.n_states = pack_states(q->states, states);
    m.states = states;
    m.after_sequence = q->after_sequence;
    m.timeout = agx_pack_duration(&p, q->timeout_ns);
    return agx_pack(&p, &m.base, out);
}

int agx_wait_exec_decode(struct agx_wait_request *q, struct agx_str bytes, struct agx_error **err)
{
    struct agx_unpack u;
    wait_exec_pb *m;
    int r;

    agx_unpack_init(&u, AGX_INVALID_ARGUMENT, err);
    *q = (struct agx_wait_request){ 0 };
    r = agx_unpack_message(&u, &agentix__v1__wait_exec_request__descriptor, bytes, &m);
    if (r == 0)
        r = unpack_timeout(&u, m->timeout, &q->timeout_ns);
    if (r == 0)
        r = agx_unpack_id(&u, m->exec_id, &q->id);
    agx_unpack_done(&u);
    return r;
}

int agx_wait_exec_encode(struct agx_buf *out, const struct agx_wait_request *q)
{
    wait_exec_pb m = AGENTIX__V1__WAIT_EXEC_REQUEST__INIT;
    struct agx_pack p;

    agx_pack_init(&p);
    m.exec_id = agx_pack_text(q->id);
    m.timeout = agx_pack_duration(&p, q->timeout_ns);
    return agx_pack(&p, &m.base, out);
}

void agx_wait_request_done(struct agx_wait_request *q)
{
    free(q->id);
    *q = (struct agx_wait_request){ 0 };
}

int agx_input_request_decode(struct agx_input_request *q, struct agx_str bytes,
                             struct agx_error **err)
{
    struct agx_unpack u;
    input_pb *m;
    int r;

    agx_unpack_init(&u, AGX_INVALID_ARGUMENT, err);
    *q = (struct agx_input_request){ 0 };
    r = agx_unpack_message(&u, &agentix__v1__write_exec_input_request__descriptor, bytes, &m);
    if (r == 0) {
        q->eof = m->eof;
        r = agx_unpack_text(&u, m->exec_id, &q->exec_id);
    }
    if (r == 0)
        r = agx_unpack_bytes(&u, &m->data, &q->data);
    agx_unpack_done(&u);
    if (r < 0)
        agx_input_request_done(q);
    return r;
}

int agx_input_request_encode(struct agx_buf *out, const struct agx_input_request *q)
{
    input_pb m = AGENTIX__V1__WRITE_EXEC_INPUT_REQUEST__INIT;

    m.exec_id = agx_pack_text(q->exec_id);
    m.data = (ProtobufCBinaryData){ q->data.len, q->data.data };
    m.eof = q->eof;
    return agx_pack_plain(&m.base, out);
}

void agx_input_request_done(struct agx_input_request *q)
{
    free(q->exec_id);
    agx_buf_done(&q->data);
    *q = (struct agx_input_request){ 0 };
}
