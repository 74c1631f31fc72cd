/*
 * attend.h: a backend that has one sandbox and does nothing but hand calls to its attend, with a
 * real agentix-init. The program says how that is reached.
 *
 *     test_attend_open(&t);          init runs, the attend is up and ready
 *     test_command_start(&t.b, ...)  as with every backend
 *     test_attend_close(&t);
 */
#ifndef AGX_TESTS_ATTEND_H
#define AGX_TESTS_ATTEND_H

#include "backend/attend.h"
#include "tests/support/backend.h"
#include "tests/support/init.h"

#include <sys/wait.h>
#include <signal.h>

struct test_attend {
    struct agx_backend b;
    struct agx_sandbox sb;
    struct agx_attend *a;
    struct test_init init; /* its process and loop; the link is the attend's */
    unsigned n_ready, n_ended, n_closed;
    enum agx_code ended_code;
};

static inline struct test_attend *test_attend_of(struct agx_backend *b)
{
    return container_of(b, struct test_attend, b);
}

static inline int test_attend_exec(struct agx_backend *b, const struct agx_backend_exec *q,
                                   bool adopt, const struct agx_backend_exec_hooks *hooks,
                                   void *user, struct agx_backend_op **ret_op,
                                   struct agx_error **err)
{
    return agx_attend_exec(test_attend_of(b)->a, q, adopt, hooks, user, ret_op, err);
}

static inline int test_attend_kill(struct agx_backend *b, const char *sandbox_id,
                                   const char *exec_id, uint64_t grace_ms, agx_done_fn gone,
                                   void *user, struct agx_backend_op **ret_op,
                                   struct agx_error **err)
{
    (void)sandbox_id;
    return agx_attend_kill(test_attend_of(b)->a, exec_id, grace_ms, gone, user, ret_op, err);
}

static inline int test_attend_write(struct agx_backend *b, const char *sandbox_id,
                                    const char *exec_id, struct agx_str data, bool eof,
                                    agx_done_fn taken, void *user, struct agx_backend_op **ret_op,
                                    struct agx_error **err)
{
    (void)sandbox_id;
    return agx_attend_write(test_attend_of(b)->a, exec_id, data, eof, taken, user, ret_op, err);
}

static inline int test_attend_forget(struct agx_backend *b, const char *sandbox_id,
                                     const char *exec_id, struct agx_error **err)
{
    (void)sandbox_id;
    return agx_attend_forget(test_attend_of(b)->a, exec_id, err);
}

static const struct agx_backend_ops test_attend_ops = {
    .name = "attend",
    .exec_start = test_attend_exec,
    .exec_kill = test_attend_kill,
    .exec_write = test_attend_write,
    .forget_exec = test_attend_forget,
};

static inline void test_attend_ready(void *user)
{
    ((struct test_attend *)user)->n_ready++;
}

static inline void test_attend_ended(void *user, struct agx_error *error)
{
    struct test_attend *t = user;

    t->n_ended++;
    t->ended_code = error->code;
    agx_error_free(error);
}

static inline void test_attend_closed(void *user, struct agx_error *error)
{
    ASSERT_NULL(error);
    ((struct test_attend *)user)->n_closed++;
}

/* The attend alone, of which nothing is known. */
static inline void test_attend_new(struct test_attend *t)
{
    const struct agx_attend_config config = { .backend = &t->b,
                                              .sandbox_id = t->sb.id,
                                              .cwd = "/tmp",
                                              .ready = test_attend_ready,
                                              .ended = test_attend_ended,
                                              .user = t };

    t->n_ready = t->n_ended = t->n_closed = 0;
    ASSERT_OK(agx_attend_open(&config, &t->a, NULL));
}

/* The program's: a new init, maybe in the place of one that ended (NULL: as it is usual); to bring
 * the attend up with it; to break the link, which the attend makes again. */
void test_attend_boot(struct test_attend *t, const struct test_init_params *params);
void test_attend_begin_up(struct test_attend *t);
void test_attend_break(struct test_attend *t);
/* ... and whatever it has on the loop is closed. */
void test_attend_unboot(struct test_attend *t);

/* For test_attend_boot(): on the same loop as one before it. */
static inline void test_attend_boot_init(struct test_attend *t,
                                         const struct test_init_params *params)
{
    struct agx_loop *loop = t->init.loop;

    agx_closep(&t->init.pidfd);
    test_init_start(&t->init, params);
    if (!loop)
        return;
    test_loop_close(t->init.loop);
    t->init.loop = loop;
}

/* Its init runs, and the attend knows nothing yet. */
static inline void test_attend_open_unknown(struct test_attend *t)
{
    struct agx_spec spec;

    *t = (struct test_attend){ .init.pidfd = -1 };
    agx_spec_init(&spec);
    ASSERT_OK(agx_text_set(&spec.image, "none", NULL));
    ASSERT_OK(agx_sandbox_init(&t->sb, "attend-1", &spec, NULL));
    test_attend_boot(t, NULL);
    t->b = (struct agx_backend){ .ops = &test_attend_ops, .loop = t->init.loop };
    test_attend_new(t);
}

static inline void test_attend_up(struct test_attend *t)
{
    unsigned before = t->n_ready;

    test_attend_begin_up(t);
    test_wait(t->b.loop, &t->n_ready, before + 1);
    ASSERT_TRUE(agx_attend_is_ready(t->a));
}

static inline void test_attend_open(struct test_attend *t)
{
    test_attend_open_unknown(t);
    test_attend_up(t);
}

static inline void test_attend_end(struct test_attend *t)
{
    agx_attend_close(t->a, test_attend_closed, t);
    ASSERT_UINT(0, t->n_closed);
    test_wait(t->b.loop, &t->n_closed, 1);
}

/* As a daemon that died, and the next one. */
static inline void test_attend_again(struct test_attend *t)
{
    test_attend_end(t);
    test_attend_new(t);
    test_attend_up(t);
}

/* Stops init, and waits until it stands: it answers nothing from then on. */
static inline void test_attend_stop_init(struct test_attend *t)
{
    siginfo_t si;

    ASSERT_INT(0, kill(t->init.pid, SIGSTOP));
    ASSERT_INT(0, waitid(P_PID, (id_t)t->init.pid, &si, WSTOPPED | WNOWAIT));
}

/* Kills init, as an engine that kills a container. */
static inline void test_attend_kill_init(struct test_attend *t)
{
    ASSERT_INT(0, kill(t->init.pid, SIGKILL));
    (void)test_init_status(&t->init);
}

/* All but the attend. */
static inline void test_attend_remove(struct test_attend *t)
{
    test_attend_unboot(t);
    agx_sandbox_done(&t->sb);
    test_init_close(&t->init);
}

static inline void test_attend_close(struct test_attend *t)
{
    test_attend_end(t);
    test_attend_remove(t);
}

#endif
