/*
 * plan.h: a native sandbox without the daemon: an nsset, a plan, `agentix-init --plan`, and the
 * link to its PID 1.
 *
 *     struct test_plan x;
 *     test_plan_open(&x);                      a busybox image; x.plan may be changed
 *     test_plan_boot(&x);                      up to RUNNING
 *     test_init_run(&x.init, "one", "id");
 *     test_plan_close(&x);
 *
 * PID 1 outlives the process that makes it, and this test, so such a test runs under docker_box.py.
 */
#ifndef AGX_TESTS_PLAN_H
#define AGX_TESTS_PLAN_H

#include "backend/native/devices.h"
#include "backend/native/limits/cgroup.h"
#include "tests/support/nsset.h"
#include "tests/support/sandbox.h"

enum { TEST_PLAN_LAYERS = 4, TEST_PLAN_MOUNTS = 8 };

struct test_plan_mount {
    const char *source, *target;
    uint32_t flags;
    int fd; /* of the source; 0: opened by its path */
};

struct test_plan {
    struct test_sandbox image; /* the lowest layer */
    char dir[64];              /* of the test: box/{upper,work}, dev, and the test's files */
    struct test_nsset nsset;
    struct agx_devices *devices;

    /* test_plan_start() reads these. */
    struct agx_plan plan; /* without its lists of layers, mounts and descriptors */
    const char *layers[TEST_PLAN_LAYERS + 1];
    struct test_plan_mount mounts[TEST_PLAN_MOUNTS + 1];
    struct agx_cgroup_entry cgroup; /* set by the test; none by default */

    pid_t helper; /* the process that makes PID 1 */
    int report_fd;
    struct test_init init; /* pid and pidfd of PID 1 since CLONED */

    struct test_words masked, frozen, argv, env, layer_words;
    uint8_t mount_bytes[4096], numbers[64], limits[4 * AGX_INIT_RLIMIT_SIZE];
    char paths[8][128];
};

/* Prepares everything, and starts nothing. Skips without root or busybox. */
void test_plan_open(struct test_plan *x);
/* Ends all processes and removes all files. */
void test_plan_close(struct test_plan *x);

/* A path below x->dir. At most eight. */
const char *test_plan_path(struct test_plan *x, const char *name);
void test_plan_write(struct test_plan *x, const char *name, const char *text);
void test_plan_make_dir(struct test_plan *x, const char *name);

/* Starts `agentix-init --plan`. */
void test_plan_start(struct test_plan *x);
/* Asserts the kind of the next report. After CLONED, PID 1 is known. */
void test_plan_expect(struct test_plan *x, enum agx_plan_kind kind);
/* Asserts that the next report other than CLONED is a failure, and that all processes have ended.
 * Returns its message. */
void test_plan_expect_failure(struct test_plan *x, const char *words);
/* Starts, reads all reports up to RUNNING, and makes the link. */
void test_plan_boot(struct test_plan *x);
/* Waits for the end of PID 1, as a daemon does; returns its exit code, or the signal. */
int test_plan_reap(struct test_plan *x);
/* Kills PID 1; its files stay, and it may be started again. */
void test_plan_kill(struct test_plan *x);

#endif
