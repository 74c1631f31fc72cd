/* reply.c: the answers of both services, as the daemon writes them. */
#include "wire/reply.h"

#include "wire/field_writer.h"
#include "wire/pull_wire_internal.h"
#include "wire/spec_wire_internal.h"

#include "agentix_v1_control.pb-c.h"

#include "base/banned.h"

/* The generated names, shortened. */
typedef Agbox__V1__ExecStatus exec_pb;
typedef Agbox__V1__SandboxEvent event_pb;
typedef Agbox__V1__SandboxHandle handle_pb;

int agx_reply_ping(struct agx_buf *out, const char *version, const char *daemon)
{
    Agbox__V1__PingResponse m = AGBOX__V1__PING_RESPONSE__INIT;

    m.version = agx_pack_text(version);
    m.daemon = agx_pack_text(daemon);
    return agx_pack_plain(&m.base, out);
}

int agx_reply_accepted(struct agx_buf *out)
{
    Agbox__V1__AcceptedResponse m = AGBOX__V1__ACCEPTED_RESPONSE__INIT;

    m.accepted = true;
    return agx_pack_plain(&m.base, out);
}

/* Field numbers of agbox/v1/service.proto, for messages written by hand. */
enum {
    RESPONSE_SANDBOX = 1,
    HANDLE_SANDBOX_ID = 1,
    HANDLE_STATE = 2,
    HANDLE_LAST_EVENT_SEQUENCE = 3,
    HANDLE_LABELS = 5,
    HANDLE_CREATED_AT = 6,
    HANDLE_IMAGE = 7,
    HANDLE_ERROR_CODE = 8,
    HANDLE_ERROR_MESSAGE = 9,
    HANDLE_STATE_CHANGED_AT = 10,
    HANDLE_WARNINGS = 1002,
    ENTRY_KEY = 1,
    ENTRY_VALUE = 2,
};

static void write_pairs(struct agx_field_writer *w, uint32_t field, const struct agx_pairs *pairs)
{
    for (size_t i = 0; i < pairs->len; i++) {
        size_t opened = agx_field_write_open(w, field);

        agx_field_write_text(w, ENTRY_KEY, pairs->items[i].key);
        agx_field_write_text(w, ENTRY_VALUE, pairs->items[i].value);
        agx_field_write_close(w, opened);
    }
}

/* Written with protobuf-c, since companions are rare and have many fields. */
static void write_companions(struct agx_field_writer *w, const struct agx_spec *spec, bool envs)
{
    handle_pb m = AGBOX__V1__SANDBOX_HANDLE__INIT;
    struct agx_pack p;

    if (spec->companions_len == 0)
        return;
    agx_pack_init(&p);
    m.companion_containers = agx_companions_pack(&p, spec, envs, &m.n_companion_containers);
    w->failed |= agx_pack(&p, &m.base, w->out) < 0;
}

int agx_reply_sandbox(struct agx_buf *out, const struct agx_sandbox *sb, bool envs)
{
    struct agx_field_writer w;
    size_t opened;

    agx_field_writer_init(&w, out);
    opened = agx_field_write_open(&w, RESPONSE_SANDBOX);
    agx_field_write_text(&w, HANDLE_SANDBOX_ID, sb->id);
    agx_field_write_number(&w, HANDLE_STATE, agx_sandbox_state(sb));
    agx_field_write_number(&w, HANDLE_LAST_EVENT_SEQUENCE, sb->life.last_sequence);
    write_companions(&w, &sb->spec, envs);
    write_pairs(&w, HANDLE_LABELS, &sb->spec.labels);
    agx_field_write_time(&w, HANDLE_CREATED_AT, sb->created.wall_ns);
    agx_field_write_text(&w, HANDLE_IMAGE, sb->spec.image);
    agx_field_write_text(&w, HANDLE_ERROR_CODE, sb->life.error_code);
    agx_field_write_text(&w, HANDLE_ERROR_MESSAGE, sb->life.error_message);
    agx_field_write_time(&w, HANDLE_STATE_CHANGED_AT, sb->life.changed.wall_ns);
    for (size_t i = 0; i < sb->warnings.len; i++)
        agx_field_write_text(&w, HANDLE_WARNINGS, sb->warnings.items[i]);
    agx_field_write_close(&w, opened);
    return agx_field_writer_end(&w);
}

