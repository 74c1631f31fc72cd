/* recovery.c: loads and restarts the records, resumes operations, reconciles. */
#include "daemon/manager/recovery.h"

#include "backend/files/sources.h"
#include "base/log.h"
#include "daemon/manager/drive.h"
#include "daemon/manager/manager_internal.h"
#include "daemon/manager/monitor.h"
#include "daemon/manager/purge.h"
#include "daemon/manager/timers.h"

#include <stdio.h>

#include "base/banned.h"

/* How many ids are read from the store at a time. */
#define PAGE 1024

/* Logs a record that is left out. Takes the error. */
static void leave_out(struct agx_manager *e, const char *what, struct agx_str id,
                      struct agx_error *error)
{
    AGX_LOG(AGX_LOG_ERROR, "record.unreadable", AGX_F_STR("what", what), AGX_F_TEXT("id", id),
            AGX_F_ERR(error));
    agx_error_free(error);
    e->n_unreadable++;
    if (agx_map_put(&e->unreadable, id, e, NULL) < 0)
        abort();
}

/* ---- sandboxes ---- */

/* An unreadable record ends the walk, because its id cannot be decoded. */
static int load_spec(void *user, struct agx_str key, struct agx_str value, struct agx_error **err)
{
    struct agx_manager *e = user;
    struct agx_sandbox sb = { 0 };
    int r = agx_sandbox_record_decode(&sb, value, err);

    if (r < 0)
        return r;
    sb.number = agx_schema_number_of(key);
    if (sb.number == 0 || agx_map_get(&e->units, agx_str_from(sb.id))) {
        r = agx_error_set(err, AGX_DATA_LOSS, "duplicate record of sandbox '%s'", sb.id);
        agx_sandbox_done(&sb);
        return r;
    }
    (void)agx_unit_new(e, &sb);
    return 0;
}

static int add_key(void *user, struct agx_str key, struct agx_str value, struct agx_error **err)
{
    (void)value;
    return agx_words_add(user, key, err);
}

/* Calls `visit` for each id of a table, in pages: unlike the visit of a scan it may read. */
static int each_id(struct agx_manager *e, enum agx_schema_table table,
                   void (*visit)(struct agx_manager *e, const char *id), struct agx_error **err)
{
    char last[AGX_IDENT_MAX + 2] = ""; /* the last id with a NUL behind it: the next key */
    size_t last_len = 0, n;

    do {
        _cleanup_(agx_words_done) struct agx_words ids = { 0 };
        struct agx_store_range page = { .table = table, .from = { last, last_len }, .limit = PAGE };
        int r = agx_store_scan(e->config.store, &page, add_key, &ids, err);

        if (r < 0)
            return r;
        n = ids.len;
        for (size_t i = 0; i < n; i++)
            visit(e, ids.items[i]);
        if (n > 0) {
            (void)snprintf(last, sizeof(last), "%s", ids.items[n - 1]);
            last_len = strlen(last) + 1;
        }
    } while (n == PAGE);
    return 0;
}

static int try_one(struct agx_manager *e, const char *id, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf got = AGX_BUF_INIT(AGX_STORE_BATCH_MAX);
    struct agx_sandbox sb = { 0 };
    uint64_t number = 0;
    int r = agx_schema_find_number(e->config.store, id, &number, err);

    if (r > 0)
        r = agx_schema_get_spec(e->config.store, number, &got, err);
    if (r <= 0)
        return r; /* 0: it was purged */
    r = agx_sandbox_record_decode(&sb, agx_buf_peek(&got), err);
    if (r < 0)
        return r;
    if (strcmp(sb.id, id) != 0) {
        r = agx_error_set(err, AGX_DATA_LOSS, "the record belongs to sandbox '%s'", sb.id);
        agx_sandbox_done(&sb);
        return r;
    }
    sb.number = number;
    (void)agx_unit_new(e, &sb);
    return 0;
}

static void load_one(struct agx_manager *e, const char *id)
{
    struct agx_error *error = NULL;

    if (!agx_map_get(&e->units, agx_str_from(id)) && try_one(e, id, &error) < 0)
        leave_out(e, "sandbox", agx_str_from(id), error);
}

static int load_life(struct agx_unit *u, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf got = AGX_BUF_INIT(AGX_STORE_BATCH_MAX);
    int r = agx_schema_get_life(u->manager->config.store, u->sandbox.number, &got, err);

    if (r == 0)
        r = agx_error_set(err, AGX_DATA_LOSS, "the record of its life is missing");
    return r < 0 ? r : agx_life_record_decode(&u->sandbox, agx_buf_peek(&got), err);
}

