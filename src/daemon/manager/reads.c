/* reads.c: committed state, from memory if it is there, else from the store. */
#include "daemon/manager/manager_internal.h"

#include "base/mem.h"

#include <assert.h>

#include "base/banned.h"

/* Cuts a client's id to the longest valid length, for messages. */
struct printable_id {
    char text[AGX_IDENT_MAX + 1];
};

static struct printable_id printable_id(const char *id)
{
    struct printable_id s = { 0 };

    memcpy(s.text, id, (size_t)agx_text_cut(agx_str_from(id), AGX_IDENT_MAX));
    return s;
}

struct agx_unit *agx_manager_unit(struct agx_manager *e, const char *id, struct agx_error **err)
{
    struct agx_unit *u = agx_map_get(&e->units, agx_str_from(id));
    struct printable_id printable;

    if (u && u->born)
        return u;
    printable = printable_id(id);
    (void)agx_reason_error(AGX_REASON_SANDBOX_NOT_FOUND, printable.text, err);
    return NULL;
}

int agx_manager_find(struct agx_manager *e, const char *id, const struct agx_sandbox **ret,
                     struct agx_error **err)
{
    const struct agx_unit *u = agx_manager_unit(e, id, err);

    agx_loop_assert(e->loop);
    if (!u)
        return -AGX_NOT_FOUND;
    *ret = agx_unit_committed(u);
    return 0;
}

void agx_manager_list(struct agx_manager *e, int64_t after_created_ns, const char *after_id,
                      size_t max, agx_sandbox_visit_fn visit, void *user)
{
    const struct agx_sandbox place = { .id = (char *)after_id,
                                       .created.wall_ns = after_created_ns };
    size_t at =
        after_id ? agx_sorted_index_behind(&e->sandbox_index, &place) : e->sandbox_index.len;
    size_t n = max > 0 ? AGX_MIN(max, at) : at;

    agx_loop_assert(e->loop);
    while (n-- > 0) {
        const struct agx_sandbox *sb = e->sandbox_index.items[--at];
        const struct agx_unit *u = container_of(sb, struct agx_unit, sandbox);

        if (visit(user, agx_unit_committed(u)) != 0)
            return;
    }
}

/* ---- execs ---- */

static int copy_exec(struct agx_exec *to, const struct agx_exec *from, struct agx_error **err)
{
    struct agx_exec copy = *from;
    int r;

    copy.id = copy.sandbox_id = copy.cwd = copy.error_code = copy.error_message = NULL;
    copy.command = (struct agx_words){ 0 };
    copy.env_overrides = (struct agx_pairs){ 0 };
    if ((r = agx_text_set(&copy.id, from->id, err)) < 0 ||
        (r = agx_text_set(&copy.sandbox_id, from->sandbox_id, err)) < 0 ||
        (r = agx_text_set(&copy.cwd, from->cwd, err)) < 0 ||
        (r = agx_text_set(&copy.error_code, from->error_code, err)) < 0 ||
        (r = agx_text_set(&copy.error_message, from->error_message, err)) < 0 ||
        (r = agx_words_copy(&copy.command, &from->command, err)) < 0 ||
        (r = agx_pairs_merge(&copy.env_overrides, &from->env_overrides, err)) < 0) {
        agx_exec_done(&copy);
        return r;
    }
    *to = copy;
    return 0;
}

static int reads_refuse(enum agx_reason reason, const char *id, struct agx_error **err)
{
    struct printable_id printable = printable_id(id);

    return agx_reason_error(reason, printable.text, err);
}

/* Finds an exec that has ended; 1, or -AGX_NOT_FOUND. */
static int find_ended(struct agx_manager *e, const char *exec_id, struct agx_exec *ret,
                      struct agx_unit **ret_unit, struct agx_error **err)
{
    int r = agx_schema_get_exec(e->config.store, exec_id, ret, err);

