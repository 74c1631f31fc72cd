/*
 * manager.c: the manager itself: its turn, requests, its close.
 *
 * Requests, reports and timers only queue. Once per turn of the loop, right after its poll, the
 * rules process every unit with a non-empty queue. So all inputs of one turn share a commit, and no
 * answer is given inside the call that asked for it.
 */
#include "daemon/manager/manager.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/uuid.h"
#include "daemon/manager/accept.h"
#include "daemon/manager/drive.h"
#include "daemon/manager/manager_internal.h"
#include "daemon/manager/monitor.h"
#include "daemon/manager/recovery.h"

#include <assert.h>
#include <fcntl.h>

#include "base/banned.h"

/* How long the close waits for threads that check paths. */
#define CLOSE_MS 1000

struct agx_stamp agx_manager_now(const struct agx_manager *e)
{
    return (struct agx_stamp){ .wall_ns = agx_clock_wall_ns(),
                               .mono_ns = agx_clock_ns(),
                               .boot = e->boot };
}

/* A number that identifies the boot; it comes from the kernel's boot id. */
static int read_boot(uint64_t *ret, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(256);
    int r = agx_fd_read_file(AT_FDCWD, "/proc/sys/kernel/random/boot_id", &text, NULL);

    if (r < 0) /* no /proc: times from before this start are measured by the wall clock */
        return agx_random_bytes(ret, sizeof(*ret), err);
    *ret = agx_siphash((struct agx_siphash_key){ 0 }, agx_buf_peek(&text));
    return 0;
}

void agx_manager_alarm(struct agx_manager *e, struct agx_alarm *a, uint64_t ms,
                       void (*fire)(struct agx_alarm *a))
{
    a->fire = fire;
    if (agx_alarms_set(&e->alarms, a, ms, NULL) < 0)
        abort();
}

/* ---- the turn ---- */

static void on_spin(uv_idle_t *h)
{
    (void)h;
}

static void answer_later_ones(struct agx_manager *e)
{
    struct agx_list later = { 0 };
    struct agx_later *a;

    agx_list_move(&later, &e->later);
    while ((a = AGX_LIST_TAKE(&later, struct agx_later, node))) {
        a->answer(a->user, &(struct agx_answer){
                               .error = a->error, .reason = a->reason, .reason_id = a->id });
        free(a->id);
        free(a);
    }
}

static void pump_units(struct agx_manager *e)
{
    struct agx_list now = { 0 };
    struct agx_unit *u;

    /* Those that are there now: an answer that asks again gets the next turn. */
    agx_list_move(&now, &e->dirty);
    while ((u = AGX_LIST_TAKE(&now, struct agx_unit, dirty)))
        agx_unit_pump(u);
}

static void on_check(uv_check_t *h)
{
    struct agx_manager *e = container_of(h, struct agx_manager, check);

    (void)uv_check_stop(&e->check);
    (void)uv_idle_stop(&e->spin);
    e->awake = false;
    answer_later_ones(e);
    if (!e->closing && !e->started) {
        e->started = true;
        agx_recovery_start(e);
    }
    if (!e->closing)
        pump_units(e);
    agx_feeds_tell(&e->feeds);
    if (!agx_list_is_empty(&e->dirty) && !e->closing)
        agx_manager_wake(e);
    if (e->closing)
        agx_manager_close_on(e);
}

void agx_manager_wake(struct agx_manager *e)
{
    if (e->awake || e->ended)
        return;
    e->awake = true;
    (void)uv_check_start(&e->check, on_check);
    (void)uv_idle_start(&e->spin, on_spin);
}

void agx_manager_answer_later(struct agx_manager *e, agx_answer_fn answer, void *user,
                              struct agx_error **take_error, enum agx_reason reason, const char *id)
{
    struct agx_later *a = agx_new(struct agx_later);

    a->answer = answer;
    a->user = user;
    a->error = AGX_TAKE_PTR(*take_error);
    a->reason = reason;
    if (id && !(a->id = agx_str_dup(
                    (struct agx_str){ id, (size_t)agx_text_cut(agx_str_from(id), AGX_IDENT_MAX) })))
        abort();
    agx_list_push_back(&e->later, &a->node);
    agx_manager_wake(e);
}

void agx_manager_refuse_later(struct agx_manager *e, agx_answer_fn answer, void *user,
                              enum agx_reason reason, const char *id)
{
    _cleanup_free_ char *text =
        agx_str_dup((struct agx_str){ id, (size_t)agx_text_cut(agx_str_from(id), AGX_IDENT_MAX) });
    struct agx_error *error = NULL;

    if (!text)
        abort();
    (void)agx_reason_error(reason, text, &error);
    agx_manager_answer_later(e, answer, user, &error, reason, text);
}

