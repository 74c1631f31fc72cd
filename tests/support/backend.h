/* backend.h: a backend in tests: makes requests, records their hooks, and waits for them. */
#ifndef AGX_TESTS_BACKEND_H
#define AGX_TESTS_BACKEND_H

#include "backend/backend.h"
#include "tests/support/caplog.h"
#include "tests/support/loop.h"

/* The reports of one operation, look, kill or write. */
struct test_reply {
    struct agx_backend_op *op; /* NULL after its end */
    size_t companions_len;
    unsigned n_begun, n_done;
    enum agx_code code;
    unsigned companions_ready, companions_failed; /* a bit for each index */
    unsigned n_seen;
    enum agx_seen primary; /* of the last report, like the next field and the id */
    uint8_t companions[8];
    char text[512];
    char sandbox_id[AGX_IDENT_MAX + 1];
    unsigned n_uses; /* parts whose usage was reported */
    struct agx_resource_usage uses[8];
};

/* Checks a spec and drops the warnings. */
static inline int test_backend_check(struct agx_backend *b, const struct agx_spec *spec,
                                     struct agx_error **err)
{
    _cleanup_(agx_words_done) struct agx_words warnings = { 0 };

    return agx_backend_check(b, spec, &warnings, err);
}

static inline void test_reply_begun(void *user)
{
    struct test_reply *r = user;

    ASSERT_UINT(0, r->n_done);
    r->n_begun++;
}

static inline void test_reply_companion(void *user, size_t place, struct agx_error *error)
{
    struct test_reply *r = user;

    ASSERT_UINT(0, r->n_done);
    *(error ? &r->companions_failed : &r->companions_ready) |= 1U << place;
    agx_error_free(error);
}

static inline void test_reply_done(void *user, struct agx_error *error)
{
    struct test_reply *r = user;

    ASSERT_UINT(0, r->n_done);
    r->n_done++;
    r->op = NULL;
    r->code = error ? error->code : AGX_OK;
    if (error)
        (void)agx_error_format(error, r->text, sizeof(r->text));
    agx_error_free(error);
}

static inline void test_reply_seen(void *user, const struct agx_backend_seen *seen)
{
    struct test_reply *r = user;

    ASSERT_UINT(0, r->n_done);
    r->n_seen++;
    r->primary = seen->primary;
    r->companions_len = AGX_MIN(seen->companions_len, sizeof(r->companions));
    if (r->companions_len > 0)
        memcpy(r->companions, seen->companions, r->companions_len);
    (void)snprintf(r->sandbox_id, sizeof(r->sandbox_id), "%s", seen->sandbox_id);
}

static inline void test_reply_use(void *user, size_t part, const struct agx_resource_usage *use)
{
    struct test_reply *r = user;

    ASSERT_UINT(0, r->n_done);
    ASSERT_TRUE(part < AGX_ARRAY_LEN(r->uses));
    r->n_uses++;
    r->uses[part] = *use;
}

static const struct agx_backend_hooks test_reply_hooks = { test_reply_begun, test_reply_companion,
                                                           test_reply_done };

static inline void test_tick(uv_timer_t *t)
{
    (void)t;
}

/* Turns the loop until *n is at least `want`. A turn runs the due timers and then waits, even if a
 * timer has just made the condition true; the tick ends that wait. */
static inline void test_wait(struct agx_loop *l, const unsigned *n, unsigned want)
{
    uv_timer_t guard, tick;

    (void)uv_timer_init(agx_loop_uv(l), &guard);
    (void)uv_timer_start(&guard, test_loop_hang, TEST_LOOP_HANG_MS, 0);
    (void)uv_timer_init(agx_loop_uv(l), &tick);
    (void)uv_timer_start(&tick, test_tick, 5, 5);
    while (*n < want)
        (void)uv_run(agx_loop_uv(l), UV_RUN_ONCE);
    uv_close((uv_handle_t *)&guard, NULL);
    uv_close((uv_handle_t *)&tick, NULL);
    (void)uv_run(agx_loop_uv(l), UV_RUN_NOWAIT);
}

static inline void test_wake(uv_timer_t *t)
{
    ++*(unsigned *)t->data;
}

