/*
 * agbox_list.c: lists of sandboxes, whole (agbox.v1) or by pages (agentix.v1).
 *
 * A list is made in slices of AGX_LIST_SLICE. Each slice begins where the last ended, by creation
 * time and id, whose order never changes. So a sandbox that exists all the time is listed once; one
 * that is created or deleted meanwhile may be missing or not. A page token is such a position too.
 */
#include "daemon/service/service_internal.h"

#include "base/mem.h"
#include "core/label.h"
#include "wire/control_request.h"
#include "wire/reply.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/banned.h"

/* A position in list order. */
struct place {
    int64_t created_ns;
    char id[AGX_IDENT_MAX + 1]; /* empty: before all */
};

struct list {
    struct agx_service *service;
    struct agx_grpc_call *call;
    struct agx_slice slice;
    struct agx_list_request q;
    struct agx_buf out;
    struct place at;   /* position of the last one visited */
    struct place last; /* position of the last one in `out` */
    uint32_t max;      /* page size; 0: no pages */
    uint32_t found;
    size_t looked; /* in this slice */
    bool more;     /* there is another page */
    bool failed;
};

/* Room for a position as text: "<creation in ns>.<id>". */
enum { TOKEN_SIZE = AGX_IDENT_MAX + 32 };

static void list_free(struct list *l)
{
    agx_list_request_done(&l->q);
    agx_buf_done(&l->out);
    free(l);
}

static void place_set(struct place *p, const struct agx_sandbox *sb)
{
    size_t len = AGX_MIN(strlen(sb->id), sizeof(p->id) - 1);

    p->created_ns = sb->created.wall_ns;
    memcpy(p->id, sb->id, len);
    p->id[len] = '\0';
}

static int place_parse(struct place *p, const char *token, struct agx_error **err)
{
    struct agx_str rest = agx_str_from(token), number;
    uint64_t ns;

    if (!agx_str_split(&rest, '.', &number) || !agx_parse_u64(number, INT64_MAX, &ns) ||
        agx_ident_check("page_token", rest, NULL) < 0)
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "page_token was not returned by an earlier page");
    p->created_ns = (int64_t)ns;
    memcpy(p->id, rest.ptr, rest.len);
    p->id[rest.len] = '\0';
    return 0;
}

static bool is_wanted(const struct agx_list_request *q, const struct agx_sandbox *sb)
{
    enum agx_state state = agx_sandbox_state(sb);

    if (q->states != 0 ? !(q->states & 1U << state)
                       : state == AGX_STATE_DELETED && !q->include_deleted)
        return false;
    return agx_label_match(&sb->spec.labels, &q->selector);
}

static bool page_is_full(const struct list *l)
{
    return l->max > 0 && l->found > 0 && (l->found >= l->max || l->out.len >= AGX_PAGE_BYTES_MAX);
}

static int on_sandbox(void *user, const struct agx_sandbox *sb)
{
    struct list *l = user;

    l->looked++;
    if (is_wanted(&l->q, sb)) {
        if (page_is_full(l)) {
            l->more = true;
            return 1;
        }
        if (agx_service_put_sandbox(l->service, &l->out, sb) < 0) {
            l->failed = true;
            return 1;
        }
        l->found++;
        if (l->max > 0)
            place_set(&l->last, sb);
    }
    place_set(&l->at, sb);
    return 0;
}

static void list_finish(struct list *l)
{
    char token[TOKEN_SIZE];

    if (l->more) {
        (void)snprintf(token, sizeof(token), "%" PRId64 ".%s", l->last.created_ns, l->last.id);
        if (agx_reply_page_token(&l->out, token) < 0)
            l->failed = true;
    }
    if (l->failed)
        agx_service_fail_memory(l->call);
    else
        agx_grpc_call_reply(l->call, agx_buf_peek(&l->out));
    list_free(l);
}

static void run_slice(struct agx_slice *slice)
{
    struct list *l = container_of(slice, struct list, slice);
    struct agx_service *s = l->service;

    l->looked = 0;
    agx_manager_list(s->config.manager, l->at.created_ns, l->at.id[0] ? l->at.id : NULL,
                     AGX_LIST_SLICE, on_sandbox, l);
    if (l->failed || l->more || l->looked < AGX_LIST_SLICE)
        list_finish(l);
    else
        agx_slices_add(&s->slices, slice);
}

static void on_ended(void *user, enum agx_code code)
{
    struct list *l = user;

    (void)code;
    agx_slices_remove(&l->service->slices, &l->slice);
    list_free(l);
}

static const struct agx_grpc_call_ops list_ops = { .ended = on_ended };

static struct list *list_new(struct agx_service *s, struct agx_grpc_call *call)
{
    struct list *l = agx_new(struct list);

    l->service = s;
    l->call = call;
    l->slice.run = run_slice;
    l->out.max = AGX_GRPC_CONN_BYTES_MAX;
    return l;
}

static void list_start(struct list *l, int r, struct agx_error **take_error)
{
    if (r < 0) {
        agx_service_fail(l->call, take_error, &(struct agx_refusal){ 0 });
        list_free(l);
        return;
    }
    agx_grpc_call_watch(l->call, &list_ops, l);
    agx_slices_begin(&l->service->slices, &l->slice);
}

void agx_service_list(void *service, struct agx_grpc_call *call, struct agx_str request)
{
    struct list *l = list_new(service, call);
    struct agx_error *err = NULL;
    int r = agx_list_request_decode(&l->q, request, &err);

    list_start(l, r, &err);
}

void agx_service_list_page(void *service, struct agx_grpc_call *call, struct agx_str request)
{
    struct list *l = list_new(service, call);
    struct agx_error *err = NULL;
    int r = agx_page_request_decode(&l->q, request, &err);

    if (r == 0) {
        l->max = l->service->config.page_max;
        if (l->q.page_size > 0)
            l->max = AGX_MIN(l->max, l->q.page_size);
        if (l->q.page_token)
            r = place_parse(&l->at, l->q.page_token, &err);
    }
    list_start(l, r, &err);
}
