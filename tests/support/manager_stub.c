/* manager_stub.c: all objects are in arrays with linear search; answers and events wait in queues
 * that an idle handle empties. */
#include "tests/support/manager_stub_internal.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/uuid.h"
#include "wire/reply.h"

#include "base/banned.h"

struct agx_stamp stub_now(void)
{
    return (struct agx_stamp){ .wall_ns = agx_clock_wall_ns(), .mono_ns = agx_clock_ns() };
}

void *stub_grown(void *items, size_t n, size_t size)
{
    void *more = realloc(items, (n + 1) * size);

    if (!more)
        abort();
    return more;
}

static void on_idle(uv_idle_t *h);

void stub_wake(struct agx_manager *e)
{
    (void)uv_idle_start(&e->idle, on_idle);
}

static bool has_news(const struct agx_feed *f)
{
    if (f->box)
        return f->box->purged || f->at < f->box->n_events;
    return f->at < f->manager->position;
}

static void tell_readers(struct agx_manager *e)
{
    for (struct agx_feed *f = e->feeds; f;) {
        if (f->dry && has_news(f)) {
            f->dry = false;
            f->ops->ready(f->user);
            f = e->feeds; /* the list may have changed */
        } else {
            f = f->next;
        }
    }
}

void stub_pull(struct agx_manager *e, const char *sandbox_id, const struct agx_pull *pull)
{
    struct agx_feed *next;

    for (struct agx_feed *f = e->feeds; f; f = next) {
        next = f->next;
        if (!f->box && f->dry && f->ops->pull)
            f->ops->pull(f->user, f->at, sandbox_id, pull);
    }
}

struct stub_box *stub_box_of(struct agx_manager *e, const char *id)
{
    for (size_t i = 0; i < e->n_boxes; i++) {
        if (!e->boxes[i]->purged && strcmp(e->boxes[i]->sb.id, id) == 0)
            return e->boxes[i];
    }
    return NULL;
}

struct stub_run *stub_run_of(struct agx_manager *e, const char *id)
{
    for (size_t i = 0; i < e->n_runs; i++) {
        if (!e->runs[i]->box->purged && strcmp(e->runs[i]->exec.id, id) == 0)
            return e->runs[i];
    }
    return NULL;
}

/* The sandbox of an answer. The manager keeps a sandbox while an answer about it is due, so the
 * answer shows it even if it was purged after the request. */
static struct stub_box *answered_box(struct agx_manager *e, const char *id)
{
    struct stub_box *b = stub_box_of(e, id);

    for (size_t i = e->n_boxes; !b && i-- > 0;) {
        if (strcmp(e->boxes[i]->sb.id, id) == 0)
            b = e->boxes[i];
    }
    return b;
}

static void answer_one(struct agx_manager *e)
{
    struct stub_waiting *w = e->first;
    struct stub_box *b = w->sandbox_id ? answered_box(e, w->sandbox_id) : NULL;
    const struct agx_answer a = { .error = w->error,
                                  .reason = w->reason,
                                  .reason_id = w->reason_id,
                                  .sandbox = b ? &b->sb : NULL,
                                  .exec_id = w->exec_id,
                                  .out_path = "/logs/out",
                                  .err_path = "/logs/err" };

    e->first = w->next;
    if (!e->first)
        e->last = &e->first;
    e->use_code = AGX_NOT_FOUND;
    w->answer(w->user, &a);
    free(w->reason_id);
    free(w->sandbox_id);
    free(w->exec_id);
    free(w);
}

static void take_input(struct agx_manager *e)
{
    for (size_t i = 0; i < e->n_runs && !e->input_held; i++) {
        agx_done_fn taken = AGX_TAKE_PTR(e->runs[i]->taken);

        if (taken)
            taken(e->runs[i]->taken_user, NULL);
    }
}

static void on_idle(uv_idle_t *h)
{
    struct agx_manager *e = container_of(h, struct agx_manager, idle);

    (void)uv_idle_stop(h);
    while (!e->held && e->first)
        answer_one(e);
    take_input(e);
    stub_tell_use(e);
    tell_readers(e);
}