void agx_manager_refuse_stopping(struct agx_manager *e, agx_answer_fn answer, void *user)
{
    struct agx_error *error = NULL;

    (void)agx_error_set(&error, AGX_UNAVAILABLE, "the daemon is stopping");
    agx_manager_answer_later(e, answer, user, &error, AGX_REASON_NONE, NULL);
}

/* ---- requests ---- */

/* True when the manager is stopping; the caller is answered with that. */
static bool is_over(struct agx_manager *e, agx_answer_fn answer, void *user)
{
    agx_loop_assert(e->loop);
    if (e->closing)
        agx_manager_refuse_stopping(e, answer, user);
    return e->closing;
}

void agx_manager_ask(struct agx_manager *e, const char *id, enum agx_on on, agx_answer_fn answer,
                     void *user)
{
    struct agx_unit *u = agx_map_get(&e->units, agx_str_from(id));
    struct agx_input *in;

    assert(on == AGX_ON_STOP || on == AGX_ON_RESUME || on == AGX_ON_DELETE);
    if (is_over(e, answer, user))
        return;
    if (!u) {
        agx_manager_refuse_later(e, answer, user, AGX_REASON_SANDBOX_NOT_FOUND, id);
        return;
    }
    in = agx_input_new(AGX_INPUT_SANDBOX);
    in->on = on;
    in->answer = answer;
    in->user = user;
    agx_unit_push(u, in);
}

void agx_manager_exec_create(struct agx_manager *e, uid_t uid, struct agx_exec *take_exec,
                             bool stdin_open, agx_answer_fn answer, void *user)
{
    struct agx_unit *u = agx_map_get(&e->units, agx_str_from(agx_text(take_exec->sandbox_id)));
    struct agx_error *error = NULL;
    char uuid[AGX_UUID_TEXT_SIZE];
    struct agx_input *in;
    int r = 0;

    if (is_over(e, answer, user)) {
        agx_exec_done(take_exec);
        return;
    }
    if (u && !take_exec->id && (r = agx_uuid_new(uuid, &error)) == 0)
        r = agx_text_set(&take_exec->id, uuid, &error);
    if (r < 0)
        agx_manager_answer_later(e, answer, user, &error, AGX_REASON_NONE, NULL);
    else if (!u)
        agx_manager_refuse_later(e, answer, user, AGX_REASON_SANDBOX_NOT_FOUND,
                                 agx_text(take_exec->sandbox_id));
    if (r < 0 || !u) {
        agx_exec_done(take_exec);
        return;
    }
    in = agx_input_new(AGX_INPUT_EXEC_CREATE);
    in->exec = agx_exec_unit_new(u, take_exec);
    in->exec->uid = uid;
    in->exec->stdin_open = stdin_open;
    in->answer = answer;
    in->user = user;
    agx_unit_push(u, in);
}

void agx_manager_exec_cancel(struct agx_manager *e, const char *exec_id, agx_answer_fn answer,
                             void *user)
{
    struct agx_exec_unit *x = agx_map_get(&e->execs, agx_str_from(exec_id));
    struct agx_error *error = NULL;
    enum agx_reason reason;
    struct agx_input *in;

    if (is_over(e, answer, user))
        return;
    if (!x) {
        (void)agx_manager_refuse_exec(e, exec_id, &reason, &error);
        agx_manager_answer_later(e, answer, user, &error, reason, exec_id);
        return;
    }
    in = agx_input_new(AGX_INPUT_EXEC);
    in->exec_on = AGX_EXEC_ON_CANCEL;
    in->exec = x;
    x->refs++;
    in->answer = answer;
    in->user = user;
    agx_unit_push(x->unit, in);
}

/* ---- open ---- */

static void free_parts(struct agx_manager *e)
{
    size_t n = 0, len = e->units.len;
    void **units = agx_alloc((len + 1) * sizeof(void *));

    for (size_t at = 0; agx_map_next(&e->units, &at, NULL, &units[n]);)
        n++;
    agx_sorted_index_done(&e->sandbox_index); /* so that the removals below do not search them */
    agx_sorted_index_done(&e->exec_index);
    for (size_t i = 0; i < n; i++)
        agx_unit_free(units[i]);
    free(units);
    agx_map_done(&e->units);
    agx_map_done(&e->execs);
    agx_map_done(&e->unreadable);
    agx_uid_quota_done(&e->uid_quota);
}

static int by_creation(const void *a, const void *b)
{
    return agx_sandbox_order(a, b);
}

static int by_exec_id(const void *a, const void *b)
{
    const struct agx_exec_unit *x = a, *y = b;

    return strcmp(x->exec.id, y->exec.id);
}

