/* sandbox_request.c: the requests of agbox.v1.SandboxService. */
#include "wire/sandbox_request.h"

#include "wire/spec_wire_internal.h"

#include "base/banned.h"

/* The generated names, shortened. */
typedef Agbox__V1__CreateExecRequest exec_pb;
typedef Agbox__V1__CreateSandboxRequest create_pb;
typedef Agbox__V1__DeleteSandboxesRequest delete_pb;
typedef Agbox__V1__ListActiveExecsRequest active_pb;
typedef Agbox__V1__ListSandboxesRequest list_pb;
typedef Agbox__V1__SubscribeSandboxEventsRequest subscribe_pb;

void agx_create_request_init(struct agx_create_request *q)
{
    *q = (struct agx_create_request){ .config_yaml = AGX_BUF_INIT(SIZE_MAX) };
    agx_spec_init(&q->spec);
}

static int create_unpack(struct agx_unpack *u, struct agx_str bytes, struct agx_create_request *q)
{
    create_pb *m;
    int r = agx_unpack_message(u, &agbox__v1__create_sandbox_request__descriptor, bytes, &m);

    if (r < 0)
        return r;
    q->has_spec = m->create_spec;
    if ((r = agx_unpack_text(u, m->sandbox_id, &q->sandbox_id)) < 0 ||
        (r = agx_unpack_bytes(u, &m->config_yaml, &q->config_yaml)) < 0)
        return r;
    return m->create_spec ? agx_spec_unpack(u, m->create_spec, &q->spec) : 0;
}

int agx_create_request_decode(struct agx_create_request *q, struct agx_str bytes,
                              struct agx_error **err)
{
    struct agx_unpack u;
    int r;

    agx_unpack_init(&u, AGX_INVALID_ARGUMENT, err);
    agx_create_request_init(q);
    r = create_unpack(&u, bytes, q);
    agx_unpack_done(&u);
    if (r < 0)
        agx_create_request_done(q);
    return r;
}

int agx_create_request_encode(struct agx_buf *out, const struct agx_create_request *q)
{
    create_pb m = AGBOX__V1__CREATE_SANDBOX_REQUEST__INIT;
    Agbox__V1__CreateSpec spec = AGBOX__V1__CREATE_SPEC__INIT;
    struct agx_pack p;

    agx_pack_init(&p);
    if (q->has_spec) {
        agx_spec_pack(&p, &spec, &q->spec);
        m.create_spec = &spec;
    }
    m.sandbox_id = agx_pack_text(q->sandbox_id);
    m.config_yaml = (ProtobufCBinaryData){ q->config_yaml.len, q->config_yaml.data };
    return agx_pack(&p, &m.base, out);
}

void agx_create_request_done(struct agx_create_request *q)
{
    agx_spec_done(&q->spec);
    free(q->sandbox_id);
    agx_buf_done(&q->config_yaml);
    agx_create_request_init(q);
}

static int exec_unpack(struct agx_unpack *u, struct agx_str bytes, struct agx_exec_request *q)
{
    struct agx_exec *e = &q->exec;
    exec_pb *m;
    int r = agx_unpack_message(u, &agbox__v1__create_exec_request__descriptor, bytes, &m);

    if (r < 0)
        return r;
    q->has_stdin = m->stdin;
    if ((r = agx_unpack_text(u, m->exec_id, &e->id)) < 0 ||
        (r = agx_unpack_id(u, m->sandbox_id, &e->sandbox_id)) < 0 ||
        (r = agx_unpack_words(u, "command", m->n_command, m->command, &e->command)) < 0 ||
        (r = agx_unpack_text(u, m->cwd, &e->cwd)) < 0 ||
        (r = agx_unpack_pairs(u, "env_overrides", m->n_env_overrides, m->env_overrides,
                              &e->env_overrides)) < 0 ||
        (r = agx_unpack_duration(u, "deadline", m->deadline, &e->deadline_ns)) < 0)
        return r;
    if (!m->deadline)
        e->deadline_ns = 0;
    return 0;
}

