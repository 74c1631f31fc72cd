/* view_event.c: events, and the small answers, as clients read them. */
#include "wire/view.h"

#include "wire/pull_wire_internal.h"

#include "agentix_v1_control.pb-c.h"

#include "base/banned.h"

/* The generated name, shortened. */
typedef Agbox__V1__SandboxEvent event_pb;

/* The texts of the details; borrowed from the message. */
static struct agx_event_text texts_of(const event_pb *m, int32_t *ret_exit_code)
{
    *ret_exit_code = 0;
    switch (m->details_case) {
    case AGBOX__V1__SANDBOX_EVENT__DETAILS_SANDBOX_PHASE:
        return (struct agx_event_text){ .reason = m->sandbox_phase->reason,
                                        .error_code = m->sandbox_phase->error_code,
                                        .error_message = m->sandbox_phase->error_message };
    case AGBOX__V1__SANDBOX_EVENT__DETAILS_EXEC:
        *ret_exit_code = m->exec->exit_code;
        return (struct agx_event_text){ .subject = m->exec->exec_id,
                                        .error_code = m->exec->error_code,
                                        .error_message = m->exec->error_message };
    case AGBOX__V1__SANDBOX_EVENT__DETAILS_COMPANION_CONTAINER:
        return (struct agx_event_text){ .subject = m->companion_container->name,
                                        .error_code = m->companion_container->error_code,
                                        .error_message = m->companion_container->error_message };
    default:
        return (struct agx_event_text){ 0 };
    }
}

static int view_event(struct agx_unpack *u, const event_pb *m, struct agx_event_view *v)
{
    int type = (int)m->event_type, state = (int)m->sandbox_state, r;
    struct agx_event *e = &v->event;
    struct agx_event_text texts;

    *v = (struct agx_event_view){ .replay = m->replay, .snapshot = m->snapshot };
    texts = texts_of(m, &e->exit_code);
    if ((r = agx_event_init(e, &texts, u->err)) < 0 ||
        (r = agx_unpack_id(u, m->event_id, &v->event_id)) < 0 ||
        (r = agx_unpack_id(u, m->sandbox_id, &v->sandbox_id)) < 0 ||
        (r = agx_unpack_time(u, "occurred_at", m->occurred_at, &e->occurred_at_ns)) < 0) {
        agx_event_view_done(v);
        return r;
    }
    e->sequence = m->sequence;
    e->type = type > 0 && type < AGX_EVENT_COUNT ? type : AGX_EVENT_NONE;
    e->state = state > 0 && state < AGX_STATE_COUNT ? state : AGX_STATE_NONE;
    return 0;
}

int agx_event_view_decode(struct agx_event_view *v, struct agx_str bytes, struct agx_error **err)
{
    struct agx_unpack u;
    event_pb *m;
    int r;

    agx_unpack_init(&u, AGX_INTERNAL, err);
    r = agx_unpack_message(&u, &agbox__v1__sandbox_event__descriptor, bytes, &m);
    if (r == 0)
        r = view_event(&u, m, v);
    agx_unpack_done(&u);
    return r;
}

void agx_event_view_done(struct agx_event_view *v)
{
    if (!v)
        return;
    free(v->event_id);
    free(v->sandbox_id);
    agx_event_done(&v->event);
    *v = (struct agx_event_view){ 0 };
}

int agx_watch_view_decode(struct agx_event_view *v, uint64_t *ret_position, struct agx_str bytes,
                          struct agx_error **err)
{
    Agentix__V1__WatchEventsResponse *m;
    struct agx_unpack u;
    int r;

    agx_unpack_init(&u, AGX_INTERNAL, err);
    *v = (struct agx_event_view){ 0 };
    r = agx_unpack_message(&u, &agentix__v1__watch_events_response__descriptor, bytes, &m);
    if (r == 0 && m->event)
        r = view_event(&u, m->event, v);
    if (r == 0) {
        *ret_position = m->position;
        r = m->event ? 1 : 0;
    }
    agx_unpack_done(&u);
    return r;
}

int agx_pull_view_decode(struct agx_pull_view *v, struct agx_str bytes, struct agx_error **err)
{
    Agentix__V1__WatchEventsResponse *m;
    struct agx_unpack u;
    int r;

    agx_unpack_init(&u, AGX_INTERNAL, err);
    *v = (struct agx_pull_view){ 0 };
    r = agx_unpack_message(&u, &agentix__v1__watch_events_response__descriptor, bytes, &m);
    if (r == 0 && m->pull) {
        r = agx_pull_unpack(&u, m->pull, v);
        if (r == 0)
            r = 1;
    }
    agx_unpack_done(&u);
    return r;
}

