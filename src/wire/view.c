/* view.c: the answers of both services, as clients read them. */
#include "wire/view.h"

#include "wire/spec_wire_internal.h"

#include "agentix_v1_control.pb-c.h"

#include "base/banned.h"

/* The generated names, shortened. */
typedef Agbox__V1__ExecStatus exec_pb;
typedef Agbox__V1__SandboxEvent event_pb;
typedef Agbox__V1__SandboxHandle handle_pb;

/* An enum's number; an unknown one, from a newer server, becomes 0. */
static int known(int number, int count)
{
    return number > 0 && number < count ? number : 0;
}

static int view_handle(struct agx_unpack *u, const handle_pb *m, struct agx_sandbox_view *v)
{
    int r;

    *v = (struct agx_sandbox_view){ .state = known((int)m->state, AGX_STATE_COUNT),
                                    .last_sequence = m->last_event_sequence };
    agx_spec_init(&v->spec);
    if ((r = agx_unpack_id(u, m->sandbox_id, &v->id)) < 0 ||
        (r = agx_unpack_time(u, "created_at", m->created_at, &v->created_at_ns)) < 0 ||
        (r = agx_unpack_time(u, "state_changed_at", m->state_changed_at, &v->changed_at_ns)) < 0 ||
        (r = agx_unpack_text(u, m->image, &v->spec.image)) < 0 ||
        (r = agx_unpack_pairs(u, "labels", m->n_labels, m->labels, &v->spec.labels)) < 0 ||
        (r = agx_companions_unpack(u, m->n_companion_containers, m->companion_containers,
                                   &v->spec)) < 0 ||
        (r = agx_unpack_text(u, m->error_code, &v->error_code)) < 0 ||
        (r = agx_unpack_text(u, m->error_message, &v->error_message)) < 0 ||
        (r = agx_unpack_words(u, "warnings", m->n_warnings, m->warnings, &v->warnings)) < 0) {
        agx_sandbox_view_done(v);
        return r;
    }
    return 0;
}

int agx_sandbox_view_decode(struct agx_sandbox_view *v, struct agx_str bytes, bool *ret_timed_out,
                            struct agx_error **err)
{
    /* The others have only its first field. */
    Agentix__V1__WaitSandboxResponse *m;
    struct agx_unpack u;
    int r;

    agx_unpack_init(&u, AGX_INTERNAL, err);
    r = agx_unpack_message(&u, &agentix__v1__wait_sandbox_response__descriptor, bytes, &m);
    if (r == 0)
        r = m->sandbox ? view_handle(&u, m->sandbox, v)
                       : agx_unpack_fault(&u, "sandbox", "is missing in the answer");
    if (r == 0 && ret_timed_out)
        *ret_timed_out = m->timed_out;
    agx_unpack_done(&u);
    return r;
}

void agx_sandbox_view_done(struct agx_sandbox_view *v)
{
    if (!v)
        return;
    free(v->id);
    agx_spec_done(&v->spec);
    free(v->error_code);
    free(v->error_message);
    agx_words_done(&v->warnings);
    *v = (struct agx_sandbox_view){ 0 };
}

static int view_page(struct agx_unpack *u, const Agentix__V1__ListSandboxesResponse *m,
                     struct agx_sandbox_views *v)
{
    int r = agx_unpack_text(u, m->next_page_token, &v->next_page_token);

    if (r < 0 || m->n_sandboxes == 0)
        return r;
    v->items = calloc(m->n_sandboxes, sizeof(*v->items));
    if (!v->items)
        return agx_error_no_memory(u->err);
    while (r == 0 && v->len < m->n_sandboxes) {
        r = view_handle(u, m->sandboxes[v->len], &v->items[v->len]);
        v->len += r == 0;
    }
    return r;
}

int agx_sandbox_views_decode(struct agx_sandbox_views *v, struct agx_str bytes,
                             struct agx_error **err)
{
    Agentix__V1__ListSandboxesResponse *m; /* agbox.v1's has only its first field */
    struct agx_unpack u;
    int r;

    agx_unpack_init(&u, AGX_INTERNAL, err);
    *v = (struct agx_sandbox_views){ 0 };
    r = agx_unpack_message(&u, &agentix__v1__list_sandboxes_response__descriptor, bytes, &m);
    if (r == 0)
        r = view_page(&u, m, v);
    agx_unpack_done(&u);
    if (r < 0)
        agx_sandbox_views_done(v);
    return r;
}

