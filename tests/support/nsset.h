/* nsset.h: gets namespace sets from a real `agentix-init --nssets`, as the daemon does. */
#ifndef AGX_TESTS_NSSET_H
#define AGX_TESTS_NSSET_H

#include "codec/initproto_plan.h"
#include "tests/support/test.h"

#include <sys/types.h>

enum { TEST_NSSET_IDS = 65536, TEST_NSSET_BASE = 1879048192 };

/* Starts agentix-init. The descriptors keep their numbers in it; no other is open there. */
pid_t test_init_spawn(const char *const *args, const int *fds, size_t n_fds);
/* Waits for agentix-init and returns its wait status. */
int test_wait(pid_t pid);

/* Reads a report and its descriptors; other entries of `fds` are -1. False: the socket has
 * ended. */
bool test_report_read(int fd, struct agx_plan_report *ret, int fds[AGX_PLAN_REPORT_FDS_MAX]);
void test_report_go(int fd);

struct test_nsset {
    pid_t init; /* 0: it has ended */
    pid_t pid;  /* of the process that made the namespaces, a child of init */
    int report_fd;
    int user_fd, net_fd, netlink_fd;
};

/* Makes a namespace set up to MADE. `settings` ends with NULL, or is NULL. Skips without root. */
void test_nsset_begin(struct test_nsset *n, const char *const *settings);
/* Makes the next set of the same init, up to MADE. The caller owns the last set's descriptors. */
void test_nsset_again(struct test_nsset *n);
/* Maps its ids. */
void test_nsset_map(const struct test_nsset *n);
/* Continues from MADE: maps the ids and waits for READY. */
void test_nsset_finish(const struct test_nsset *n);
/* Closes everything; init has ended then. */
void test_nsset_make(struct test_nsset *n);
/* Closes the socket, which ends init, and returns init's exit status. */
int test_nsset_leave(struct test_nsset *n);
void test_nsset_close(struct test_nsset *n);

#endif
