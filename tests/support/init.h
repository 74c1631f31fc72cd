/*
 * init.h: a real agentix-init and a daemon's link to it, driven step by step.
 *
 *     struct test_init t;
 *     test_init_open(&t, NULL);                       as an ordinary process
 *     test_init_run(&t, "one", "sh", "-c", "echo x"); to its end
 *     ASSERT_INT(0, t.exit_code); ASSERT_CSTR("x\n", t.out);
 *     test_init_close(&t);
 */
#ifndef AGX_TESTS_INIT_H
#define AGX_TESTS_INIT_H

#include "backend/exec/initlink.h"
#include "tests/support/initproto.h"
#include "tests/support/loop.h"

#include <sys/types.h>

enum { TEST_INIT_NEWS = 512, TEST_INIT_TEXT = 256 };

/* A message of init, kept. */
struct test_init_news {
    enum agx_init_kind kind;
    char id[64];
    int exit_code;
    unsigned signo, code;
    struct agx_init_usage usage;
    char text[TEST_INIT_TEXT];
};

struct test_init {
    struct agx_loop *loop;
    pid_t pid;
    int pidfd;
    struct agx_initlink *link;
    unsigned n_ready;
    bool lost;
    enum agx_code lost_code;
    struct test_init_news news[TEST_INIT_NEWS];
    size_t n_news;
    bool timed_out;
    uint64_t connect_ms; /* 0: long */

    int log_fds[AGX_INIT_FDS_MAX]; /* of the last command that was started */
    int exit_code;                 /* of the last that was run */
    char out[1 << 16], err[1 << 16];
};

/* What a command is, beside its words. */
struct test_cmd {
    const char *user, *cwd;
    const char *const *env;
    uint32_t flags;
    uint32_t rows, cols, umask;
    const struct agx_init_rlimit *rlimit;
    uint64_t head_max, tail_max; /* 0: 1 MiB each */
};

struct test_init_params {
    const char *const *args;   /* after the program's name; may be NULL */
    void (*enter)(void *user); /* in the new process, before init's program */
    void *user;
    unsigned long clone_flags; /* namespaces */
    const char *program;       /* its path after enter(); NULL: the one that was built */
    int in_fd, out_fd;         /* 0: /dev/null */
};

/* Starts init; a link to it with connect(). NULL: no arguments. */
void test_init_start(struct test_init *t, const struct test_init_params *params);
void test_init_connect(struct test_init *t);
/* Both, as an ordinary process. */
void test_init_open(struct test_init *t, const char *const *args);
/* Kills it, if it is still there. */
void test_init_close(struct test_init *t);

/* Closes the link, as a daemon that dies. */
void test_init_disconnect(struct test_init *t);

void test_init_send(struct test_init *t, const struct agx_init_msg *m);
void test_init_ask(struct test_init *t, enum agx_init_kind kind, const char *id);
void test_init_begin(struct test_init *t, const char *id, const struct test_cmd *cmd,
                     const char *const *argv);
/* Waits for a message and takes it out of the news. */
struct test_init_news test_init_wait(struct test_init *t, enum agx_init_kind kind, const char *id);
/* True when such a message has come. */
bool test_init_has(const struct test_init *t, enum agx_init_kind kind, const char *id);
/* Runs the loop for so long. */
void test_init_pass(struct test_init *t, unsigned ms);
/* Reads the logs of the last command into out and err. */
void test_init_read_logs(struct test_init *t);
/* Waits for the process; its wait status. */
int test_init_status(struct test_init *t);

void test_init_exec(struct test_init *t, const char *id, const struct test_cmd *cmd,
                    const char *const *argv);

#define TEST_ARGV(...) ((const char *const[]){ __VA_ARGS__, NULL })
/* Starts, waits for the end, forgets; exit_code, out and err are set. */
#define test_init_run(t, id, ...) test_init_exec((t), (id), NULL, TEST_ARGV(__VA_ARGS__))

#endif
