/*
 * init.h: a real agentix-init and the daemon's link to it, driven step by step.
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

/* A stored message of init. */
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

    int log_fds[AGX_INIT_FDS_MAX]; /* of the last started command */
    int exit_code;                 /* of the last command that was run */
    char out[1 << 16], err[1 << 16];
};

/* The parameters of a command, without its words. */
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
    void (*enter)(void *user); /* runs in the new process, before init's program */
    void *user;
    unsigned long clone_flags; /* namespaces */
    const char *program;       /* path after enter(); NULL: init of this build */
    int in_fd, out_fd;         /* 0: /dev/null */
};

/* Starts init (NULL: without arguments). test_init_connect() makes the link to it. */
void test_init_start(struct test_init *t, const struct test_init_params *params);
void test_init_connect(struct test_init *t);
/* Starts init as an ordinary process and connects. */
void test_init_open(struct test_init *t, const char *const *args);
/* Kills init if it still runs. */
void test_init_close(struct test_init *t);

/* Closes the link, as if the daemon had died. */
void test_init_disconnect(struct test_init *t);

void test_init_send(struct test_init *t, const struct agx_init_msg *m);
void test_init_ask(struct test_init *t, enum agx_init_kind kind, const char *id);
void test_init_begin(struct test_init *t, const char *id, const struct test_cmd *cmd,
                     const char *const *argv);
/* Waits for a message and removes it from the received messages. */
struct test_init_news test_init_wait(struct test_init *t, enum agx_init_kind kind, const char *id);
/* Whether such a message has arrived. */
bool test_init_has(const struct test_init *t, enum agx_init_kind kind, const char *id);
/* Runs the loop for this time. */
void test_init_pass(struct test_init *t, unsigned ms);
/* Reads the logs of the last command into out and err. */
void test_init_read_logs(struct test_init *t);
/* Waits for the process and returns its wait status. */
int test_init_status(struct test_init *t);

void test_init_exec(struct test_init *t, const char *id, const struct test_cmd *cmd,
                    const char *const *argv);

#define TEST_ARGV(...) ((const char *const[]){ __VA_ARGS__, NULL })
/* Runs a command: starts it, waits for its end, sends FORGET. Sets exit_code, out and err. */
#define test_init_run(t, id, ...) test_init_exec((t), (id), NULL, TEST_ARGV(__VA_ARGS__))

#endif
