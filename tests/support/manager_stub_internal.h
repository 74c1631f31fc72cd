/* manager_stub_internal.h: shared by the files of the stub. */
#ifndef AGX_TESTS_MANAGER_STUB_INTERNAL_H
#define AGX_TESTS_MANAGER_STUB_INTERNAL_H

#include "base/caplog.h"
#include "tests/support/manager_stub.h"
#include "tests/support/test.h"

struct stub_told {
    struct agx_event event;
    uint64_t position;
    struct agx_buf encoded;
};

struct stub_box {
    struct agx_sandbox sb;
    bool purged;
    struct stub_told *events; /* owned */
    size_t n_events;
};

struct stub_run {
    struct agx_exec exec;
    struct stub_box *box;
    int fds[2][2]; /* data and index of each stream */
    struct agx_caplog log;
    struct agx_buf input;
    agx_done_fn taken; /* NULL: nothing is being written */
    void *taken_user;
};

struct stub_waiting {
    agx_answer_fn answer;
    void *user;
    struct agx_error *error;
    enum agx_reason reason;
    char *reason_id, *sandbox_id, *exec_id;
    struct stub_waiting *next;
};

struct agx_feed {
    struct agx_manager *manager;
    struct stub_box *box; /* NULL: of all sandboxes */
    uint64_t at;
    const struct agx_feed_ops *ops;
    void *user;
    bool dry; /* next() gave nothing: call `ready` at the next event */
    struct agx_feed *next, **place;
};

struct agx_manager {
    uv_idle_t idle;
    uv_loop_t *loop;
    struct stub_box **boxes; /* in list order */
    size_t n_boxes;
    struct stub_box **order; /* position -> the sandbox of its event */
    uint64_t position;
    struct stub_run **runs; /* by id */
    size_t n_runs;
    struct stub_waiting *first, **last;
    struct agx_feed *feeds;
    struct agx_usage_query *usages;
    struct agx_resource_usage use;
    enum agx_code use_code;
    bool use_held;
    struct agx_error *fail;
    bool held, input_held, quiet_logs;
    int64_t clock_ns; /* advances, so that each sandbox is younger than the last */
};

struct agx_stamp stub_now(void);
/* Returns the array with room for one more item. */
void *stub_grown(void *items, size_t n, size_t size);
/* Starts the idle handle, which has work. */
void stub_wake(struct agx_manager *e);
/* Returns NULL if it does not exist. */
struct stub_box *stub_box_of(struct agx_manager *e, const char *id);
struct stub_run *stub_run_of(struct agx_manager *e, const char *id);
void stub_tell(struct agx_manager *e, struct stub_box *b, struct agx_event *take_event);
void stub_answer_later(struct agx_manager *e, agx_answer_fn answer, void *user,
                       const struct stub_waiting *what);
void stub_tell_use(struct agx_manager *e);
void stub_run_free(struct stub_run *r);

#endif