void agx_sandbox_views_done(struct agx_sandbox_views *v)
{
    if (!v)
        return;
    for (size_t i = 0; i < v->len; i++)
        agx_sandbox_view_done(&v->items[i]);
    free(v->items);
    free(v->next_page_token);
    *v = (struct agx_sandbox_views){ 0 };
}

static int view_exec(struct agx_unpack *u, const exec_pb *m, struct agx_exec_view *v)
{
    struct agx_exec *e = &v->exec;
    int r;

    *v = (struct agx_exec_view){ .last_sequence = m->last_event_sequence };
    e->state = known((int)m->state, AGX_EXEC_STATE_COUNT);
    e->exit_code = m->exit_code;
    if ((r = agx_unpack_id(u, m->exec_id, &e->id)) < 0 ||
        (r = agx_unpack_id(u, m->sandbox_id, &e->sandbox_id)) < 0 ||
        (r = agx_unpack_words(u, "command", m->n_command, m->command, &e->command)) < 0 ||
        (r = agx_unpack_text(u, m->cwd, &e->cwd)) < 0 ||
        (r = agx_unpack_pairs(u, "env_overrides", m->n_env_overrides, m->env_overrides,
                              &e->env_overrides)) < 0 ||
        (r = agx_unpack_time(u, "created_at", m->created_at, &e->created.wall_ns)) < 0 ||
        (r = agx_unpack_duration(u, "deadline", m->deadline, &e->deadline_ns)) < 0 ||
        (r = agx_unpack_text(u, m->error_code, &e->error_code)) < 0 ||
        (r = agx_unpack_text(u, m->error, &e->error_message)) < 0) {
        agx_exec_view_done(v);
        return r;
    }
    if (!m->deadline)
        e->deadline_ns = 0;
    return 0;
}

int agx_exec_view_decode(struct agx_exec_view *v, struct agx_str bytes, bool *ret_timed_out,
                         struct agx_error **err)
{
    Agentix__V1__WaitExecResponse *m; /* GetExecResponse has only its first field */
    struct agx_unpack u;
    int r;

    agx_unpack_init(&u, AGX_INTERNAL, err);
    r = agx_unpack_message(&u, &agentix__v1__wait_exec_response__descriptor, bytes, &m);
    if (r == 0)
        r = m->exec ? view_exec(&u, m->exec, v)
                    : agx_unpack_fault(&u, "exec", "is missing in the answer");
    if (r == 0 && ret_timed_out)
        *ret_timed_out = m->timed_out;
    agx_unpack_done(&u);
    return r;
}

void agx_exec_view_done(struct agx_exec_view *v)
{
    if (!v)
        return;
    agx_exec_done(&v->exec);
    *v = (struct agx_exec_view){ 0 };
}

static int view_execs(struct agx_unpack *u, const Agbox__V1__ListActiveExecsResponse *m,
                      struct agx_exec_views *v)
{
    int r = 0;

    if (m->n_execs == 0)
        return 0;
    v->items = calloc(m->n_execs, sizeof(*v->items));
    if (!v->items)
        return agx_error_no_memory(u->err);
    while (r == 0 && v->len < m->n_execs) {
        r = view_exec(u, m->execs[v->len], &v->items[v->len]);
        v->len += r == 0;
    }
    return r;
}

int agx_exec_views_decode(struct agx_exec_views *v, struct agx_str bytes, struct agx_error **err)
{
    Agbox__V1__ListActiveExecsResponse *m;
    struct agx_unpack u;
    int r;

    agx_unpack_init(&u, AGX_INTERNAL, err);
    *v = (struct agx_exec_views){ 0 };
    r = agx_unpack_message(&u, &agbox__v1__list_active_execs_response__descriptor, bytes, &m);
    if (r == 0)
        r = view_execs(&u, m, v);
    agx_unpack_done(&u);
    if (r < 0)
        agx_exec_views_done(v);
    return r;
}

void agx_exec_views_done(struct agx_exec_views *v)
{
    if (!v)
        return;
    for (size_t i = 0; i < v->len; i++)
        agx_exec_view_done(&v->items[i]);
    free(v->items);
    *v = (struct agx_exec_views){ 0 };
}
