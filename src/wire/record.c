/* record.c: encodes and decodes stored records. */
#include "wire/record.h"

#include "wire/spec_wire_internal.h"

#include "agentix_store_v1_record.pb-c.h"

#include "base/banned.h"

/* The generated names, shortened. */
typedef Agentix__Store__V1__EventRecord event_pb;
typedef Agentix__Store__V1__ExecRecord exec_pb;
typedef Agentix__Store__V1__LifeRecord life_pb;
typedef Agentix__Store__V1__SandboxRecord sandbox_pb;
typedef Agentix__Store__V1__Stamp stamp_pb;

static stamp_pb *pack_stamp(stamp_pb *m, const struct agx_stamp *s)
{
    agentix__store__v1__stamp__init(m);
    m->wall_ns = s->wall_ns;
    m->mono_ns = s->mono_ns;
    m->boot = s->boot;
    return m;
}

static struct agx_stamp unpack_stamp(const stamp_pb *m)
{
    return m ? (struct agx_stamp){ m->wall_ns, m->mono_ns, m->boot } : (struct agx_stamp){ 0 };
}

/* Is this a valid number of an enum with `count` values? */
static int check_number(struct agx_unpack *u, const char *field, uint32_t number, uint32_t count)
{
    return number < count ? 0 : agx_unpack_fault(u, field, "of the record has no meaning here");
}

int agx_sandbox_record_encode(struct agx_buf *out, const struct agx_sandbox *sb)
{
    sandbox_pb m = AGENTIX__STORE__V1__SANDBOX_RECORD__INIT;
    Agbox__V1__CreateSpec spec = AGBOX__V1__CREATE_SPEC__INIT;
    stamp_pb created;
    struct agx_pack p;

    agx_pack_init(&p);
    m.id = agx_pack_text(sb->id);
    m.owner_uid = sb->owner_uid;
    m.created = pack_stamp(&created, &sb->created);
    agx_spec_pack(&p, &spec, &sb->spec);
    m.spec = &spec;
    m.n_warnings = sb->warnings.len;
    m.warnings = sb->warnings.items;
    return agx_pack(&p, &m.base, out);
}

static int sandbox_unpack(struct agx_unpack *u, struct agx_str bytes, struct agx_sandbox *sb)
{
    struct agx_spec spec;
    sandbox_pb *m;
    int r = agx_unpack_message(u, &agentix__store__v1__sandbox_record__descriptor, bytes, &m);

    if (r < 0)
        return r;
    if (!m->id[0] || !m->spec)
        return agx_unpack_fault(u, "id or spec", "is missing in the record");
    agx_spec_init(&spec);
    r = agx_spec_unpack(u, m->spec, &spec);
    if (r == 0)
        r = agx_sandbox_init(sb, m->id, &spec, u->err);
    if (r < 0) {
        agx_spec_done(&spec);
        return r;
    }
    sb->owner_uid = m->owner_uid;
    sb->created = unpack_stamp(m->created);
    r = agx_unpack_words(u, "warnings", m->n_warnings, m->warnings, &sb->warnings);
    if (r < 0)
        agx_sandbox_done(sb);
    return r;
}

int agx_sandbox_record_decode(struct agx_sandbox *sb, struct agx_str bytes, struct agx_error **err)
{
    struct agx_unpack u;
    int r;

    agx_unpack_init(&u, AGX_DATA_LOSS, err);
    r = sandbox_unpack(&u, bytes, sb);
    agx_unpack_done(&u);
    return r;
}

int agx_life_record_encode(struct agx_buf *out, const struct agx_life *life)
{
    life_pb m = AGENTIX__STORE__V1__LIFE_RECORD__INIT;
    stamp_pb changed, idle_from;

    m.phase = life->phase;
    m.op = life->op;
    m.cause = life->cause;
    m.prepared = life->prepared;
    m.last_sequence = life->last_sequence;
    m.changed = pack_stamp(&changed, &life->changed);
    m.idle_from = pack_stamp(&idle_from, &life->idle_from);
    m.error_code = agx_pack_text(life->error_code);
    m.error_message = agx_pack_text(life->error_message);
    m.companions = (ProtobufCBinaryData){ life->companions_len, life->companions };
    return agx_pack_plain(&m.base, out);
}

