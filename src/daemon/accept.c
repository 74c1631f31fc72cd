/* accept.c: what comes before a create's first step. */
#include "daemon/accept.h"

#include "base/mem.h"
#include "base/uuid.h"
#include "daemon/engine_internal.h"
#include "daemon/sources.h"

#include "base/banned.h"

/* A create whose spec is looked at by a thread. */
struct acceptance {
    struct agx_job job;
    struct agx_engine *engine;
    uid_t uid;
    char *id; /* NULL: none was given */
    struct agx_spec spec;
    struct agx_spec_host host;
    struct agx_sources sources;
    agx_answer_fn answer;
    void *user;
};

static void acceptance_free(struct acceptance *a)
{
    agx_spec_done(&a->spec);
    free(a->id);
    free(a);
}

/* In front of the queue of the unit that has the id already: whoever is first decides. */
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

static int make_unit(struct agx_engine *e, uid_t uid, const char *id, struct agx_spec *take_spec,
                     struct agx_unit **ret, struct agx_error **err)
{
    struct agx_sandbox sb;
    int r = agx_sandbox_init(&sb, id, take_spec, err);

    if (r < 0)
        return r;
    sb.owner_uid = (uint32_t)uid;
    *ret = agx_unit_new(e, &sb);
    agx_tally_add(&e->tally, uid, AGX_TALLY_SANDBOXES, &(*ret)->counted);
    return 0;
}

/* 1: the id was used before, and is for ever. */
static int check_id(struct agx_engine *e, const char *id, const struct agx_spec *spec,
                    struct agx_error **err)
{
    int r = agx_ident_check("sandbox_id", agx_str_from(id), err);

    if (r == 0)
        r = agx_backend_check(e->config.backend, spec, err);
    if (r == 0 && !agx_map_get(&e->units, agx_str_from(id)))
        r = agx_schema_is_reserved(e->config.store, AGX_TABLE_SANDBOX_IDS, id, err);
    return r;
}

void agx_accept_admit(struct agx_engine *e, uid_t uid, const char *id, struct agx_spec *take_spec,
                      agx_answer_fn answer, void *user)
{
    char uuid[AGX_UUID_TEXT_SIZE];
    struct agx_error *error = NULL;
    struct agx_unit *u;
    struct agx_input *in;
    int r = 0;

    if (!id)
        r = agx_uuid_new(uuid, &error);
    if (r == 0)
        r = check_id(e, id ? id : uuid, take_spec, &error);
    if (r > 0) {
        agx_engine_refuse_later(e, answer, user, AGX_REASON_SANDBOX_ID_ALREADY_EXISTS,
                                id ? id : uuid);
        agx_spec_done(take_spec);
        return;
    }
    u = r == 0 && id ? agx_map_get(&e->units, agx_str_from(id)) : NULL;
    if (u) {
        queue_behind(u, uid, take_spec, answer, user);
        return;
    }
    if (r == 0)
        r = agx_tally_check(&e->tally, uid, AGX_TALLY_SANDBOXES, &error);
    if (r == 0)
        r = make_unit(e, uid, id ? id : uuid, take_spec, &u, &error);
    if (r < 0) {
        agx_spec_done(take_spec);
        agx_engine_answer_later(e, answer, user, &error, AGX_REASON_NONE, NULL);
        return;
    }
    in = agx_input_new(AGX_INPUT_SANDBOX);
    in->on = AGX_ON_CREATE;
    in->answer = answer;
    in->user = user;
    agx_unit_push(u, in);
}

static int run(struct agx_job *j, struct agx_error **err)
{
    struct acceptance *a = container_of(j, struct acceptance, job);

    return agx_spec_accept(&a->spec, &a->host, err);
}

static void done(struct agx_job *j, struct agx_error *error)
{
    struct acceptance *a = container_of(j, struct acceptance, job);

    if (a->engine->closing && !error)
        (void)agx_error_set(&error, AGX_UNAVAILABLE, "the daemon is stopping");
    if (error)
        a->answer(a->user, &(struct agx_answer){ .error = error });
    else
        agx_accept_admit(a->engine, a->uid, a->id, &a->spec, a->answer, a->user);
    acceptance_free(a);
}

static const struct agx_job_kind acceptance_kind = { .name = "accept", .run = run, .done = done };

/* Takes the spec's contents. */
static struct acceptance *acceptance_new(struct agx_engine *e, uid_t uid, const char *id,
                                         struct agx_spec *take_spec)
{
    struct acceptance *a = agx_new(struct acceptance);

    a->job.kind = &acceptance_kind;
    a->engine = e;
    a->uid = uid;
    a->id = id ? agx_str_dup(agx_str_from(id)) : NULL;
    if (id && !a->id)
        abort();
    a->spec = *take_spec;
    agx_spec_init(take_spec);
    a->host = e->config.host;
    if (!a->host.look) {
        a->sources = (struct agx_sources){ e->config.private_paths, e->config.private_paths_len };
        a->host.look = agx_sources_look;
        a->host.user = &a->sources;
    }
    return a;
}

void agx_engine_create(struct agx_engine *e, uid_t uid, const char *id, struct agx_spec *take_spec,
                       agx_answer_fn answer, void *user)
{
    bool looks = take_spec->mounts_len > 0 || take_spec->copies_len > 0;
    struct agx_error *error = NULL;
    struct acceptance *a;
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
        agx_engine_answer_later(e, answer, user, &error, AGX_REASON_NONE, NULL);
    else if (!looks)
        agx_accept_admit(e, uid, id, &a->spec, answer, user);
    if (r < 0 || !looks)
        acceptance_free(a);
}