struct agx_manager *stub_manager_open(struct agx_loop *l)
{
    struct agx_manager *e = agx_new(struct agx_manager);

    e->loop = agx_loop_uv(l);
    e->last = &e->first;
    e->clock_ns = agx_clock_wall_ns();
    (void)uv_idle_init(e->loop, &e->idle);
    return e;
}

static void box_free(struct stub_box *b)
{
    for (size_t i = 0; i < b->n_events; i++) {
        agx_event_done(&b->events[i].event);
        agx_buf_done(&b->events[i].encoded);
    }
    free(b->events);
    agx_sandbox_done(&b->sb);
    free(b);
}

static void on_closed(uv_handle_t *h)
{
    free(container_of((uv_idle_t *)h, struct agx_manager, idle));
}

void stub_manager_close(struct agx_manager *e)
{
    ASSERT_NULL(e->feeds);
    while (e->first)
        answer_one(e);
    for (size_t i = 0; i < e->n_runs; i++)
        stub_run_free(e->runs[i]);
    for (size_t i = 0; i < e->n_boxes; i++)
        box_free(e->boxes[i]);
    free(e->runs);
    free(e->boxes);
    free(e->order);
    agx_error_free(e->fail);
    uv_close((uv_handle_t *)&e->idle, on_closed);
}

void stub_hold(struct agx_manager *e, bool on)
{
    e->held = on;
    stub_wake(e);
}

void stub_hold_input(struct agx_manager *e, bool on)
{
    e->input_held = on;
    stub_wake(e);
}

bool stub_input_waits(const struct agx_manager *e)
{
    for (size_t i = 0; i < e->n_runs; i++) {
        if (e->runs[i]->taken)
            return true;
    }
    return false;
}

void stub_fail(struct agx_manager *e, enum agx_code code, const char *message)
{
    e->fail = agx_error_free(e->fail);
    (void)agx_error_set(&e->fail, code, "%s", message);
}

size_t stub_waiting(const struct agx_manager *e)
{
    size_t n = 0;

    for (const struct stub_waiting *w = e->first; w; w = w->next)
        n++;
    return n;
}

/* Events. */

void stub_tell(struct agx_manager *e, struct stub_box *b, struct agx_event *take_event)
{
    struct stub_told *t;

    b->events = stub_grown(b->events, b->n_events, sizeof(*b->events));
    e->order = stub_grown(e->order, e->position, sizeof(struct stub_box *));
    t = &b->events[b->n_events++];
    *t = (struct stub_told){ .event = *take_event, .encoded = AGX_BUF_INIT(65536) };
    ASSERT_UINT(b->n_events, t->event.sequence);
    ASSERT_OK(agx_reply_event(&t->encoded, &t->event, b->sb.id, false));
    e->order[e->position] = b;
    t->position = ++e->position;
    stub_wake(e);
}

static int step(struct agx_manager *e, struct stub_box *b, enum agx_on on, enum agx_do op,
                enum agx_reason *ret_reason, struct agx_error **err)
{
    const struct agx_sandbox_input in = { .on = on, .op = op, .now = stub_now() };
    struct agx_sandbox_output out = { 0 };
    int r = agx_sandbox_step(&b->sb, &in, &out, err);

    *ret_reason = out.reason;
    if (r == 0 && out.has_event)
        stub_tell(e, b, &out.event);
    /* The operation that the step asks for counts as started at once. */
    return r;
}

void stub_move(struct agx_manager *e, const char *id, enum agx_on on, enum agx_do op)
{
    struct stub_box *b = stub_box_of(e, id);
    enum agx_reason reason;

    ASSERT_NOT_NULL(b);
    ASSERT_OK(step(e, b, on, op, &reason, NULL));
}

void stub_purge(struct agx_manager *e, const char *id)
{
    struct stub_box *b = stub_box_of(e, id);

    ASSERT_NOT_NULL(b);
    b->purged = true;
    stub_wake(e);
}