int agx_exec_request_decode(struct agx_exec_request *q, struct agx_str bytes,
                            struct agx_error **err)
{
    struct agx_unpack u;
    int r;

    agx_unpack_init(&u, AGX_INVALID_ARGUMENT, err);
    *q = (struct agx_exec_request){ 0 };
    r = exec_unpack(&u, bytes, q);
    agx_unpack_done(&u);
    if (r < 0)
        agx_exec_request_done(q);
    return r;
}

int agx_exec_request_encode(struct agx_buf *out, const struct agx_exec_request *q)
{
    const struct agx_exec *e = &q->exec;
    exec_pb m = AGBOX__V1__CREATE_EXEC_REQUEST__INIT;
    struct agx_pack p;

    agx_pack_init(&p);
    m.sandbox_id = agx_pack_text(e->sandbox_id);
    m.n_command = e->command.len;
    m.command = e->command.items;
    m.cwd = agx_pack_text(e->cwd);
    m.env_overrides =
        agx_pack_pairs(&p, &agbox__v1__create_exec_request__env_overrides_entry__descriptor,
                       &e->env_overrides, &m.n_env_overrides);
    m.exec_id = agx_pack_text(e->id);
    m.deadline = agx_pack_duration(&p, e->deadline_ns != 0 ? e->deadline_ns : AGX_NS_UNSET);
    m.stdin = q->has_stdin;
    return agx_pack(&p, &m.base, out);
}

void agx_exec_request_done(struct agx_exec_request *q)
{
    agx_exec_done(&q->exec);
    *q = (struct agx_exec_request){ 0 };
}

int agx_sandbox_id_decode(struct agx_str bytes, char **ret_id, struct agx_error **err)
{
    Agbox__V1__GetSandboxRequest *m; /* the others differ only in their names */
    struct agx_unpack u;
    int r;

    agx_unpack_init(&u, AGX_INVALID_ARGUMENT, err);
    r = agx_unpack_message(&u, &agbox__v1__get_sandbox_request__descriptor, bytes, &m);
    if (r == 0)
        r = agx_unpack_id(&u, m->sandbox_id, ret_id);
    agx_unpack_done(&u);
    return r;
}

int agx_exec_id_decode(struct agx_str bytes, char **ret_id, struct agx_error **err)
{
    Agbox__V1__GetExecRequest *m;
    struct agx_unpack u;
    int r;

    agx_unpack_init(&u, AGX_INVALID_ARGUMENT, err);
    r = agx_unpack_message(&u, &agbox__v1__get_exec_request__descriptor, bytes, &m);
    if (r == 0)
        r = agx_unpack_id(&u, m->exec_id, ret_id);
    agx_unpack_done(&u);
    return r;
}

int agx_id_encode(struct agx_buf *out, const char *id)
{
    Agbox__V1__GetSandboxRequest m = AGBOX__V1__GET_SANDBOX_REQUEST__INIT;

    m.sandbox_id = agx_pack_text(id);
    return agx_pack_plain(&m.base, out);
}

int agx_list_request_decode(struct agx_list_request *q, struct agx_str bytes,
                            struct agx_error **err)
{
    struct agx_unpack u;
    list_pb *m;
    int r;

    agx_unpack_init(&u, AGX_INVALID_ARGUMENT, err);
    *q = (struct agx_list_request){ 0 };
    r = agx_unpack_message(&u, &agbox__v1__list_sandboxes_request__descriptor, bytes, &m);
    if (r == 0) {
        q->include_deleted = m->include_deleted;
        r = agx_unpack_pairs(&u, "label_selector", m->n_label_selector, m->label_selector,
                             &q->selector);
    }
    agx_unpack_done(&u);
    if (r < 0)
        agx_list_request_done(q);
    return r;
}

int agx_list_request_encode(struct agx_buf *out, const struct agx_list_request *q)
{
    list_pb m = AGBOX__V1__LIST_SANDBOXES_REQUEST__INIT;
    struct agx_pack p;

    agx_pack_init(&p);
    m.include_deleted = q->include_deleted;
    m.label_selector =
        agx_pack_pairs(&p, &agbox__v1__list_sandboxes_request__label_selector_entry__descriptor,
                       &q->selector, &m.n_label_selector);
    return agx_pack(&p, &m.base, out);
}

