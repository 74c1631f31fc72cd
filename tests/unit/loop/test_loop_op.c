/*
 * The operation pattern, shown by an operation with every feature: a job, a child process, a second
 * job, and a state that undoes.
 *
 *   PREPARE --ok--> SPAWN --ok--> RECORD --ok--> DONE
 *      |              |             |              ^
 *      |              +----error----+--> UNDO -----+
 *      +------error, cancel or deadline -----------+
 */
#include "base/log.h"
#include "loop/child.h"
#include "loop/job.h"
#include "loop/op.h"
#include "tests/support/loop.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>

enum { CREATE_DONE = AGX_OP_DONE, CREATE_PREPARE, CREATE_SPAWN, CREATE_RECORD, CREATE_UNDO };

/* The work of PREPARE, RECORD and UNDO. */
struct step_job {
    struct agx_job job;
    int stop;    /* eventfd: ends a job that blocks */
    bool blocks; /* until it is cancelled */
    bool fails;
};

struct create_op {
    struct agx_op op;
    struct agx_pool *pool;
    struct step_job step;
    struct agx_child *child; /* in SPAWN */
    const char *helper, *command;
    unsigned blocks_in, fails_in, cancel_in; /* states */
    char trace[64];                          /* the states that were entered */
    agx_done_fn done;
    void *user;
};

static struct create_op *of(struct agx_op *op)
{
    return container_of(op, struct create_op, op);
}

static int step_run(struct agx_job *j, struct agx_error **err)
{
    struct step_job *s = container_of(j, struct step_job, job);
    struct pollfd p = { .fd = s->stop, .events = POLLIN };

    if (s->blocks) {
        (void)poll(&p, 1, -1);
        return agx_error_set(err, AGX_ABORTED, "was interrupted");
    }
    return s->fails ? agx_error_set(err, AGX_DATA_LOSS, "disk is broken") : 0;
}

static void step_cancel(struct agx_job *j)
{
    (void)eventfd_write(container_of(j, struct step_job, job)->stop, 1);
}

static void on_step_done(struct agx_job *j, struct agx_error *error)
{
    struct create_op *c = container_of(j, struct create_op, step.job);
    static const unsigned after[] = {
        [CREATE_PREPARE] = CREATE_SPAWN,
        [CREATE_RECORD] = CREATE_DONE,
        [CREATE_UNDO] = CREATE_DONE,
    };

    agx_op_fail(&c->op, &error);
    agx_op_go(&c->op, after[c->op.state]);
}

static const struct agx_job_kind step_kind = { "step", step_run, on_step_done, step_cancel };

static void entered(struct create_op *c)
{
    size_t used = strlen(c->trace);

    snprintf(c->trace + used, sizeof(c->trace) - used, "%u", c->op.state);
}

static int enter_step(struct agx_op *op, struct agx_error **err)
{
    struct create_op *c = of(op);

    entered(c);
    c->step.job.kind = &step_kind;
    c->step.blocks = c->blocks_in == op->state;
    c->step.fails = c->fails_in == op->state;
    return agx_job_start(&c->step.job, c->pool, err);
}

static void cancel_step(struct agx_op *op)
{
    agx_job_cancel(&of(op)->step.job);
}

static void on_child_exit(void *user, const struct agx_child_status *status)
{
    struct create_op *c = user;
    struct agx_error *error = NULL;

    c->child = NULL;
    if (status->code != 0)
        (void)agx_error_set(&error, AGX_INTERNAL, "helper ended with code %d, signal %d",
                            status->code, status->signo);
    agx_op_fail(&c->op, &error);
    agx_op_go(&c->op, CREATE_RECORD);
}

static int enter_spawn(struct agx_op *op, struct agx_error **err)
{
    struct create_op *c = of(op);
    const char *const argv[] = { "helper", "-c",
                                 c->blocks_in == CREATE_SPAWN ? "exec sleep 1000" : c->command,
                                 NULL };
    const struct agx_child_params params = { .file = c->helper, .argv = argv };

    entered(c);
    return agx_child_start(op->loop, &params, on_child_exit, c, &c->child, err);
}