int agx_reply_exec(struct agx_buf *out, const struct agx_exec *e, uint64_t last_sequence, bool envs)
{
    Agbox__V1__GetExecResponse m = AGBOX__V1__GET_EXEC_RESPONSE__INIT;
    exec_pb status = AGBOX__V1__EXEC_STATUS__INIT;
    Google__Protobuf__Timestamp created;
    struct agx_pack p;

    agx_pack_init(&p);
    status.exec_id = agx_pack_text(e->id);
    status.sandbox_id = agx_pack_text(e->sandbox_id);
    status.state = (Agbox__V1__ExecState)e->state;
    status.n_command = e->command.len;
    status.command = e->command.items;
    status.cwd = agx_pack_text(e->cwd);
    if (envs)
        status.env_overrides =
            agx_pack_pairs(&p, &agbox__v1__exec_status__env_overrides_entry__descriptor,
                           &e->env_overrides, &status.n_env_overrides);
    status.exit_code = e->exit_code;
    status.error = agx_pack_text(e->error_message);
    status.last_event_sequence = last_sequence;
    agx_pack_time(&created, e->created.wall_ns);
    status.created_at = &created;
    status.deadline = agx_pack_duration(&p, e->deadline_ns != 0 ? e->deadline_ns : AGX_NS_UNSET);
    status.error_code = agx_pack_text(e->error_code);
    m.exec = &status;
    return agx_pack(&p, &m.base, out);
}

int agx_reply_timed_out(struct agx_buf *out)
{
    Agentix__V1__WaitSandboxResponse m = AGENTIX__V1__WAIT_SANDBOX_RESPONSE__INIT;

    m.timed_out = true; /* the same field in WaitExecResponse */
    return agx_pack_plain(&m.base, out);
}

int agx_reply_page_token(struct agx_buf *out, const char *token)
{
    Agentix__V1__ListSandboxesResponse m = AGENTIX__V1__LIST_SANDBOXES_RESPONSE__INIT;

    m.next_page_token = agx_pack_text(token);
    return agx_pack_plain(&m.base, out);
}

int agx_reply_deleted_id(struct agx_buf *out, const char *id)
{
    Agbox__V1__DeleteSandboxesResponse m = AGBOX__V1__DELETE_SANDBOXES_RESPONSE__INIT;
    char *ids[] = { agx_pack_text(id) };

    m.n_deleted_sandbox_ids = 1;
    m.deleted_sandbox_ids = ids;
    return agx_pack_plain(&m.base, out);
}

int agx_reply_deleted_count(struct agx_buf *out, uint32_t count)
{
    Agbox__V1__DeleteSandboxesResponse m = AGBOX__V1__DELETE_SANDBOXES_RESPONSE__INIT;

    m.deleted_count = count;
    return agx_pack_plain(&m.base, out);
}

int agx_reply_exec_created(struct agx_buf *out, const char *exec_id, const char *stdout_path,
                           const char *stderr_path)
{
    Agbox__V1__CreateExecResponse m = AGBOX__V1__CREATE_EXEC_RESPONSE__INIT;

    m.exec_id = agx_pack_text(exec_id);
    m.stdout_log_path = agx_pack_text(stdout_path);
    m.stderr_log_path = agx_pack_text(stderr_path);
    return agx_pack_plain(&m.base, out);
}

/* An event as a message, and the messages that it points to. */
struct event_message {
    event_pb event;
    Google__Protobuf__Timestamp occurred;
    Agbox__V1__SandboxPhaseDetails phase;
    Agbox__V1__ExecEventDetails exec;
    Agbox__V1__CompanionContainerEventDetails companion;
    char id[AGX_EVENT_ID_SIZE];
};

static void set_phase(struct event_message *m, const struct agx_event *e)
{
    agbox__v1__sandbox_phase_details__init(&m->phase);
    m->phase.phase = agx_pack_text(agx_event_phase(e->type));
    m->phase.error_code = agx_pack_text(e->error_code);
    m->phase.error_message = agx_pack_text(e->error_message);
    m->phase.reason = agx_pack_text(e->reason);
    m->event.details_case = AGBOX__V1__SANDBOX_EVENT__DETAILS_SANDBOX_PHASE;
    m->event.sandbox_phase = &m->phase;
}