    *ret_unit = NULL;
    if (r < 0)
        return r;
    *ret_unit = r > 0 ? agx_map_get(&e->units, agx_str_from(agx_text(ret->sandbox_id))) : NULL;
    if (*ret_unit)
        return 1;
    if (r > 0)
        agx_exec_done(ret);
    return reads_refuse(AGX_REASON_EXEC_NOT_FOUND, exec_id, err);
}

int agx_manager_exec_find(struct agx_manager *e, const char *exec_id, struct agx_exec *ret,
                          uint64_t *ret_sequence, struct agx_error **err)
{
    const struct agx_exec_unit *x = agx_map_get(&e->execs, agx_str_from(exec_id));
    struct agx_unit *u = x ? x->unit : NULL;
    int r;

    agx_loop_assert(e->loop);
    if (x && !x->born)
        return reads_refuse(AGX_REASON_EXEC_NOT_FOUND, exec_id, err);
    r = x ? copy_exec(ret, agx_exec_unit_committed(x), err) : find_ended(e, exec_id, ret, &u, err);
    if (r < 0)
        return r;
    assert(u);
    *ret_sequence = agx_unit_committed(u)->life.last_sequence;
    return 0;
}

int agx_manager_refuse_exec(struct agx_manager *e, const char *exec_id, enum agx_reason *ret_reason,
                            struct agx_error **err)
{
    struct agx_exec exec;
    struct agx_unit *u;
    int r = find_ended(e, exec_id, &exec, &u, err);

    *ret_reason = r == -AGX_NOT_FOUND ? AGX_REASON_EXEC_NOT_FOUND : AGX_REASON_NONE;
    if (r < 0)
        return r;
    agx_exec_done(&exec);
    *ret_reason = AGX_REASON_EXEC_ALREADY_TERMINAL;
    return reads_refuse(*ret_reason, exec_id, err);
}

void agx_manager_exec_list(struct agx_manager *e, const char *sandbox_id, const char *after_id,
                           agx_exec_visit_fn visit, void *user)
{
    const struct agx_exec_unit place = { .exec.id = (char *)after_id };
    size_t at = after_id ? agx_sorted_index_behind(&e->exec_index, &place) : e->exec_index.len;

    agx_loop_assert(e->loop);
    while (at-- > 0) {
        const struct agx_exec_unit *x = e->exec_index.items[at];

        if (!x->born || agx_exec_unit_committed(x)->state != AGX_EXEC_RUNNING ||
            (sandbox_id && strcmp(x->exec.sandbox_id, sandbox_id) != 0))
            continue;
        if (visit(user, agx_exec_unit_committed(x),
                  agx_unit_committed(x->unit)->life.last_sequence) != 0)
            return;
    }
}

int agx_manager_open_log(struct agx_manager *e, const char *exec_id, enum agx_stream stream,
                         int *ret_data_fd, int *ret_index_fd, struct agx_error **err)
{
    struct agx_exec exec = { 0 };
    uint64_t sequence;
    int fds[2];
    int r = agx_manager_exec_find(e, exec_id, &exec, &sequence, err);

    if (r < 0)
        return r;
    r = agx_logs_open_read(&e->logs, exec.sandbox_id, exec.id, stream, fds, err);
    agx_exec_done(&exec);
    if (r < 0)
        return agx_error_wrap(err, r, "open the log of exec '%s'", exec_id);
    *ret_data_fd = fds[0];
    *ret_index_fd = fds[1];
    return 0;
}

/* ---- statistics ---- */

uint64_t agx_manager_position(const struct agx_manager *e)
{
    return e->position;
}

void agx_manager_stats(const struct agx_manager *e, struct agx_manager_stats *ret)
{
    *ret = (struct agx_manager_stats){ .active_execs = e->execs.len,
                                       .feeds = e->feeds.count,
                                       .operations = e->operations,
                                       .abandoned = e->abandoned,
                                       .unreadable = e->n_unreadable };
    for (size_t i = 0; i < e->sandbox_index.len; i++) {
        const struct agx_sandbox *sb = e->sandbox_index.items[i];
        const struct agx_unit *u = container_of(sb, struct agx_unit, sandbox);

        ret->by_state[agx_sandbox_state(agx_unit_committed(u))]++;
    }
}
