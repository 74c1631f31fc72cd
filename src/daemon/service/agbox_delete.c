/*
 * agbox_delete.c: DeleteSandboxes: searches sandboxes in slices, asks the manager to delete
 * each match, and answers with those that it accepted.
 *
 * When the client leaves, the search ends; requested deletes go on.
 */
#include "daemon/service/service_internal.h"

#include "base/mem.h"
#include "core/label.h"
#include "wire/reply.h"
#include "wire/sandbox_request.h"

#include "base/banned.h"

struct sweep {
    struct agx_service *service;
    struct agx_grpc_call *call; /* NULL: it has ended */
    struct agx_slice slice;
    struct agx_pairs selector;
    int64_t at_created_ns; /* position of the last one visited */
    char at_id[AGX_IDENT_MAX + 1];
    size_t looked;            /* in this slice */
    struct agx_words matches; /* of this slice */
    struct agx_words deleted;
    size_t asked;            /* answers outstanding */
    bool searched;           /* the search is complete */
    struct agx_error *error; /* the first */
};

static void sweep_free(struct sweep *w)
{
    agx_pairs_done(&w->selector);
    agx_words_done(&w->matches);
    agx_words_done(&w->deleted);
    agx_error_free(w->error);
    free(w);
}

static int agbox_delete_compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int put_deleted(struct agx_buf *out, struct agx_words *ids)
{
    int r = 0;

    if (ids->len > 0)
        qsort(ids->items, ids->len, sizeof(ids->items[0]), agbox_delete_compare);
    for (size_t i = 0; i < ids->len && r == 0; i++)
        r = agx_reply_deleted_id(out, ids->items[i]);
    return r < 0 ? r : agx_reply_deleted_count(out, (uint32_t)ids->len);
}

/* Answers once the search and all deletes are answered. */
static void sweep_settle(struct sweep *w)
{
    struct agx_service *s = w->service;

    if (w->asked > 0 || (w->call && !w->searched))
        return;
    if (w->call && w->error)
        agx_service_fail(w->call, &w->error, &(struct agx_refusal){ 0 });
    else if (w->call)
        agx_service_reply(s, w->call, put_deleted(agx_service_scratch(s), &w->deleted));
    sweep_free(w);
}

static void on_answer(void *user, const struct agx_answer *a)
{
    struct sweep *w = user;
    struct agx_error *error = a->error;

    w->asked--;
    if (!error)
        (void)!agx_words_add(&w->deleted, agx_str_from(a->sandbox->id), &error);
    else if (error->code == AGX_NOT_FOUND)
        error = agx_error_free(error); /* purged since it was found */
    if (error)
        agx_error_propagate(&w->error, &error);
    sweep_settle(w);
}

static int on_sandbox(void *user, const struct agx_sandbox *sb)
{
    struct sweep *w = user;
    enum agx_state state = agx_sandbox_state(sb);
    size_t len = AGX_MIN(strlen(sb->id), sizeof(w->at_id) - 1);

    w->looked++;
    w->at_created_ns = sb->created.wall_ns;
    memcpy(w->at_id, sb->id, len);
    w->at_id[len] = '\0';
    if (state == AGX_STATE_DELETING || state == AGX_STATE_DELETED ||
        !agx_label_match(&sb->spec.labels, &w->selector))
        return 0;
    return agx_words_add(&w->matches, agx_str_from(sb->id), &w->error) < 0;
}

static void run_slice(struct agx_slice *slice)
{
    struct sweep *w = container_of(slice, struct sweep, slice);
    struct agx_service *s = w->service;

    w->looked = 0;
    agx_manager_list(s->config.manager, w->at_created_ns, w->at_id[0] ? w->at_id : NULL,
                     AGX_LIST_SLICE, on_sandbox, w);
    w->asked += w->matches.len;
    for (size_t i = 0; i < w->matches.len; i++)
        agx_manager_ask(s->config.manager, w->matches.items[i], AGX_ON_DELETE, on_answer, w);
    agx_words_done(&w->matches);
    w->searched = w->error || w->looked < AGX_LIST_SLICE;
    if (w->searched)
        sweep_settle(w);
    else
        agx_slices_add(&s->slices, slice);
}

static void on_ended(void *user, enum agx_code code)
{
    struct sweep *w = user;

    (void)code;
    w->call = NULL;
    agx_slices_remove(&w->service->slices, &w->slice);
    sweep_settle(w);
}

static const struct agx_grpc_call_ops sweep_ops = { .ended = on_ended };

void agx_service_delete_many(void *service, struct agx_grpc_call *call, struct agx_str request)
{
    struct sweep *w = agx_new(struct sweep);
    struct agx_error *err = NULL;
    int r = agx_delete_request_decode(&w->selector, request, &err);

    w->service = service;
    w->call = call;
    w->slice.run = run_slice;
    if (r == 0)
        r = agx_label_check_selector(&w->selector, &err);
    if (r < 0) {
        agx_service_fail(call, &err, &(struct agx_refusal){ 0 });
        sweep_free(w);
        return;
    }
    agx_grpc_call_watch(call, &sweep_ops, w);
    agx_slices_begin(&w->service->slices, &w->slice);
}