/* Turns the loop for a while, to see that something does not happen. */
static inline void test_pause(struct agx_loop *l, uint64_t ms)
{
    uv_timer_t timer;
    unsigned woken = 0;

    (void)uv_timer_init(agx_loop_uv(l), &timer);
    timer.data = &woken;
    (void)uv_timer_start(&timer, test_wake, ms, 0);
    test_wait(l, &woken, 1);
    uv_close((uv_handle_t *)&timer, NULL);
    (void)uv_run(agx_loop_uv(l), UV_RUN_NOWAIT);
}

/* Starts an operation; its reply is set later. */
static inline void test_backend_begin(struct agx_backend *b, const struct agx_sandbox *sb,
                                      enum agx_do verb, struct test_reply *r)
{
    const struct agx_backend_request q = { .verb = verb, .sandbox = sb, .grace_ms = 100 };

    *r = (struct test_reply){ 0 };
    ASSERT_OK(agx_backend_start(b, &q, &test_reply_hooks, r, &r->op, NULL));
    ASSERT_UINT(0, r->n_done + r->n_begun);
}

/* Starts an operation and waits for its end. */
static inline struct test_reply test_backend_do(struct agx_backend *b, const struct agx_sandbox *sb,
                                                enum agx_do verb)
{
    struct test_reply r;

    test_backend_begin(b, sb, verb, &r);
    test_wait(b->loop, &r.n_done, 1);
    return r;
}

static inline void test_backend_ok(struct agx_backend *b, const struct agx_sandbox *sb,
                                   enum agx_do verb)
{
    struct test_reply r = test_backend_do(b, sb, verb);

    if (r.code != AGX_OK)
        FAIL("%s of '%s': %s", agx_do_name(verb), sb->id, r.text);
}

/* `sandbox_id` NULL: all. */
static inline struct test_reply test_backend_look(struct agx_backend *b, const char *sandbox_id)
{
    struct test_reply r = { 0 };

    ASSERT_OK(agx_backend_look(b, sandbox_id, test_reply_seen, test_reply_done, &r, &r.op, NULL));
    ASSERT_UINT(0, r.n_done);
    test_wait(b->loop, &r.n_done, 1);
    return r;
}

static inline enum agx_seen test_backend_seen(struct agx_backend *b, const char *sandbox_id)
{
    struct test_reply r = test_backend_look(b, sandbox_id);

    ASSERT_INT(AGX_OK, r.code);
    ASSERT_UINT(1, r.n_seen);
    ASSERT_CSTR(sandbox_id, r.sandbox_id);
    return r.primary;
}

static inline struct test_reply test_backend_use(struct agx_backend *b,
                                                 const struct agx_sandbox *sb)
{
    struct test_reply r = { 0 };

    ASSERT_OK(agx_backend_usage(b, sb, test_reply_use, test_reply_done, &r, &r.op, NULL));
    ASSERT_UINT(0, r.n_done + r.n_uses);
    test_wait(b->loop, &r.n_done, 1);
    return r;
}

static inline void test_backend_closed(void *user, struct agx_error *error)
{
    ASSERT_NULL(error);
    ++*(unsigned *)user;
}

static inline void test_backend_close(struct agx_backend *b)
{
    struct agx_loop *l = b->loop;
    unsigned closed = 0;

    agx_backend_close(b, test_backend_closed, &closed);
    ASSERT_UINT(0, closed);
    test_wait(l, &closed, 1);
}

/* ---- execs ---- */

struct test_command {
    struct agx_exec exec;
    struct test_caplog out, err;
    struct agx_backend_op *op; /* NULL after its end */
    unsigned n_begun, n_refused, n_unknown, n_exited, n_lost, n_end;
    int32_t exit_code;
    enum agx_code code;
    char text[512];
};

static inline void test_command_begun(void *user)
{
    struct test_command *c = user;

    ASSERT_UINT(0, c->n_end + c->n_begun);
    c->n_begun++;
}

static inline void test_command_end(struct test_command *c, unsigned *n, struct agx_error *error)
{
    ASSERT_UINT(0, c->n_end);
    ++*n;
    c->n_end++;
    c->op = NULL;
    c->code = error ? error->code : AGX_OK;
    if (error)
        (void)agx_error_format(error, c->text, sizeof(c->text));
    agx_error_free(error);
}