/* Requests. */

void stub_answer_later(struct agx_manager *e, agx_answer_fn answer, void *user,
                       const struct stub_waiting *what)
{
    struct stub_waiting *w = agx_new(struct stub_waiting);

    *w = *what;
    w->answer = answer;
    w->user = user;
    w->next = NULL;
    *e->last = w;
    e->last = &w->next;
    stub_wake(e);
}

static struct stub_box *box_new(struct agx_manager *e, const char *id, struct agx_spec *take_spec)
{
    struct stub_box *b = agx_new(struct stub_box);
    enum agx_reason reason;

    ASSERT_OK(agx_sandbox_init(&b->sb, id, take_spec, NULL));
    b->sb.created = stub_now();
    b->sb.created.wall_ns = ++e->clock_ns;
    e->boxes = stub_grown(e->boxes, e->n_boxes, sizeof(struct stub_box *));
    memmove(e->boxes + 1, e->boxes, e->n_boxes++ * sizeof(struct stub_box *));
    e->boxes[0] = b; /* the newest is first */
    ASSERT_OK(step(e, b, AGX_ON_CREATE, AGX_DO_NONE, &reason, NULL));
    return b;
}

void stub_add(struct agx_manager *e, const char *id, const char *label)
{
    struct agx_spec spec;

    agx_spec_init(&spec);
    ASSERT_OK(agx_text_set(&spec.image, "debian:12", NULL));
    if (label) {
        struct agx_str value = agx_str_from(label), key;

        (void)agx_str_split(&value, '=', &key);
        ASSERT_OK(agx_pairs_set(&spec.labels, key, value, NULL));
    }
    (void)box_new(e, id, &spec);
}

void stub_add_ready(struct agx_manager *e, const char *id, const char *label)
{
    stub_add(e, id, label);
    stub_move(e, id, AGX_ON_DONE, AGX_DO_CREATE);
}

static int look(void *user, const char *path, enum agx_path_kind *ret, struct agx_error **err)
{
    (void)user;
    (void)path;
    (void)err;
    *ret = AGX_PATH_DIRECTORY;
    return 0;
}

static int check_create(struct agx_manager *e, const char *id, struct agx_spec *spec,
                        struct stub_waiting *w)
{
    static const struct agx_spec_host host = { "/home/me", "/home/agbox", look, NULL };
    int r = agx_spec_accept(spec, &host, &w->error);

    if (r == 0 && id)
        r = agx_ident_check("sandbox_id", agx_str_from(id), &w->error);
    if (r == 0 && id && stub_box_of(e, id)) {
        w->reason = AGX_REASON_SANDBOX_ID_ALREADY_EXISTS;
        w->reason_id = strdup(id);
        r = agx_reason_error(w->reason, id, &w->error);
    }
    if (r == 0 && e->fail) {
        w->error = AGX_TAKE_PTR(e->fail);
        r = -1;
    }
    return r;
}

void agx_manager_create(struct agx_manager *e, uid_t uid, const char *id,
                        struct agx_spec *take_spec, agx_answer_fn answer, void *user)
{
    char uuid[AGX_UUID_TEXT_SIZE];
    struct stub_waiting w = { 0 };

    (void)uid;
    if (check_create(e, id, take_spec, &w) < 0) {
        agx_spec_done(take_spec);
    } else {
        ASSERT_OK(agx_uuid_new(uuid, NULL));
        w.sandbox_id = strdup(box_new(e, id ? id : uuid, take_spec)->sb.id);
    }
    stub_answer_later(e, answer, user, &w);
}

void agx_manager_ask(struct agx_manager *e, const char *id, enum agx_on on, agx_answer_fn answer,
                     void *user)
{
    struct stub_box *b = stub_box_of(e, id);
    struct stub_waiting w = { .reason_id = strdup(id), .sandbox_id = strdup(id) };

    if (e->fail) {
        w.error = AGX_TAKE_PTR(e->fail);
    } else if (!b) {
        w.reason = AGX_REASON_SANDBOX_NOT_FOUND;
        (void)agx_reason_error(w.reason, id, &w.error);
    } else {
        (void)!step(e, b, on, AGX_DO_NONE, &w.reason, &w.error);
    }
    stub_answer_later(e, answer, user, &w);
}

