/* accept.c: the checks of a create before its first step. */
#include "daemon/manager/accept.h"

#include "backend/files/sources.h"
#include "base/mem.h"
#include "base/uuid.h"
#include "daemon/manager/manager_internal.h"

#include "base/banned.h"

/* A create whose spec a thread checks. */
struct agx_acceptance {
    struct agx_job job;
    struct agx_manager *manager;
    struct agx_list_node node; /* among those that a thread has, or will have */
    uid_t uid;
    char *id; /* NULL: the client gave none */
    struct agx_spec spec;
    struct agx_spec_host host;
    struct agx_sources_asker asker; /* holds its sources: a thread may hang */
    agx_answer_fn answer;           /* NULL: answered early, at the manager's close */
    void *user;
};

static void acceptance_free(struct agx_acceptance *a)
{
    agx_spec_done(&a->spec);
    agx_sources_unref(a->asker.sources);
    free(a->id);
    free(a);
}

/* Queues at the unit that already has the id: the outcome of the earlier create decides. */
static void queue_behind(struct agx_unit *u, uid_t uid, struct agx_spec *take_spec,
                         agx_answer_fn answer, void *user)
{
    struct agx_input *in = agx_input_new(AGX_INPUT_SANDBOX);

    in->on = AGX_ON_CREATE;
    in->uid = uid;
    in->spec = agx_new(struct agx_spec);
    *in->spec = *take_spec;
    agx_spec_init(take_spec);
    in->answer = answer;
    in->user = user;
    agx_unit_push(u, in);
}

static int make_unit(struct agx_manager *e, uid_t uid, const char *id, struct agx_spec *take_spec,
                     struct agx_words *take_warnings, struct agx_unit **ret, struct agx_error **err)
{
    struct agx_sandbox sb;
    int r = agx_sandbox_init(&sb, id, take_spec, err);

    if (r < 0)
        return r;
    sb.owner_uid = (uint32_t)uid;
    sb.warnings = *take_warnings;
    *take_warnings = (struct agx_words){ 0 };
    *ret = agx_unit_new(e, &sb);
    agx_uid_quota_add(&e->uid_quota, uid, AGX_UID_QUOTA_SANDBOXES, &(*ret)->counted);
    return 0;
}

/* Returns 1 when the id was ever used before. A generated id is not looked up: the commit would
 * refuse a duplicate. */
static int accept_check(struct agx_manager *e, const char *id, const struct agx_spec *spec,
                        struct agx_words *warnings, struct agx_error **err)
{
    int r = id ? agx_ident_check("sandbox_id", agx_str_from(id), err) : 0;

    if (r == 0)
        r = agx_backend_check(e->config.backend, spec, warnings, err);
    if (r == 0 && id && !agx_map_get(&e->units, agx_str_from(id)))
        r = agx_schema_is_reserved(e->config.store, AGX_TABLE_SANDBOX_IDS, id, err);
    return r;
}

void agx_accept_admit(struct agx_manager *e, uid_t uid, const char *id, struct agx_spec *take_spec,
                      agx_answer_fn answer, void *user)
{
    _cleanup_(agx_words_done) struct agx_words warnings = { 0 };
    char uuid[AGX_UUID_TEXT_SIZE];
    struct agx_error *error = NULL;
    struct agx_unit *u;
    struct agx_input *in;
    int r = 0;

    if (!id)
        r = agx_uuid_new(uuid, &error);
    if (r == 0)
        r = accept_check(e, id, take_spec, &warnings, &error);
    if (r > 0) {
        agx_manager_refuse_later(e, answer, user, AGX_REASON_SANDBOX_ID_ALREADY_EXISTS, id);
        agx_spec_done(take_spec);
        return;
    }
    u = r == 0 && id ? agx_map_get(&e->units, agx_str_from(id)) : NULL;
    if (u) {
        queue_behind(u, uid, take_spec, answer, user);
        return;
    }
    if (r == 0)
        r = agx_uid_quota_check(&e->uid_quota, uid, AGX_UID_QUOTA_SANDBOXES, &error);
    if (r == 0)
        r = make_unit(e, uid, id ? id : uuid, take_spec, &warnings, &u, &error);
    if (r < 0) {
        agx_spec_done(take_spec);
        agx_manager_answer_later(e, answer, user, &error, AGX_REASON_NONE, NULL);
        return;
    }
    in = agx_input_new(AGX_INPUT_SANDBOX);
    in->on = AGX_ON_CREATE;
    in->answer = answer;
    in->user = user;
    agx_unit_push(u, in);
}

static int accept_run(struct agx_job *j, struct agx_error **err)
{
    struct agx_acceptance *a = container_of(j, struct agx_acceptance, job);

    return agx_spec_accept(&a->spec, &a->host, err);
}

static void done(struct agx_job *j, struct agx_error *error)
{
    struct agx_acceptance *a = container_of(j, struct agx_acceptance, job);

    agx_list_remove(&a->node);
    if (!a->answer)
        agx_error_free(error);
    else if (error)
        a->answer(a->user, &(struct agx_answer){ .error = error });
    else
        agx_accept_admit(a->manager, a->uid, a->id, &a->spec, a->answer, a->user);
    acceptance_free(a);
}

void agx_accept_close(struct agx_manager *e)
{
    struct agx_acceptance *a;

    while ((a = AGX_LIST_TAKE(&e->acceptances, struct agx_acceptance, node))) {
        agx_manager_refuse_stopping(e, a->answer, a->user);
        a->answer = NULL;
    }
}

static const struct agx_job_kind acceptance_kind = { .name = "accept",
                                                     .run = accept_run,
                                                     .done = done };

/* Takes the spec's contents. */
static struct agx_acceptance *acceptance_new(struct agx_manager *e, uid_t uid, const char *id,
                                             struct agx_spec *take_spec)
{
    struct agx_acceptance *a = agx_new(struct agx_acceptance);

    a->job.kind = &acceptance_kind;
    a->manager = e;
    a->uid = uid;
    a->id = id ? agx_str_dup(agx_str_from(id)) : NULL;
    if (id && !a->id)
        abort();
    a->spec = *take_spec;
    agx_spec_init(take_spec);
    a->host = e->config.host;
    if (!a->host.look) {
        a->asker = (struct agx_sources_asker){ agx_sources_ref(e->config.sources), uid };
        a->host.look = agx_sources_look;
        a->host.user = &a->asker;
    }
    return a;
}

void agx_manager_create(struct agx_manager *e, uid_t uid, const char *id,
                        struct agx_spec *take_spec, agx_answer_fn answer, void *user)
{
    bool looks = take_spec->mounts_len > 0 || take_spec->copies_len > 0;
    struct agx_error *error = NULL;
    struct agx_acceptance *a;
    int r;

    agx_loop_assert(e->loop);
    a = acceptance_new(e, uid, id, take_spec);
    a->answer = answer;
    a->user = user;
    if (e->closing)
        r = agx_error_set(&error, AGX_UNAVAILABLE, "the daemon is stopping");
    else if (looks)
        r = agx_job_start(&a->job, e->accept_pool, &error);
    else
        r = agx_spec_accept(&a->spec, &a->host, &error);
    if (r < 0)
        agx_manager_answer_later(e, answer, user, &error, AGX_REASON_NONE, NULL);
    else if (looks)
        agx_list_push_front(&e->acceptances, &a->node);
    else
        agx_accept_admit(e, uid, id, &a->spec, answer, user);
    if (r < 0 || !looks)
        acceptance_free(a);
}
