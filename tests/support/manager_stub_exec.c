/* manager_stub_exec.c: the commands of the stub, their logs and their input. */
#include "tests/support/manager_stub_internal.h"

#include "base/mem.h"
#include "base/uuid.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "base/banned.h"

enum { LOG_HEAD = 64 << 10, LOG_TAIL = 64 << 10 };

void stub_run_free(struct stub_run *r)
{
    for (int i = 0; i < 4; i++)
        agx_closep(&r->fds[i / 2][i % 2]);
    agx_exec_done(&r->exec);
    agx_buf_done(&r->input);
    free(r);
}

static int exec_step(struct agx_manager *e, struct stub_run *r, enum agx_exec_on on, int exit_code,
                     enum agx_reason *ret_reason, struct agx_error **err)
{
    const struct agx_exec_input in = { .on = on, .now = stub_now(), .exit_code = exit_code };
    struct agx_exec_output out = { 0 };
    int rc = agx_exec_step(&r->exec, &r->box->sb, &in, &out, err);

    *ret_reason = out.reason;
    if (rc == 0 && out.has_event)
        stub_tell(e, r->box, &out.event);
    return rc;
}

static int anonymous_file(const struct agx_manager *e)
{
    int fd = e->quiet_logs ? memfd_create("log", MFD_CLOEXEC)
                           : open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    ASSERT_TRUE(fd >= 0);
    return fd;
}

/* Only execs that write or are read get files, because tests make thousands of others. */
static void open_logs(struct agx_manager *e, struct stub_run *r)
{
    if (r->fds[0][0] >= 0)
        return;
    for (int i = 0; i < 4; i++)
        r->fds[i / 2][i % 2] = anonymous_file(e);
    ASSERT_OK(agx_caplog_init(&r->log, r->fds[0][0], r->fds[0][1], LOG_HEAD, LOG_TAIL));
}

static struct stub_run *run_new(struct agx_manager *e, struct stub_box *b,
                                struct agx_exec *take_exec)
{
    struct stub_run *r = agx_new(struct stub_run);
    size_t at = e->n_runs;

    r->exec = *take_exec;
    *take_exec = (struct agx_exec){ 0 };
    r->box = b;
    r->input.max = (size_t)16 << 20;
    memset(r->fds, -1, sizeof(r->fds));
    e->runs = stub_grown(e->runs, e->n_runs, sizeof(struct stub_run *));
    while (at > 0 && strcmp(e->runs[at - 1]->exec.id, r->exec.id) > 0)
        at--;
    memmove(e->runs + at + 1, e->runs + at, (e->n_runs++ - at) * sizeof(struct stub_run *));
    e->runs[at] = r;
    return r;
}

static int check_exec(struct agx_manager *e, const struct agx_exec *exec, struct stub_box **ret_box,
                      struct stub_waiting *w)
{
    struct stub_box *b = *ret_box = stub_box_of(e, exec->sandbox_id);
    int r;

    if (!b || b->sb.life.phase != AGX_PHASE_READY) {
        w->reason = b ? AGX_REASON_SANDBOX_NOT_READY : AGX_REASON_SANDBOX_NOT_FOUND;
        w->reason_id = strdup(exec->sandbox_id);
        return agx_reason_error(w->reason, exec->sandbox_id, &w->error);
    }
    r = agx_exec_check(exec, &w->error);
    if (r == 0 && exec->id && stub_run_of(e, exec->id)) {
        w->reason = AGX_REASON_EXEC_ID_ALREADY_EXISTS;
        w->reason_id = strdup(exec->id);
        return agx_reason_error(w->reason, exec->id, &w->error);
    }
    return r;
}

void agx_manager_exec_create(struct agx_manager *e, uid_t uid, struct agx_exec *take_exec,
                             bool stdin_open, agx_answer_fn answer, void *user)
{
    char uuid[AGX_UUID_TEXT_SIZE];
    struct stub_waiting w = { 0 };
    struct stub_box *b;

    (void)uid;
    (void)stdin_open;
    if (check_exec(e, take_exec, &b, &w) < 0) {
        agx_exec_done(take_exec);
    } else {
        struct stub_run *r;

        ASSERT_OK(agx_uuid_new(uuid, NULL));
        if (!take_exec->id)
            take_exec->id = strdup(uuid);
        r = run_new(e, b, take_exec);
        ASSERT_OK(exec_step(e, r, AGX_EXEC_ON_CREATE, 0, &w.reason, NULL));
        w.exec_id = strdup(r->exec.id);
    }
    stub_answer_later(e, answer, user, &w);
}

void stub_exec_add(struct agx_manager *e, const char *sandbox_id, const char *id)
{
    struct stub_box *b = stub_box_of(e, sandbox_id);
    struct agx_exec exec = { 0 };
    enum agx_reason reason;

    ASSERT_NOT_NULL(b);
    ASSERT_OK(agx_exec_init(&exec, id, sandbox_id, NULL));
    ASSERT_OK(agx_words_add(&exec.command, AGX_STR("true"), NULL));
    ASSERT_OK(agx_pairs_set(&exec.env_overrides, AGX_STR("TOKEN"), AGX_STR("secret"), NULL));
    ASSERT_OK(exec_step(e, run_new(e, b, &exec), AGX_EXEC_ON_CREATE, 0, &reason, NULL));
}