/* Reads. */

int agx_manager_find(struct agx_manager *e, const char *id, const struct agx_sandbox **ret,
                     struct agx_error **err)
{
    struct stub_box *b = stub_box_of(e, id);

    if (!b)
        return agx_reason_error(AGX_REASON_SANDBOX_NOT_FOUND, id, err);
    *ret = &b->sb;
    return 0;
}

void agx_manager_list(struct agx_manager *e, int64_t after_created_ns, const char *after_id,
                      size_t max, agx_sandbox_visit_fn visit, void *user)
{
    const struct agx_sandbox place = { .id = (char *)after_id,
                                       .created.wall_ns = after_created_ns };
    size_t n = 0;

    for (size_t i = 0; i < e->n_boxes && (max == 0 || n < max); i++) {
        if (e->boxes[i]->purged || (after_id && agx_sandbox_order(&e->boxes[i]->sb, &place) <= 0))
            continue;
        n++;
        if (visit(user, &e->boxes[i]->sb) > 0)
            return;
    }
}

void agx_manager_stats(const struct agx_manager *e, struct agx_manager_stats *ret)
{
    *ret = (struct agx_manager_stats){ 0 };
    for (size_t i = 0; i < e->n_boxes; i++)
        ret->by_state[agx_sandbox_state(&e->boxes[i]->sb)]++;
    for (const struct agx_feed *f = e->feeds; f; f = f->next)
        ret->feeds++;
}

/* Feeds. */

int agx_feed_open(struct agx_manager *e, const char *sandbox_id, uint64_t from,
                  const struct agx_feed_ops *ops, void *user, struct agx_feed **ret_feed,
                  struct agx_error **err)
{
    struct stub_box *b = sandbox_id ? stub_box_of(e, sandbox_id) : NULL;
    struct agx_feed *f;

    if (sandbox_id && !b)
        return agx_reason_error(AGX_REASON_SANDBOX_NOT_FOUND, sandbox_id, err);
    f = agx_new(struct agx_feed);
    *f = (struct agx_feed){ .manager = e, .box = b, .at = from, .ops = ops, .user = user };
    f->next = e->feeds;
    f->place = &e->feeds;
    if (f->next)
        f->next->place = &f->next;
    e->feeds = f;
    *ret_feed = f;
    return 0;
}

struct agx_feed *agx_feed_close(struct agx_feed *f)
{
    if (!f)
        return NULL;
    *f->place = f->next;
    if (f->next)
        f->next->place = f->place;
    free(f);
    return NULL;
}

static const struct stub_told *told_at(struct agx_manager *e, uint64_t position,
                                       struct stub_box **ret_box)
{
    struct stub_box *b = *ret_box = e->order[position];

    for (size_t i = 0; i < b->n_events; i++) {
        if (b->events[i].position == position + 1)
            return &b->events[i];
    }
    return NULL;
}

int agx_feed_next(struct agx_feed *f, struct agx_feed_item *ret, struct agx_error **err)
{
    struct stub_box *b = f->box;
    const struct stub_told *t;

    if (f->manager->fail) {
        int code = -(int)f->manager->fail->code;

        agx_error_propagate(err, &f->manager->fail);
        return code;
    }
    if (b ? f->at >= b->n_events : f->at >= f->manager->position) {
        f->dry = true;
        return b && b->purged ? AGX_FEED_END : 0;
    }
    t = b ? &b->events[f->at] : told_at(f->manager, f->at, &b);
    f->at++;
    *ret = (struct agx_feed_item){ .sandbox_id = b->sb.id,
                                   .position = t->position,
                                   .event = &t->event,
                                   .encoded = agx_buf_peek(&t->encoded) };
    return 1;
}

uint64_t agx_manager_position(const struct agx_manager *e)
{
    return e->position;
}