static int check_life(struct agx_unpack *u, const life_pb *m, const struct agx_sandbox *sb)
{
    int r;

    if ((r = check_number(u, "phase", m->phase, AGX_PHASE_COUNT)) < 0 ||
        (r = check_number(u, "op", m->op, AGX_DO_COUNT)) < 0 ||
        (r = check_number(u, "cause", m->cause, AGX_CAUSE_COUNT)) < 0)
        return r;
    if (m->companions.len != sb->spec.companions_len)
        return agx_unpack_fault(u, "companions", "of the record are not as many as the spec's");
    for (size_t i = 0; r == 0 && i < m->companions.len; i++)
        r = check_number(u, "companions", m->companions.data[i], AGX_COMPANION_FAILED + 1);
    return r;
}

static int life_unpack(struct agx_unpack *u, struct agx_str bytes, struct agx_sandbox *sb)
{
    struct agx_life life = { 0 };
    life_pb *m;
    int r = agx_unpack_message(u, &agentix__store__v1__life_record__descriptor, bytes, &m);

    if (r < 0 || (r = check_life(u, m, sb)) < 0 ||
        (r = agx_unpack_text(u, m->error_code, &life.error_code)) < 0 ||
        (r = agx_unpack_text(u, m->error_message, &life.error_message)) < 0) {
        agx_life_done(&life);
        return r;
    }
    life.phase = m->phase;
    life.op = m->op;
    life.cause = m->cause;
    life.prepared = m->prepared;
    life.last_sequence = m->last_sequence;
    life.changed = unpack_stamp(m->changed);
    life.idle_from = unpack_stamp(m->idle_from);
    /* Its array has one element per companion of the spec. */
    life.companions = AGX_TAKE_PTR(sb->life.companions);
    life.companions_len = sb->life.companions_len;
    if (life.companions_len > 0)
        memcpy(life.companions, m->companions.data, life.companions_len);
    agx_life_done(&sb->life);
    sb->life = life;
    return 0;
}

int agx_life_record_decode(struct agx_sandbox *sb, struct agx_str bytes, struct agx_error **err)
{
    struct agx_unpack u;
    int r;

    agx_unpack_init(&u, AGX_DATA_LOSS, err);
    r = life_unpack(&u, bytes, sb);
    agx_unpack_done(&u);
    return r;
}

int agx_exec_record_encode(struct agx_buf *out, const struct agx_exec *e)
{
    exec_pb m = AGENTIX__STORE__V1__EXEC_RECORD__INIT;
    stamp_pb created;
    struct agx_pack p;

    agx_pack_init(&p);
    m.id = agx_pack_text(e->id);
    m.sandbox_id = agx_pack_text(e->sandbox_id);
    m.n_command = e->command.len;
    m.command = e->command.items;
    m.cwd = agx_pack_text(e->cwd);
    m.env_overrides =
        agx_pack_pairs(&p, &agentix__store__v1__exec_record__env_overrides_entry__descriptor,
                       &e->env_overrides, &m.n_env_overrides);
    m.deadline_ns = e->deadline_ns;
    m.created = pack_stamp(&created, &e->created);
    m.phase = e->phase;
    m.state = e->state;
    m.exit_code = e->exit_code;
    m.error_code = agx_pack_text(e->error_code);
    m.error_message = agx_pack_text(e->error_message);
    return agx_pack(&p, &m.base, out);
}