static void cancel_spawn(struct agx_op *op)
{
    agx_child_kill(of(op)->child, SIGKILL);
}

static void create_finish(struct agx_op *op, struct agx_error *error)
{
    struct create_op *c = of(op);

    c->done(c->user, error);
    close(c->step.stop);
    free(c);
}

static const struct agx_op_state create_states[] = {
    [CREATE_PREPARE] = { "prepare", enter_step, cancel_step },
    [CREATE_SPAWN] = { "spawn", enter_spawn, cancel_spawn, .on_error = CREATE_UNDO },
    [CREATE_RECORD] = { "record", enter_step, cancel_step, .on_error = CREATE_UNDO },
    [CREATE_UNDO] = { "undo", enter_step },
};

static const struct agx_op_kind create_kind = {
    .name = "create",
    .states = create_states,
    .n_states = AGX_ARRAY_LEN(create_states),
    .finish = create_finish,
};

/* One run of the operation and what came of it. */
struct run {
    struct agx_loop *loop;
    struct agx_pool *pool;
    struct create_op *op;
    int n_done;
    struct agx_error *error;
    char trace[64];
    uv_prepare_t canceller;
    unsigned cancel_in;
};

static void on_pool_stopped(void *user, struct agx_error *error)
{
    (void)user;
    agx_error_free(error);
}

static void on_created(void *user, struct agx_error *error)
{
    struct run *r = user;

    r->n_done++;
    r->error = error;
    snprintf(r->trace, sizeof(r->trace), "%s", r->op->trace);
    r->op = NULL;
    uv_close((uv_handle_t *)&r->canceller, NULL);
    agx_pool_stop(r->pool, TEST_LOOP_HANG_MS, on_pool_stopped, NULL);
}

static void maybe_cancel(uv_prepare_t *p)
{
    struct run *r = container_of(p, struct run, canceller);

    if (r->op && r->cancel_in != AGX_OP_DONE && r->op->op.state == r->cancel_in)
        agx_op_cancel(&r->op->op, AGX_CANCELLED);
}

/* Runs the operation that `like` describes; the caller frees r->error. */
static void run_create(struct run *r, struct create_op like, uint64_t deadline_ms)
{
    const struct agx_pool_config pool = { "create", 1, 1 };

    *r = (struct run){ .loop = test_loop_open(), .cancel_in = like.cancel_in };
    ASSERT_OK(agx_pool_open(r->loop, &pool, &r->pool, NULL));
    (void)uv_prepare_init(agx_loop_uv(r->loop), &r->canceller);
    (void)uv_prepare_start(&r->canceller, maybe_cancel);
    r->op = malloc(sizeof(*r->op));
    *r->op = like;
    r->op->pool = r->pool;
    r->op->step.stop = eventfd(0, EFD_CLOEXEC);
    if (!like.helper)
        r->op->helper = "/bin/sh";
    if (!like.command)
        r->op->command = "exit 0";
    r->op->done = on_created;
    r->op->user = r;
    agx_op_start(&r->op->op, &create_kind, r->loop, "op-1", deadline_ms);
    ASSERT_INT(0, r->n_done); /* never inside the starting call */
    test_loop_run(r->loop);
    ASSERT_INT(1, r->n_done);
    test_loop_close(r->loop);
}

static void expect_failure(struct run *r, enum agx_code code, const char *words, const char *trace)
{
    ASSERT_NOT_NULL(r->error);
    ASSERT_INT(code, r->error->code);
    ASSERT_MESSAGE(r->error, words);
    ASSERT_CSTR(trace, r->trace);
    r->error = agx_error_free(r->error);
}

TEST(op_that_succeeds_passes_all_states)
{
    struct run r;

    run_create(&r, (struct create_op){ 0 }, TEST_LOOP_HANG_MS);
    ASSERT_NULL(r.error);
    ASSERT_CSTR("123", r.trace);
}