static inline void test_command_refused(void *user, struct agx_error *error)
{
    struct test_command *c = user;

    test_command_end(c, &c->n_refused, error);
}

static inline void test_command_unknown(void *user)
{
    struct test_command *c = user;

    test_command_end(c, &c->n_unknown, NULL);
}

static inline void test_command_exited(void *user, int32_t exit_code)
{
    struct test_command *c = user;

    test_command_end(c, &c->n_exited, NULL);
    c->exit_code = exit_code;
}

static inline void test_command_lost(void *user, struct agx_error *error)
{
    struct test_command *c = user;

    test_command_end(c, &c->n_lost, error);
}

static const struct agx_backend_exec_hooks test_command_hooks = {
    test_command_begun,  test_command_refused, test_command_unknown,
    test_command_exited, test_command_lost,
};

enum { TEST_HEAD_MAX = 1000, TEST_TAIL_MAX = 2000 };

/* An exec with empty logs; the caller adds its words. */
static inline void test_command_init(struct test_command *c, const char *id,
                                     const struct agx_sandbox *sb)
{
    *c = (struct test_command){ 0 };
    ASSERT_OK(agx_exec_init(&c->exec, id, sb->id, NULL));
    c->out = (struct test_caplog){ .data_fd = test_caplog_file(), .index_fd = test_caplog_file() };
    c->err = (struct test_caplog){ .data_fd = test_caplog_file(), .index_fd = test_caplog_file() };
}

static inline void test_command_done(struct test_command *c)
{
    agx_exec_done(&c->exec);
    test_caplog_close(&c->out);
    test_caplog_close(&c->err);
}

static inline void test_command_start(struct agx_backend *b, const struct agx_sandbox *sb,
                                      struct test_command *c, bool adopt, bool stdin_open)
{
    const struct agx_backend_exec q = {
        .sandbox = sb,
        .exec = &c->exec,
        .stdin_open = stdin_open,
        .out = { c->out.data_fd, c->out.index_fd, TEST_HEAD_MAX, TEST_TAIL_MAX },
        .err = { c->err.data_fd, c->err.index_fd, TEST_HEAD_MAX, TEST_TAIL_MAX },
    };

    c->n_begun = c->n_refused = c->n_unknown = c->n_exited = c->n_lost = c->n_end = 0;
    ASSERT_OK(agx_backend_exec_start(b, &q, adopt, &test_command_hooks, c, &c->op, NULL));
    ASSERT_UINT(0, c->n_begun + c->n_end);
}

/* The exit code of a command that must have one. */
static inline int32_t test_command_wait(struct agx_backend *b, struct test_command *c)
{
    test_wait(b->loop, &c->n_end, 1);
    if (c->n_exited != 1)
        FAIL("exec '%s' did not exit: %s", c->exec.id, c->text);
    return c->exit_code;
}

/* Reads a whole log that is not capped and has ended. */
static inline void test_log_is(const struct test_caplog *t, const char *want)
{
    struct agx_caplog_piece p;
    uint8_t out[4096];

    ASSERT_OK(agx_caplog_read(t->data_fd, t->index_fd, 0, out, sizeof(out), &p, NULL));
    ASSERT_UINT(0, p.skipped);
    ASSERT_TRUE(p.ended);
    ASSERT_STR(agx_str_from(want), agx_str_bytes(out, p.len));
}

static inline struct test_reply test_command_kill(struct agx_backend *b, const char *sandbox_id,
                                                  const char *exec_id, uint64_t grace_ms)
{
    struct test_reply r = { 0 };

    ASSERT_OK(
        agx_backend_exec_kill(b, sandbox_id, exec_id, grace_ms, test_reply_done, &r, &r.op, NULL));
    ASSERT_UINT(0, r.n_done);
    test_wait(b->loop, &r.n_done, 1);
    return r;
}

static inline enum agx_code test_command_write(struct agx_backend *b, const struct test_command *c,
                                               struct agx_str data, bool eof)
{
    struct test_reply r = { 0 };

    ASSERT_OK(agx_backend_exec_write(b, c->exec.sandbox_id, c->exec.id, data, eof, test_reply_done,
                                     &r, &r.op, NULL));
    ASSERT_UINT(0, r.n_done);
    test_wait(b->loop, &r.n_done, 1);
    return r.code;
}

#endif