static int exec_unpack(struct agx_unpack *u, struct agx_str bytes, struct agx_exec *e)
{
    exec_pb *m;
    int r = agx_unpack_message(u, &agentix__store__v1__exec_record__descriptor, bytes, &m);

    if (r < 0)
        return r;
    if (!m->id[0] || !m->sandbox_id[0])
        return agx_unpack_fault(u, "an id", "is missing in the record");
    if ((r = check_number(u, "phase", m->phase, AGX_EXEC_PHASE_COUNT)) < 0 ||
        (r = check_number(u, "state", m->state, AGX_EXEC_STATE_COUNT)) < 0 ||
        (r = agx_exec_init(e, m->id, m->sandbox_id, u->err)) < 0)
        return r;
    e->deadline_ns = m->deadline_ns;
    e->created = unpack_stamp(m->created);
    e->phase = m->phase;
    e->state = m->state;
    e->exit_code = m->exit_code;
    if ((r = agx_unpack_words(u, "command", m->n_command, m->command, &e->command)) < 0 ||
        (r = agx_unpack_text(u, m->cwd, &e->cwd)) < 0 ||
        (r = agx_unpack_pairs(u, "env_overrides", m->n_env_overrides, m->env_overrides,
                              &e->env_overrides)) < 0 ||
        (r = agx_unpack_text(u, m->error_code, &e->error_code)) < 0)
        return r;
    return agx_unpack_text(u, m->error_message, &e->error_message);
}

int agx_exec_record_decode(struct agx_exec *e, struct agx_str bytes, struct agx_error **err)
{
    struct agx_unpack u;
    int r;

    agx_unpack_init(&u, AGX_DATA_LOSS, err);
    *e = (struct agx_exec){ 0 };
    r = exec_unpack(&u, bytes, e);
    agx_unpack_done(&u);
    if (r < 0)
        agx_exec_done(e);
    return r;
}

int agx_event_record_encode(struct agx_buf *out, const struct agx_event_record *record)
{
    const struct agx_event *e = &record->event;
    event_pb m = AGENTIX__STORE__V1__EVENT_RECORD__INIT;

    m.position = record->position;
    m.sandbox_id = agx_pack_text(record->sandbox_id);
    m.sequence = e->sequence;
    m.type = e->type;
    m.state = e->state;
    m.occurred_at_ns = e->occurred_at_ns;
    m.exit_code = e->exit_code;
    m.subject = agx_pack_text(e->subject);
    m.reason = agx_pack_text(e->reason);
    m.error_code = agx_pack_text(e->error_code);
    m.error_message = agx_pack_text(e->error_message);
    return agx_pack_plain(&m.base, out);
}

static int event_unpack(struct agx_unpack *u, struct agx_str bytes, struct agx_event_record *ret)
{
    struct agx_event *e = &ret->event;
    event_pb *m;
    int r = agx_unpack_message(u, &agentix__store__v1__event_record__descriptor, bytes, &m);

    if (r < 0 || (r = check_number(u, "type", m->type, AGX_EVENT_COUNT)) < 0 ||
        (r = check_number(u, "state", m->state, AGX_STATE_COUNT)) < 0)
        return r;
    if (!m->sandbox_id[0] || m->sequence == 0 || m->position == 0 || m->type == AGX_EVENT_NONE)
        return agx_unpack_fault(u, "id, type or number", "is missing in the record");
    r = agx_event_init(
        e, &(struct agx_event_text){ m->subject, m->reason, m->error_code, m->error_message },
        u->err);
    if (r < 0)
        return r;
    ret->position = m->position;
    e->sequence = m->sequence;
    e->type = m->type;
    e->state = m->state;
    e->occurred_at_ns = m->occurred_at_ns;
    e->exit_code = m->exit_code;
    return agx_unpack_id(u, m->sandbox_id, &ret->sandbox_id);
}

int agx_event_record_decode(struct agx_event_record *record, struct agx_str bytes,
                            struct agx_error **err)
{
    struct agx_unpack u;
    int r;

    agx_unpack_init(&u, AGX_DATA_LOSS, err);
    *record = (struct agx_event_record){ 0 };
    r = event_unpack(&u, bytes, record);
    agx_unpack_done(&u);
    if (r < 0)
        agx_event_record_done(record);
    return r;
}

void agx_event_record_done(struct agx_event_record *record)
{
    if (!record)
        return;
    free(record->sandbox_id);
    agx_event_done(&record->event);
    *record = (struct agx_event_record){ 0 };
}