TEST(op_without_deadline_succeeds_too)
{
    struct run r;

    run_create(&r, (struct create_op){ 0 }, 0);
    ASSERT_NULL(r.error);
}

TEST(op_whose_job_fails_ends_with_its_error)
{
    struct run r;

    run_create(&r, (struct create_op){ .fails_in = CREATE_PREPARE }, 0);
    expect_failure(&r, AGX_DATA_LOSS, "disk is broken", "1");
}

TEST(op_whose_helper_fails_undoes)
{
    struct run r;

    run_create(&r, (struct create_op){ .command = "exit 3" }, 0);
    expect_failure(&r, AGX_INTERNAL, "helper ended with code 3", "124");
}

TEST(op_whose_helper_is_missing_undoes_and_names_it)
{
    struct run r;

    run_create(&r, (struct create_op){ .helper = "/no/helper" }, 0);
    expect_failure(&r, AGX_NOT_FOUND, "spawn: start '/no/helper': No such file", "124");
}

TEST(op_keeps_its_first_error_when_undoing_fails_too)
{
    struct run r;

    run_create(&r, (struct create_op){ .command = "exit 3", .fails_in = CREATE_UNDO }, 0);
    expect_failure(&r, AGX_INTERNAL, "helper ended with code 3", "124");
}

TEST(op_past_its_deadline_in_a_job_is_stopped)
{
    struct run r;

    run_create(&r, (struct create_op){ .blocks_in = CREATE_PREPARE }, 20);
    expect_failure(&r, AGX_DEADLINE_EXCEEDED, "create stopped in state 'prepare'", "1");
}

TEST(op_past_its_deadline_in_a_child_kills_it_and_undoes)
{
    struct run r;

    /* However slow the machine is: long enough that PREPARE ends before. */
    for (uint64_t deadline_ms = 100;; deadline_ms *= 2) {
        run_create(&r, (struct create_op){ .blocks_in = CREATE_SPAWN }, deadline_ms);
        if (strcmp(r.trace, "1") != 0)
            break;
        expect_failure(&r, AGX_DEADLINE_EXCEEDED, "create stopped in state 'prepare'", "1");
    }
    expect_failure(&r, AGX_DEADLINE_EXCEEDED, "create stopped in state 'spawn'", "124");
}

TEST(op_cancelled_in_any_state_ends_cancelled)
{
    static const char *const traces[] = { "", "1", "124", "1234" };
    struct run r;

    for (unsigned s = CREATE_PREPARE; s <= CREATE_RECORD; s++) {
        run_create(&r, (struct create_op){ .blocks_in = s, .cancel_in = s }, 0);
        expect_failure(&r, AGX_CANCELLED, "create stopped in state", traces[s]);
    }
}

TEST(op_that_undoes_cannot_be_cancelled)
{
    struct run r;

    run_create(&r, (struct create_op){ .command = "exit 3", .cancel_in = CREATE_UNDO }, 0);
    expect_failure(&r, AGX_INTERNAL, "helper ended with code 3", "124");
}

TEST(op_logs_each_transition_at_debug_level)
{
    struct agx_log_config quiet = AGX_LOG_CONFIG_INIT, loud = quiet;
    char text[4096] = "";
    int fds[2];
    struct run r;

    ASSERT_INT(0, pipe2(fds, O_CLOEXEC));
    loud.level = AGX_LOG_DEBUG;
    loud.fd = fds[1];
    agx_log_setup(&loud);
    run_create(&r, (struct create_op){ 0 }, 0);
    agx_log_setup(&quiet);
    close(fds[1]);
    ASSERT_TRUE(read(fds[0], text, sizeof(text) - 1) > 0);
    close(fds[0]);
    ASSERT_NOT_NULL(strstr(text, "event=op.state kind=create op=op-1 from=prepare to=spawn"));
    ASSERT_NOT_NULL(strstr(text, "from=record to=done"));
}