void agx_list_request_done(struct agx_list_request *q)
{
    agx_pairs_done(&q->selector);
    free(q->page_token);
    *q = (struct agx_list_request){ 0 };
}

int agx_delete_request_decode(struct agx_pairs *selector, struct agx_str bytes,
                              struct agx_error **err)
{
    struct agx_unpack u;
    delete_pb *m;
    int r;

    agx_unpack_init(&u, AGX_INVALID_ARGUMENT, err);
    r = agx_unpack_message(&u, &agbox__v1__delete_sandboxes_request__descriptor, bytes, &m);
    if (r == 0)
        r = agx_unpack_pairs(&u, "label_selector", m->n_label_selector, m->label_selector,
                             selector);
    agx_unpack_done(&u);
    if (r < 0)
        agx_pairs_done(selector);
    return r;
}

int agx_delete_request_encode(struct agx_buf *out, const struct agx_pairs *selector)
{
    delete_pb m = AGBOX__V1__DELETE_SANDBOXES_REQUEST__INIT;
    struct agx_pack p;

    agx_pack_init(&p);
    m.label_selector =
        agx_pack_pairs(&p, &agbox__v1__delete_sandboxes_request__label_selector_entry__descriptor,
                       selector, &m.n_label_selector);
    return agx_pack(&p, &m.base, out);
}

int agx_subscribe_request_decode(struct agx_subscribe_request *q, struct agx_str bytes,
                                 struct agx_error **err)
{
    struct agx_unpack u;
    subscribe_pb *m;
    int r;

    agx_unpack_init(&u, AGX_INVALID_ARGUMENT, err);
    *q = (struct agx_subscribe_request){ 0 };
    r = agx_unpack_message(&u, &agbox__v1__subscribe_sandbox_events_request__descriptor, bytes, &m);
    if (r == 0) {
        q->from_sequence = m->from_sequence;
        q->snapshot = m->include_current_snapshot;
        r = agx_unpack_id(&u, m->sandbox_id, &q->sandbox_id);
    }
    agx_unpack_done(&u);
    return r;
}

int agx_subscribe_request_encode(struct agx_buf *out, const struct agx_subscribe_request *q)
{
    subscribe_pb m = AGBOX__V1__SUBSCRIBE_SANDBOX_EVENTS_REQUEST__INIT;

    m.sandbox_id = agx_pack_text(q->sandbox_id);
    m.from_sequence = q->from_sequence;
    m.include_current_snapshot = q->snapshot;
    return agx_pack_plain(&m.base, out);
}

void agx_subscribe_request_done(struct agx_subscribe_request *q)
{
    free(q->sandbox_id);
    *q = (struct agx_subscribe_request){ 0 };
}

int agx_active_request_decode(struct agx_str bytes, char **ret_sandbox_id, struct agx_error **err)
{
    struct agx_unpack u;
    active_pb *m;
    int r;

    agx_unpack_init(&u, AGX_INVALID_ARGUMENT, err);
    *ret_sandbox_id = NULL;
    r = agx_unpack_message(&u, &agbox__v1__list_active_execs_request__descriptor, bytes, &m);
    if (r == 0 &&
        m->_sandbox_id_case == AGBOX__V1__LIST_ACTIVE_EXECS_REQUEST___SANDBOX_ID_SANDBOX_ID)
        r = agx_unpack_id(&u, m->sandbox_id, ret_sandbox_id);
    agx_unpack_done(&u);
    return r;
}

int agx_active_request_encode(struct agx_buf *out, const char *sandbox_id)
{
    active_pb m = AGBOX__V1__LIST_ACTIVE_EXECS_REQUEST__INIT;

    if (sandbox_id) {
        m._sandbox_id_case = AGBOX__V1__LIST_ACTIVE_EXECS_REQUEST___SANDBOX_ID_SANDBOX_ID;
        m.sandbox_id = agx_pack_text(sandbox_id);
    }
    return agx_pack_plain(&m.base, out);
}
