/*
 * state_query.c: the state of one sandbox or of all.
 *
 *     AWAIT --> LIST --> done
 *
 * What runs is known in memory. Directories are read because one may have been removed by hand, and
 * because one without a record is left of an interrupted create.
 */
#include "backend/native/native_internal.h"

#include "backend/query_op.h"
#include "base/mem.h"

#include "base/banned.h"

enum { LOOK_DONE = AGX_OP_DONE, LOOK_AWAIT, LOOK_LIST };

struct look {
    struct agx_query_op query;
    struct agx_native *native;
    agx_backend_seen_fn seen;
    struct agx_words found; /* ids that have a directory */
};

static struct look *state_query_of(struct agx_op *op)
{
    return container_of(op, struct look, query.op);
}

static int enter_await(struct agx_op *op, struct agx_error **err)
{
    if (state_query_of(op)->native->loaded)
        return agx_op_wait(op, 0, LOOK_LIST, err);
    agx_op_pause(op, AGX_NATIVE_LOAD_MS);
    return agx_op_wait(op, 0, LOOK_AWAIT, err);
}

struct list_job {
    struct agx_job job;
    struct look *look;
    const struct agx_boxdirs *dirs; /* the backend's, which waits for its pools */
    char *id;
    struct agx_words found;
};

static int run_list(struct agx_job *j, struct agx_error **err)
{
    struct list_job *x = container_of(j, struct list_job, job);

    if (!x->id)
        return agx_boxdirs_list(x->dirs, &x->found, err);
    return agx_boxdirs_has(x->dirs, x->id) ? agx_words_add(&x->found, agx_str_from(x->id), err) : 0;
}

static void list_free(struct list_job *x)
{
    agx_words_done(&x->found);
    free(x->id);
    free(x);
}

static void list_done(struct agx_job *j, struct agx_error *error)
{
    struct list_job *x = container_of(j, struct list_job, job);
    struct look *l = x->look;

    l->found = x->found;
    x->found = (struct agx_words){ 0 };
    list_free(x);
    agx_op_fail(&l->query.op, &error);
    agx_op_arrive(&l->query.op);
}

static const struct agx_job_kind list_kind = { .name = "list", .run = run_list, .done = list_done };

static int enter_list(struct agx_op *op, struct agx_error **err)
{
    struct look *l = state_query_of(op);
    struct list_job *x = agx_new(struct list_job);
    int r;

    x->job.kind = &list_kind;
    x->look = l;
    x->dirs = &l->native->dirs;
    r = agx_text_set(&x->id, l->query.sandbox_id, err);
    if (r == 0)
        r = agx_job_start(&x->job, l->native->disk_pool, err);
    if (r < 0)
        list_free(x);
    else
        agx_op_hold(&l->query.op);
    return agx_op_wait(&l->query.op, r, LOOK_DONE, err);
}

/* ---- telling ---- */

static enum agx_seen seen_of(const struct agx_native_box *box, size_t part)
{
    if (agx_native_part_runs(box, part))
        return AGX_SEEN_RUNNING;
    return box->state.parts[part].oom ? AGX_SEEN_OOM : AGX_SEEN_EXITED;
}

static void tell_one(const struct look *l, const char *id, bool there)
{
    const struct agx_native_box *box = agx_native_box_find(l->native, id);
    struct agx_backend_seen seen = { .sandbox_id = id, .primary = AGX_SEEN_MISSING };
    uint8_t companions[AGX_SPEC_ITEMS_MAX];

    if (there && box && box->known && box->state.made) {
        seen.primary = seen_of(box, 0);
        seen.companions_len = box->state.n_parts - 1;
        for (size_t i = 0; i < seen.companions_len; i++)
            companions[i] = (uint8_t)seen_of(box, i + 1);
    } else {
        seen.remains = there || (box && box->known);
    }
    seen.companions = companions;
    l->seen(l->query.user, &seen);
}

static void state_query_tell(const struct look *l)
{
    if (l->query.sandbox_id)
        tell_one(l, l->query.sandbox_id, l->found.len > 0);
    for (size_t i = 0; !l->query.sandbox_id && i < l->found.len && agx_query_op_is_heard(&l->query);
         i++) {
        if (agx_ident_check("sandbox_id", agx_str_from(l->found.items[i]), NULL) == 0)
            tell_one(l, l->found.items[i], true);
    }
}

static void state_query_ended(struct agx_op *op, struct agx_error *error)
{
    struct look *l = state_query_of(op);

    if (!error && agx_query_op_is_heard(&l->query))
        state_query_tell(l);
    agx_query_op_end(&l->query, error);
    agx_words_done(&l->found);
    free(l);
}

static const struct agx_op_state look_states[] = {
    [LOOK_AWAIT] = { "await", enter_await, agx_op_cancel_held },
    [LOOK_LIST] = { "list", enter_list, agx_op_cancel_held },
};

static const struct agx_op_kind look_kind = {
    .name = "native-look",
    .states = look_states,
    .n_states = AGX_ARRAY_LEN(look_states),
    .finish = state_query_ended,
};

/* ---- start ---- */

int agx_native_look(struct agx_backend *b, const char *sandbox_id, agx_backend_seen_fn seen,
                    agx_done_fn done, void *user, struct agx_backend_op **ret_op,
                    struct agx_error **err)
{
    struct look *l = agx_new(struct look);
    int r = agx_query_op_init(&l->query, b, sandbox_id, done, user, err);

    if (r < 0) {
        free(l);
        return r;
    }
    l->native = agx_native_of(b);
    l->seen = seen;
    agx_query_op_start(&l->query, &look_kind, &l->native->operations, ret_op);
    return 0;
}