static void set_exec(struct event_message *m, const struct agx_event *e)
{
    agbox__v1__exec_event_details__init(&m->exec);
    m->exec.exec_id = agx_pack_text(e->subject);
    m->exec.exit_code = e->exit_code;
    m->exec.exec_state = (Agbox__V1__ExecState)agx_event_exec_state(e->type);
    m->exec.error_code = agx_pack_text(e->error_code);
    m->exec.error_message = agx_pack_text(e->error_message);
    m->event.details_case = AGBOX__V1__SANDBOX_EVENT__DETAILS_EXEC;
    m->event.exec = &m->exec;
}

static void set_companion(struct event_message *m, const struct agx_event *e)
{
    agbox__v1__companion_container_event_details__init(&m->companion);
    m->companion.name = agx_pack_text(e->subject);
    m->companion.error_code = agx_pack_text(e->error_code);
    m->companion.error_message = agx_pack_text(e->error_message);
    m->event.details_case = AGBOX__V1__SANDBOX_EVENT__DETAILS_COMPANION_CONTAINER;
    m->event.companion_container = &m->companion;
}

static void make_event(struct event_message *m, const struct agx_event *e, const char *sandbox_id,
                       bool snapshot)
{
    agbox__v1__sandbox_event__init(&m->event);
    m->event.event_id = agx_event_id(e, sandbox_id, m->id);
    m->event.sequence = e->sequence;
    m->event.sandbox_id = agx_pack_text(sandbox_id);
    m->event.event_type = (Agbox__V1__EventType)e->type;
    agx_pack_time(&m->occurred, e->occurred_at_ns);
    m->event.occurred_at = &m->occurred;
    m->event.replay = true;
    m->event.snapshot = snapshot;
    m->event.sandbox_state = (Agbox__V1__SandboxState)e->state;
    switch (agx_event_details(e->type)) {
    case AGX_EVENT_DETAILS_NONE:
        break;
    case AGX_EVENT_DETAILS_PHASE:
        set_phase(m, e);
        break;
    case AGX_EVENT_DETAILS_EXEC:
        set_exec(m, e);
        break;
    case AGX_EVENT_DETAILS_COMPANION:
        set_companion(m, e);
        break;
    }
}

int agx_reply_event(struct agx_buf *out, const struct agx_event *e, const char *sandbox_id,
                    bool snapshot)
{
    struct event_message m;

    make_event(&m, e, sandbox_id, snapshot);
    return agx_pack_plain(&m.event.base, out);
}

int agx_reply_watch(struct agx_buf *out, uint64_t position, const struct agx_event *e,
                    const char *sandbox_id)
{
    Agentix__V1__WatchEventsResponse m = AGENTIX__V1__WATCH_EVENTS_RESPONSE__INIT;
    struct event_message event;

    m.position = position;
    if (e) {
        make_event(&event, e, sandbox_id, false);
        m.event = &event.event;
    }
    return agx_pack_plain(&m.base, out);
}

int agx_reply_pull(struct agx_buf *out, uint64_t position, const char *sandbox_id,
                   const struct agx_pull *pull)
{
    Agentix__V1__WatchEventsResponse m = AGENTIX__V1__WATCH_EVENTS_RESPONSE__INIT;
    Agentix__V1__PullProgress p;

    agx_pull_pack(&p, sandbox_id, pull);
    m.position = position;
    m.pull = &p;
    return agx_pack_plain(&m.base, out);
}

int agx_reply_output(struct agx_buf *out, uint64_t offset, struct agx_str data, uint64_t skipped)
{
    Agentix__V1__ReadExecOutputResponse m = AGENTIX__V1__READ_EXEC_OUTPUT_RESPONSE__INIT;

    m.offset = offset;
    m.data = (ProtobufCBinaryData){ data.len, (uint8_t *)data.ptr };
    m.skipped = skipped;
    return agx_pack_plain(&m.base, out);
}

int agx_reply_input(struct agx_buf *out, uint64_t bytes_written)
{
    Agentix__V1__WriteExecInputResponse m = AGENTIX__V1__WRITE_EXEC_INPUT_RESPONSE__INIT;

    m.bytes_written = bytes_written;
    return agx_pack_plain(&m.base, out);
}

int agx_reply_backup(struct agx_buf *out, struct agx_str data)
{
    Agentix__V1__BackupResponse m = AGENTIX__V1__BACKUP_RESPONSE__INIT;

    m.data = (ProtobufCBinaryData){ data.len, (uint8_t *)data.ptr };
    return agx_pack_plain(&m.base, out);
}