/* Loads the second half of each record. Sandboxes without it are left out. */
static void load_lives(struct agx_manager *e, const struct agx_stamp *now)
{
    struct agx_words broken = { 0 };
    void *value;

    for (size_t at = 0; agx_map_next(&e->units, &at, NULL, &value);) {
        struct agx_unit *u = value;
        struct agx_error *error = NULL;
        struct agx_sandbox_output out;

        if (load_life(u, &error) < 0) {
            leave_out(e, "life", agx_str_from(u->sandbox.id), error);
            if (agx_words_add(&broken, agx_str_from(u->sandbox.id), NULL) < 0)
                abort();
            continue;
        }
        /* Nothing is stored: the next start would compute the same. It cannot fail, since a restart
         * makes no event. */
        if (agx_sandbox_step(&u->sandbox,
                             &(struct agx_sandbox_input){ .on = AGX_ON_RESTART, .now = *now }, &out,
                             NULL) < 0)
            abort();
        u->born = true;
        agx_sorted_index_append(&e->sandbox_index, &u->sandbox);
        if (u->sandbox.life.phase != AGX_PHASE_DELETED)
            agx_uid_quota_add(&e->uid_quota, u->sandbox.owner_uid, AGX_UID_QUOTA_SANDBOXES,
                              &u->counted);
    }
    agx_sorted_index_sort(&e->sandbox_index);
    for (size_t i = 0; i < broken.len; i++)
        agx_unit_free(agx_map_get(&e->units, agx_str_from(broken.items[i])));
    agx_words_done(&broken);
}

/* ---- writable mounts ---- */

static void on_kept(void *user, struct agx_error *error)
{
    (void)user;
    if (error)
        AGX_LOG(AGX_LOG_ERROR, "writables.not_stored", AGX_F_ERR(error));
    agx_error_free(error);
}

static int note_mount(struct agx_writables *w, const struct agx_mount *m, struct agx_error **err)
{
    const struct agx_writable dir = { .path = m->source };
    struct agx_writables_keep *keep;
    int r;

    if (!m->writable || agx_writables_has(w, &dir.id, dir.path))
        return 0;
    r = agx_writables_keep(w, &dir, 1, on_kept, NULL, &keep, err);
    return r < 0 ? r : 0;
}

/* For sandboxes made by an older daemon that did not store their writable mounts. */
static int note_writable(struct agx_manager *e, struct agx_error **err)
{
    struct agx_writables *w = agx_sources_writables(e->config.sources);
    void *value;
    int r = 0;

    for (size_t at = 0; w && agx_map_next(&e->units, &at, NULL, &value);) {
        const struct agx_spec *spec = &((struct agx_unit *)value)->sandbox.spec;

        for (size_t i = 0; r == 0 && i < spec->mounts_len; i++)
            r = note_mount(w, &spec->mounts[i], err);
    }
    return r;
}

/* ---- execs ---- */

static int try_exec(struct agx_manager *e, const char *id, struct agx_error **err)
{
    const struct agx_exec_input restart = { .on = AGX_EXEC_ON_RESTART, .now = agx_manager_now(e) };
    struct agx_exec exec = { 0 };
    struct agx_exec_output out;
    struct agx_exec_unit *x;
    struct agx_unit *u;
    int r = agx_schema_get_exec(e->config.store, id, &exec, err);

    if (r == 0)
        return agx_error_set(err, AGX_DATA_LOSS, "its record is missing");
    if (r < 0)
        return r;
    u = agx_map_get(&e->units, agx_str_from(agx_text(exec.sandbox_id)));
    if (!u) {
        r = agx_error_set(err, AGX_DATA_LOSS, "its sandbox '%s' is missing",
                          agx_text(exec.sandbox_id));
        agx_exec_done(&exec);
        return r;
    }
    x = agx_exec_unit_new(u, &exec);
    x->uid = u->sandbox.owner_uid;
    x->born = true;
    agx_exec_unit_hold(x);
    agx_uid_quota_add(&e->uid_quota, x->uid, AGX_UID_QUOTA_EXECS, &x->counted);
    r = agx_exec_step(&x->exec, &u->sandbox, &restart, &out, err);
    agx_exec_unit_unref(x);
    return r;
}

static void load_exec(struct agx_manager *e, const char *id)
{
    struct agx_error *error = NULL;

    if (try_exec(e, id, &error) < 0)
        leave_out(e, "exec", agx_str_from(id), error);
}