static int init_parts(struct agx_manager *e, struct agx_error **err)
{
    struct agx_siphash_key seed;
    int r = agx_random_bytes(&seed, sizeof(seed), err);

    if (r == 0)
        r = read_boot(&e->boot, err);
    if (r < 0)
        return r;
    agx_map_init(&e->units, seed);
    agx_map_init(&e->execs, seed);
    agx_map_init(&e->unreadable, seed);
    agx_sorted_index_init(&e->sandbox_index, by_creation);
    agx_sorted_index_init(&e->exec_index, by_exec_id);
    agx_feeds_init(&e->feeds, e);
    e->uid_quota.max[AGX_UID_QUOTA_SANDBOXES] = e->config.sandboxes_per_uid;
    e->uid_quota.max[AGX_UID_QUOTA_EXECS] = e->config.execs_per_uid;
    return 0;
}

static int open_pools(struct agx_manager *e, struct agx_error **err)
{
    const struct agx_pool_config accept = { .name = "accept",
                                            .threads = AGX_ACCEPT_THREADS,
                                            .max_queued = AGX_ACCEPT_QUEUE };
    int r = agx_logs_open(&e->logs, e->loop, e->config.log_root, err);

    if (r < 0)
        return r;
    r = agx_pool_open(e->loop, &accept, &e->accept_pool, err);
    if (r < 0)
        agx_logs_close(&e->logs, NULL, NULL);
    return r;
}

int agx_manager_open(struct agx_loop *l, const struct agx_manager_config *c,
                     struct agx_manager **ret_manager, struct agx_error **err)
{
    struct agx_manager *e = agx_new(struct agx_manager);
    int r;

    agx_loop_assert(l);
    e->loop = l;
    e->config = *c;
    r = init_parts(e, err);
    if (r == 0)
        r = agx_recovery_load(e, err);
    if (r == 0)
        r = open_pools(e, err);
    if (r < 0) {
        free_parts(e);
        free(e);
        return r;
    }
    agx_alarms_open(&e->alarms, l);
    (void)uv_check_init(agx_loop_uv(l), &e->check);
    (void)uv_idle_init(agx_loop_uv(l), &e->spin);
    agx_manager_wake(e);
    *ret_manager = e;
    return 0;
}

/* ---- close ---- */

/* Those who wait will be told; what is no request is not lost, for the next start asks again. */
static void refuse_inputs(struct agx_manager *e, struct agx_list *inputs)
{
    struct agx_input *in;

    while ((in = AGX_LIST_TAKE(inputs, struct agx_input, node))) {
        if (in->answer)
            agx_manager_refuse_stopping(e, in->answer, in->user);
        agx_input_free(in);
    }
}

/* Ends the unit's backend calls and clears its alarms. */
static void quiet(struct agx_unit *u)
{
    struct agx_manager *e = u->manager;

    agx_drive_abandon(u);
    agx_monitor_abandon(u);
    agx_alarms_clear(&e->alarms, &u->due);
    agx_alarms_clear(&e->alarms, &u->retry);
    AGX_LIST_FOR_EACH (struct agx_exec_unit, x, &u->execs, node) {
        agx_drive_exec_abandon(x);
        agx_alarms_clear(&e->alarms, &x->due);
        refuse_inputs(e, &x->waiters);
    }
    refuse_inputs(e, &u->queue);
}

static void on_pool_stopped(void *user, struct agx_error *error)
{
    struct agx_manager *e = user;

    agx_error_free(error); /* threads that hang end with the process */
    e->n_open--;
    agx_manager_close_on(e);
}

void agx_manager_close(struct agx_manager *e, agx_done_fn closed, void *user)
{
    void *value;

    agx_loop_assert(e->loop);
    assert(!e->closing);
    e->closing = true;
    e->closed = closed;
    e->closed_user = user;
    agx_accept_close(e);
    agx_monitor_close(e);
    agx_drive_close(e);
    for (size_t at = 0; agx_map_next(&e->units, &at, NULL, &value);)
        quiet(value);
    e->n_open = 2;
    agx_logs_close(&e->logs, on_pool_stopped, e);
    agx_pool_stop(AGX_TAKE_PTR(e->accept_pool), CLOSE_MS, on_pool_stopped, e);
}

static void handle_closed(struct agx_manager *e)
{
    agx_done_fn closed = e->closed;
    void *user = e->closed_user;

    if (--e->n_open > 0)
        return;
    free(e);
    if (closed)
        closed(user, NULL);
}

static void on_handle_closed(uv_handle_t *h)
{
    handle_closed(h->data);
}

void agx_manager_close_on(struct agx_manager *e)
{
    if (e->ended || e->n_open > 0 || e->commits > 0 || !agx_list_is_empty(&e->later))
        return;
    e->ended = true;
    agx_feeds_done(&e->feeds);
    free_parts(e);
    (void)uv_check_stop(&e->check);
    (void)uv_idle_stop(&e->spin);
    e->n_open = 3;
    e->check.data = e->spin.data = e;
    uv_close((uv_handle_t *)&e->check, on_handle_closed);
    uv_close((uv_handle_t *)&e->spin, on_handle_closed);
    agx_alarms_close(&e->alarms, on_handle_closed, e);
}