void stub_exec_move(struct agx_manager *e, const char *id, enum agx_exec_on on, int exit_code)
{
    struct stub_run *r = stub_run_of(e, id);
    enum agx_reason reason;

    ASSERT_NOT_NULL(r);
    ASSERT_OK(exec_step(e, r, on, exit_code, &reason, NULL));
}

void stub_exec_print(struct agx_manager *e, const char *id, struct agx_str bytes, bool end)
{
    struct stub_run *r = stub_run_of(e, id);

    ASSERT_NOT_NULL(r);
    open_logs(e, r);
    agx_caplog_append(&r->log, bytes);
    if (end)
        agx_caplog_finish(&r->log);
}

void stub_quiet_logs(struct agx_manager *e)
{
    e->quiet_logs = true;
}

struct agx_str stub_exec_input(struct agx_manager *e, const char *id)
{
    struct stub_run *r = stub_run_of(e, id);

    ASSERT_NOT_NULL(r);
    return agx_buf_peek(&r->input);
}

void agx_manager_exec_cancel(struct agx_manager *e, const char *exec_id, agx_answer_fn answer,
                             void *user)
{
    struct stub_run *r = stub_run_of(e, exec_id);
    struct stub_waiting w = { .reason_id = strdup(exec_id) };

    if (r) {
        (void)!exec_step(e, r, AGX_EXEC_ON_CANCEL, 0, &w.reason, &w.error);
    } else {
        w.reason = AGX_REASON_EXEC_NOT_FOUND;
        (void)agx_reason_error(w.reason, exec_id, &w.error);
    }
    stub_answer_later(e, answer, user, &w);
}

int agx_manager_exec_write(struct agx_manager *e, const char *exec_id, struct agx_str data,
                           bool eof, agx_done_fn taken, void *user, struct agx_error **err)
{
    struct stub_run *r = stub_run_of(e, exec_id);

    if (e->fail) {
        int code = -(int)e->fail->code;

        agx_error_propagate(err, &e->fail);
        return code;
    }
    if (!r)
        return agx_reason_error(AGX_REASON_EXEC_NOT_FOUND, exec_id, err);
    ASSERT_TRUE(!r->taken); /* one write at a time */
    ASSERT_OK(agx_buf_append(&r->input, data));
    if (eof)
        ASSERT_OK(agx_buf_append(&r->input, AGX_STR("<eof>")));
    r->taken = taken;
    r->taken_user = user;
    stub_wake(e);
    return 0;
}

static int exec_copy(struct agx_exec *to, const struct agx_exec *from)
{
    struct agx_exec c = *from;
    int r = agx_exec_init(to, from->id, from->sandbox_id, NULL);

    to->phase = c.phase;
    to->state = c.state;
    to->exit_code = c.exit_code;
    to->created = c.created;
    if (r == 0)
        r = agx_words_copy(&to->command, &from->command, NULL);
    if (r == 0)
        r = agx_pairs_merge(&to->env_overrides, &from->env_overrides, NULL);
    if (r == 0)
        r = agx_text_set(&to->error_code, from->error_code, NULL);
    if (r == 0)
        r = agx_text_set(&to->error_message, from->error_message, NULL);
    return r;
}

int agx_manager_exec_find(struct agx_manager *e, const char *exec_id, struct agx_exec *ret,
                          uint64_t *ret_sequence, struct agx_error **err)
{
    struct stub_run *r = stub_run_of(e, exec_id);

    if (!r)
        return agx_reason_error(AGX_REASON_EXEC_NOT_FOUND, exec_id, err);
    *ret = (struct agx_exec){ 0 };
    ASSERT_OK(exec_copy(ret, &r->exec));
    *ret_sequence = r->box->sb.life.last_sequence;
    return 0;
}

void agx_manager_exec_list(struct agx_manager *e, const char *sandbox_id, const char *after_id,
                           agx_exec_visit_fn visit, void *user)
{
    for (size_t i = 0; i < e->n_runs; i++) {
        struct stub_run *r = e->runs[i];

        if (r->box->purged || r->exec.state != AGX_EXEC_RUNNING ||
            (sandbox_id && strcmp(r->box->sb.id, sandbox_id) != 0) ||
            (after_id && strcmp(r->exec.id, after_id) <= 0))
            continue;
        if (visit(user, &r->exec, r->box->sb.life.last_sequence) > 0)
            return;
    }
}

int agx_manager_open_log(struct agx_manager *e, const char *exec_id, enum agx_stream stream,
                         int *ret_data_fd, int *ret_index_fd, struct agx_error **err)
{
    struct stub_run *r = stub_run_of(e, exec_id);

    if (!r)
        return agx_reason_error(AGX_REASON_EXEC_NOT_FOUND, exec_id, err);
    open_logs(e, r);
    *ret_data_fd = dup(r->fds[stream][0]);
    *ret_index_fd = dup(r->fds[stream][1]);
    return 0;
}