int agx_recovery_load(struct agx_manager *e, struct agx_error **err)
{
    const struct agx_stamp now = agx_manager_now(e);
    struct agx_error *damaged = NULL;
    int r = agx_store_scan(e->config.store, &(struct agx_store_range){ .table = AGX_TABLE_SPECS },
                           load_spec, e, &damaged);

    if (r == -AGX_DATA_LOSS) {
        /* The walk ended at a damaged record: find the other records by their ids. */
        damaged = agx_error_free(damaged);
        r = each_id(e, AGX_TABLE_SANDBOX_IDS, load_one, err);
    } else if (r < 0) {
        agx_error_propagate(err, &damaged);
    }
    if (r >= 0)
        r = agx_schema_last_position(e->config.store, &e->position, err);
    if (r < 0)
        return agx_error_wrap(err, r, "load the sandboxes");
    e->next_position = e->position;
    load_lives(e, &now);
    r = note_writable(e, err);
    if (r < 0)
        return agx_error_wrap(err, r, "record the writable mounts");
    r = each_id(e, AGX_TABLE_ACTIVE_EXECS, load_exec, err);
    if (r < 0)
        return agx_error_wrap(err, r, "load the active execs");
    AGX_LOG(AGX_LOG_INFO, "manager.loaded", AGX_F_UINT("sandboxes", e->units.len),
            AGX_F_UINT("execs", e->execs.len), AGX_F_UINT("unreadable", e->n_unreadable));
    return 0;
}

/* ---- after the load ---- */

static bool is_known(const struct agx_manager *e, const char *sandbox_id)
{
    struct agx_str id = agx_str_from(sandbox_id);

    return agx_map_get(&e->units, id) || agx_map_get(&e->unreadable, id);
}

/* Purged: its id was used before, but no record is left. */
static bool is_purged(void *user, const char *sandbox_id)
{
    struct agx_manager *e = user;

    return !is_known(e, sandbox_id) &&
           agx_schema_is_reserved(e->config.store, AGX_TABLE_SANDBOX_IDS, sandbox_id, NULL) == 1;
}

void agx_recovery_start(struct agx_manager *e)
{
    void *value;

    for (size_t at = 0; agx_map_next(&e->units, &at, NULL, &value);) {
        struct agx_unit *u = value;

        if (!u->born || u->reconciled)
            continue; /* created since */
        if (u->sandbox.life.running != AGX_DO_NONE)
            agx_drive_carry_on(u, u->sandbox.life.running);
        AGX_LIST_FOR_EACH (struct agx_exec_unit, x, &u->execs, node) {
            agx_drive_exec_start(x, x->exec.running);
            agx_timers_schedule_exec(x);
        }
        agx_timers_schedule(u);
    }
    agx_logs_sweep(&e->logs, is_purged, e);
    agx_purge_go(e);
    agx_monitor_start(e);
}

static bool all_run(const struct agx_backend_seen *seen)
{
    for (size_t i = 0; i < seen->companions_len; i++) {
        if (seen->companions[i] != AGX_SEEN_RUNNING)
            return false;
    }
    return true;
}

void agx_recovery_judge(struct agx_unit *u, const struct agx_backend_seen *seen)
{
    struct agx_recovery_plan plan =
        agx_reconcile_start(u->sandbox.life.phase, seen->primary, seen->remains);
    struct agx_sandbox_input in = { .error_code = plan.error_code,
                                    .error_message = plan.error_message };

    if (plan.action == AGX_RECOVERY_WAIT)
        return; /* the next look judges it */
    u->reconciled = true;
    switch (plan.action) {
    case AGX_RECOVERY_REVIVE:
        in.on = AGX_ON_REVIVE;
        break;
    case AGX_RECOVERY_FAIL:
        in.on = AGX_ON_DIED;
        break;
    case AGX_RECOVERY_HALT:
        in.on = AGX_ON_HALT;
        break;
    case AGX_RECOVERY_ADOPT:
        if (!all_run(seen)) /* a look treats companions that ended like ones that end now */
            agx_monitor_unit(u, 1);
        return;
    case AGX_RECOVERY_REMOVE:
        agx_drive_remove(u->manager, &u->sandbox);
        return;
    default:
        return;
    }
    AGX_LOG(AGX_LOG_INFO, "sandbox.reconciled", AGX_F_STR("sandbox", u->sandbox.id),
            AGX_F_STR("input", agx_on_name(in.on)));
    agx_unit_report(u, &in);
}

void agx_recovery_orphan(struct agx_manager *e, const char *sandbox_id)
{
    const struct agx_sandbox sb = { .id = (char *)sandbox_id };

    if (is_known(e, sandbox_id))
        return; /* its record cannot be read: leave the sandbox alone */
    AGX_LOG(AGX_LOG_WARN, "sandbox.without_record", AGX_F_STR("sandbox", sandbox_id));
    agx_drive_remove(e, &sb);
}