int agx_ping_view_decode(struct agx_ping_view *v, struct agx_str bytes, struct agx_error **err)
{
    Agbox__V1__PingResponse *m;
    struct agx_unpack u;
    int r;

    agx_unpack_init(&u, AGX_INTERNAL, err);
    *v = (struct agx_ping_view){ 0 };
    r = agx_unpack_message(&u, &agbox__v1__ping_response__descriptor, bytes, &m);
    if (r == 0)
        r = agx_unpack_id(&u, m->version, &v->version);
    if (r == 0)
        r = agx_unpack_id(&u, m->daemon, &v->daemon);
    agx_unpack_done(&u);
    if (r < 0)
        agx_ping_view_done(v);
    return r;
}

void agx_ping_view_done(struct agx_ping_view *v)
{
    if (!v)
        return;
    free(v->version);
    free(v->daemon);
    *v = (struct agx_ping_view){ 0 };
}

int agx_exec_created_view_decode(struct agx_exec_created_view *v, struct agx_str bytes,
                                 struct agx_error **err)
{
    Agbox__V1__CreateExecResponse *m;
    struct agx_unpack u;
    int r;

    agx_unpack_init(&u, AGX_INTERNAL, err);
    *v = (struct agx_exec_created_view){ 0 };
    r = agx_unpack_message(&u, &agbox__v1__create_exec_response__descriptor, bytes, &m);
    if (r == 0)
        r = agx_unpack_id(&u, m->exec_id, &v->exec_id);
    if (r == 0)
        r = agx_unpack_id(&u, m->stdout_log_path, &v->stdout_path);
    if (r == 0)
        r = agx_unpack_id(&u, m->stderr_log_path, &v->stderr_path);
    agx_unpack_done(&u);
    if (r < 0)
        agx_exec_created_view_done(v);
    return r;
}

void agx_exec_created_view_done(struct agx_exec_created_view *v)
{
    if (!v)
        return;
    free(v->exec_id);
    free(v->stdout_path);
    free(v->stderr_path);
    *v = (struct agx_exec_created_view){ 0 };
}

int agx_deleted_view_decode(struct agx_words *ids, struct agx_str bytes, struct agx_error **err)
{
    Agbox__V1__DeleteSandboxesResponse *m;
    struct agx_unpack u;
    int r;

    agx_unpack_init(&u, AGX_INTERNAL, err);
    r = agx_unpack_message(&u, &agbox__v1__delete_sandboxes_response__descriptor, bytes, &m);
    if (r == 0)
        r = agx_unpack_words(&u, "deleted_sandbox_ids", m->n_deleted_sandbox_ids,
                             m->deleted_sandbox_ids, ids);
    agx_unpack_done(&u);
    if (r < 0)
        agx_words_done(ids);
    return r;
}

int agx_output_view_decode(struct agx_output_view *v, struct agx_str bytes, struct agx_error **err)
{
    Agentix__V1__ReadExecOutputResponse *m;
    struct agx_unpack u;
    int r;

    agx_unpack_init(&u, AGX_INTERNAL, err);
    *v = (struct agx_output_view){ 0 };
    r = agx_unpack_message(&u, &agentix__v1__read_exec_output_response__descriptor, bytes, &m);
    if (r == 0) {
        v->offset = m->offset;
        v->skipped = m->skipped;
        r = agx_unpack_bytes(&u, &m->data, &v->data);
    }
    agx_unpack_done(&u);
    return r;
}

void agx_output_view_done(struct agx_output_view *v)
{
    if (!v)
        return;
    agx_buf_done(&v->data);
    *v = (struct agx_output_view){ 0 };
}

int agx_backup_view_decode(struct agx_str bytes, struct agx_buf *out, struct agx_error **err)
{
    Agentix__V1__BackupResponse *m;
    struct agx_unpack u;
    int r;

    agx_unpack_init(&u, AGX_INTERNAL, err);
    r = agx_unpack_message(&u, &agentix__v1__backup_response__descriptor, bytes, &m);
    if (r == 0 && agx_buf_append(out, agx_str_bytes(m->data.data, m->data.len)) < 0)
        r = agx_error_no_memory(err);
    agx_unpack_done(&u);
    return r;
}
