/*
 * init_client.h: a backend with one sandbox that only passes calls to its init client, with a real
 * agentix-init. The including program defines how the init client reaches init.
 *
 *     test_init_client_open(&t);          init runs, the init client is up and ready
 *     test_command_start(&t.b, ...)  as with every backend
 *     test_init_client_close(&t);
 */
#ifndef AGX_TESTS_INIT_CLIENT_H
#define AGX_TESTS_INIT_CLIENT_H

#include "backend/exec/init_client.h"
#include "tests/support/backend.h"
#include "tests/support/init.h"

#include <sys/wait.h>
#include <signal.h>

struct test_init_client {
    struct agx_backend b;
    struct agx_sandbox sb;
    struct agx_init_client *a;
    struct test_init init; /* its process and loop; the link is the init client's */
    unsigned n_ready, n_ended, n_closed;
    enum agx_code ended_code;
};

static inline struct test_init_client *test_init_client_of(struct agx_backend *b)
{
    return container_of(b, struct test_init_client, b);
}

static inline int test_init_client_exec(struct agx_backend *b, const struct agx_backend_exec *q,
                                        bool adopt, const struct agx_backend_exec_hooks *hooks,
                                        void *user, struct agx_backend_op **ret_op,
                                        struct agx_error **err)
{
    return agx_init_client_exec_start(test_init_client_of(b)->a, q, adopt, hooks, user, ret_op,
                                      err);
}

static inline int test_init_client_kill(struct agx_backend *b, const char *sandbox_id,
                                        const char *exec_id, uint64_t grace_ms, agx_done_fn gone,
                                        void *user, struct agx_backend_op **ret_op,
                                        struct agx_error **err)
{
    (void)sandbox_id;
    return agx_init_client_kill(test_init_client_of(b)->a, exec_id, grace_ms, gone, user, ret_op,
                                err);
}

static inline int test_init_client_write(struct agx_backend *b, const char *sandbox_id,
                                         const char *exec_id, struct agx_str data, bool eof,
                                         agx_done_fn taken, void *user,
                                         struct agx_backend_op **ret_op, struct agx_error **err)
{
    (void)sandbox_id;
    return agx_init_client_write(test_init_client_of(b)->a, exec_id, data, eof, taken, user, ret_op,
                                 err);
}

static inline int test_init_client_forget(struct agx_backend *b, const char *sandbox_id,
                                          const char *exec_id, struct agx_error **err)
{
    (void)sandbox_id;
    return agx_init_client_forget(test_init_client_of(b)->a, exec_id, err);
}

static const struct agx_backend_ops test_init_client_ops = {
    .name = "init_client",
    .exec_start = test_init_client_exec,
    .exec_kill = test_init_client_kill,
    .exec_write = test_init_client_write,
    .forget_exec = test_init_client_forget,
};

static inline void test_init_client_ready(void *user)
{
    ((struct test_init_client *)user)->n_ready++;
}

static inline void test_init_client_ended(void *user, struct agx_error *error)
{
    struct test_init_client *t = user;

    t->n_ended++;
    t->ended_code = error->code;
    agx_error_free(error);
}

static inline void test_init_client_closed(void *user, struct agx_error *error)
{
    ASSERT_NULL(error);
    ((struct test_init_client *)user)->n_closed++;
}

/* Makes only the init client, without knowledge of init. */
static inline void test_init_client_new(struct test_init_client *t)
{
    const struct agx_init_client_config config = { .backend = &t->b,
                                                   .sandbox_id = t->sb.id,
                                                   .cwd = "/tmp",
                                                   .ready = test_init_client_ready,
                                                   .ended = test_init_client_ended,
                                                   .user = t };

    t->n_ready = t->n_ended = t->n_closed = 0;
    ASSERT_OK(agx_init_client_open(&config, &t->a, NULL));
}

/* The including program defines these: start a new init, possibly in place of one that ended (NULL:
 * with the usual arguments); connect the init client to it; break the link, which the init client
 * makes again. */
void test_init_client_boot(struct test_init_client *t, const struct test_init_params *params);
void test_init_client_begin_up(struct test_init_client *t);
void test_init_client_break(struct test_init_client *t);
/* ... and close the program's handles on the loop. */
void test_init_client_unboot(struct test_init_client *t);

/* For test_init_client_boot(): uses the loop of an earlier init client. */
static inline void test_init_client_boot_init(struct test_init_client *t,
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

/* Init runs, and the init client does not know it yet. */
static inline void test_init_client_open_unknown(struct test_init_client *t)
{
    struct agx_spec spec;

    *t = (struct test_init_client){ .init.pidfd = -1 };
    agx_spec_init(&spec);
    ASSERT_OK(agx_text_set(&spec.image, "none", NULL));
    ASSERT_OK(agx_sandbox_init(&t->sb, "init_client-1", &spec, NULL));
    test_init_client_boot(t, NULL);
    t->b = (struct agx_backend){ .ops = &test_init_client_ops, .loop = t->init.loop };
    test_init_client_new(t);
}

static inline void test_init_client_up(struct test_init_client *t)
{
    unsigned before = t->n_ready;

    test_init_client_begin_up(t);
    test_wait(t->b.loop, &t->n_ready, before + 1);
    ASSERT_TRUE(agx_init_client_is_ready(t->a));
}

static inline void test_init_client_open(struct test_init_client *t)
{
    test_init_client_open_unknown(t);
    test_init_client_up(t);
}

static inline void test_init_client_end(struct test_init_client *t)
{
    agx_init_client_close(t->a, test_init_client_closed, t);
    ASSERT_UINT(0, t->n_closed);
    test_wait(t->b.loop, &t->n_closed, 1);
}

/* Acts as if the daemon had died and a new one had started. */
static inline void test_init_client_again(struct test_init_client *t)
{
    test_init_client_end(t);
    test_init_client_new(t);
    test_init_client_up(t);
}

/* Stops init with SIGSTOP and waits until it has stopped: it answers nothing from then on. */
static inline void test_init_client_stop_init(struct test_init_client *t)
{
    siginfo_t si;

    ASSERT_INT(0, kill(t->init.pid, SIGSTOP));
    ASSERT_INT(0, waitid(P_PID, (id_t)t->init.pid, &si, WSTOPPED | WNOWAIT));
}

/* Kills init, as an engine kills a container. */
static inline void test_init_client_kill_init(struct test_init_client *t)
{
    ASSERT_INT(0, kill(t->init.pid, SIGKILL));
    (void)test_init_status(&t->init);
}

/* Closes everything except the init client. */
static inline void test_init_client_remove(struct test_init_client *t)
{
    test_init_client_unboot(t);
    agx_sandbox_done(&t->sb);
    test_init_close(&t->init);
}

static inline void test_init_client_close(struct test_init_client *t)
{
    test_init_client_end(t);
    test_init_client_remove(t);
}

#endif
