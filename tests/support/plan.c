/* plan.c: makes plans and runs the processes that carry them out. */
#include "tests/support/plan.h"

#include "base/fd.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define BIT(cap) (UINT64_C(1) << (cap))

enum { PLAN_MAX = 1 << 16 };

const char *test_plan_path(struct test_plan *x, const char *name)
{
    char full[sizeof(x->paths[0])];

    (void)snprintf(full, sizeof(full), "%s/%s", x->dir, name);
    for (size_t i = 0; i < AGX_ARRAY_LEN(x->paths); i++) {
        if (x->paths[i][0] && strcmp(x->paths[i], full) != 0)
            continue;
        (void)snprintf(x->paths[i], sizeof(x->paths[i]), "%s", full);
        return x->paths[i];
    }
    FAIL("too many paths");
}

void test_plan_make_dir(struct test_plan *x, const char *name)
{
    ASSERT_INT(0, mkdir(test_plan_path(x, name), 0755));
}

void test_plan_write(struct test_plan *x, const char *name, const char *text)
{
    int fd = open(test_plan_path(x, name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    ASSERT_TRUE(fd >= 0);
    ASSERT_OK(agx_fd_write_all(fd, agx_str_from(text), NULL));
    (void)close(fd);
}

static void make_box(struct test_plan *x)
{
    static const char *const names[] = { "box", "box/upper", "box/work" };

    for (size_t i = 0; i < AGX_ARRAY_LEN(names); i++) {
        char path[128];

        (void)snprintf(path, sizeof(path), "%s/%s", x->dir, names[i]);
        ASSERT_INT(0, mkdir(path, 0755));
        ASSERT_INT(0, chown(path, TEST_NSSET_BASE, TEST_NSSET_BASE));
    }
}

static void set_defaults(struct test_plan *x)
{
    agx_init_rlimit_put(x->limits, &(struct agx_init_rlimit){ RLIMIT_NOFILE, 512, 1024 });
    x->layers[0] = x->image.root;
    x->plan = (struct agx_plan){
        .flags = AGX_PLAN_AT_ONCE | AGX_PLAN_NO_NEW_PRIVS | AGX_PLAN_VOLATILE,
        .cgroup_fd = AGX_PLAN_NO_FD,
        .writable = agx_str_from(test_plan_path(x, "box")),
        .devices = agx_str_from(agx_devices_path(x->devices)),
        .shm_bytes = 1 << 20,
        .ptys = 3,
        .masked = TEST_WORDS(&x->masked, "/proc/version", "/proc/no_such", "/sys/firmware"),
        .frozen = TEST_WORDS(&x->frozen, "/proc/sys", "/proc/sysrq-trigger", "/proc/no_such"),
        .hostname = AGX_STR("box"),
        .caps = BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_SETUID) | BIT(CAP_SETGID) |
                BIT(CAP_KILL) | BIT(CAP_FOWNER),
        .rlimits = { 1, agx_str_bytes(x->limits, AGX_INIT_RLIMIT_SIZE) },
        .env = TEST_WORDS(&x->env, "PATH=/bin", "COLOUR=blue"),
    };
}

void test_plan_open(struct test_plan *x)
{
    memset(x, 0, sizeof(*x));
    (void)snprintf(x->dir, sizeof(x->dir), "/tmp/agx-plan-XXXXXX");
    x->report_fd = x->init.pidfd = -1;
    x->cgroup = (struct agx_cgroup_entry)AGX_CGROUP_ENTRY_INIT;
    test_nsset_make(&x->nsset);
    test_sandbox_make(&x->image, TEST_IMAGE_BUSYBOX);
    ASSERT_NOT_NULL(mkdtemp(x->dir));
    make_box(x);
    ASSERT_OK(agx_devices_open(test_plan_path(x, "dev"), false, &x->devices, NULL));
    set_defaults(x);
}

static struct agx_init_list make_mounts(struct test_plan *x)
{
    struct agx_init_list l = { 0 };
    size_t n = 0;

    for (; x->mounts[l.count].source; l.count++) {
        const struct test_plan_mount *m = &x->mounts[l.count];
        const struct agx_plan_mount one = { m->flags, agx_str_from(m->source),
                                            agx_str_from(m->target),
                                            m->fd > 0 ? (uint32_t)m->fd : AGX_PLAN_NO_FD };

        n += agx_plan_mount_put(x->mount_bytes + n, sizeof(x->mount_bytes) - n, &one);
        ASSERT_TRUE(n <= sizeof(x->mount_bytes));
    }
    l.bytes = agx_str_bytes(x->mount_bytes, n);
    return l;
}

static int make_memfd(const struct agx_plan *p)
{
    static uint8_t bytes[PLAN_MAX];
    size_t n = agx_plan_encode(p, bytes, sizeof(bytes));
    int fd = memfd_create("plan", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    ASSERT_TRUE(n <= sizeof(bytes) && fd >= 0);
    ASSERT_INT(n, write(fd, bytes, n));
    ASSERT_INT(0, fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE));
    return fd;
}

/* Adds the cgroup's descriptors to those that init inherits; returns their number. */
static size_t add_cgroup(struct test_plan *x, int *fds)
{
    struct agx_init_list list = { 0 };
    size_t len = 0, n = 0;

    for (; list.count < x->cgroup.n_tasks; list.count++) {
        fds[n++] = x->cgroup.tasks_fds[list.count];
        len += agx_plan_number_put(x->numbers + len, sizeof(x->numbers) - len,
                                   (uint32_t)x->cgroup.tasks_fds[list.count]);
    }
    list.bytes = agx_str_bytes(x->numbers, len);
    x->plan.tasks_fds = list;
    if (x->cgroup.dir_fd < 0)
        return n;
    fds[n++] = x->cgroup.dir_fd;
    x->plan.cgroup_fd = (uint32_t)x->cgroup.dir_fd;
    return n;
}

void test_plan_start(struct test_plan *x)
{
    int pair[2], fds[AGX_CGROUP_TASKS_MAX + TEST_PLAN_MOUNTS + 5];
    char number[16];
    size_t n = 0;

    ASSERT_INT(0, socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
    x->report_fd = pair[0];
    x->plan.report_fd = (uint32_t)(fds[n++] = pair[1]);
    x->plan.user_fd = (uint32_t)(fds[n++] = x->nsset.user_fd);
    x->plan.net_fd = (uint32_t)(fds[n++] = x->nsset.net_fd);
    x->plan.layers = test_words(&x->layer_words, x->layers);
    x->plan.mounts = make_mounts(x);
    n += add_cgroup(x, fds + n);
    for (size_t i = 0; x->mounts[i].source; i++) {
        if (x->mounts[i].fd > 0)
            fds[n++] = x->mounts[i].fd;
    }
    fds[n] = make_memfd(&x->plan);
    (void)snprintf(number, sizeof(number), "%d", fds[n]);
    x->helper = test_init_spawn((const char *const[]){ "--plan", number, NULL }, fds, n + 1);
    (void)close(fds[n]);
    (void)close(pair[1]);
}

static struct agx_plan_report read_report(struct test_plan *x)
{
    int fds[AGX_PLAN_REPORT_FDS_MAX];
    struct agx_plan_report r = { 0 };

    if (!test_report_read(x->report_fd, &r, fds) || r.kind != AGX_PLAN_CLONED)
        return r;
    ASSERT_TRUE(fds[0] >= 0);
    ASSERT_INT(0, test_wait(x->helper));
    x->helper = 0;
    x->init.pid = (pid_t)r.pid;
    x->init.pidfd = fds[0];
    return r;
}

void test_plan_expect(struct test_plan *x, enum agx_plan_kind kind)
{
    struct agx_plan_report r = read_report(x);
    struct agx_error *err = NULL;
    char text[512];

    if (r.kind == kind)
        return;
    if (r.kind == AGX_PLAN_FAILED)
        (void)agx_plan_failed(&r, &err);
    FAIL("report %d, expected %d: %s", r.kind, kind,
         err ? agx_error_format(err, text, sizeof(text)) : "");
}

void test_plan_expect_failure(struct test_plan *x, const char *words)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_plan_report r = read_report(x);

    if (r.kind == AGX_PLAN_CLONED)
        r = read_report(x);
    ASSERT_INT(AGX_PLAN_FAILED, r.kind);
    (void)agx_plan_failed(&r, &err);
    ASSERT_MESSAGE(err, words);
    test_plan_kill(x);
}

void test_plan_boot(struct test_plan *x)
{
    test_plan_start(x);
    test_plan_expect(x, AGX_PLAN_CLONED);
    if (!(x->plan.flags & AGX_PLAN_AT_ONCE)) {
        test_plan_expect(x, AGX_PLAN_READY);
        test_report_go(x->report_fd);
    }
    test_plan_expect(x, AGX_PLAN_RUNNING);
    x->init.loop = test_loop_open();
    for (size_t i = 0; i < AGX_INIT_FDS_MAX; i++)
        x->init.log_fds[i] = -1;
    test_init_connect(&x->init);
    ASSERT_FALSE(x->init.lost);
}

int test_plan_reap(struct test_plan *x)
{
    struct pollfd end = { .fd = x->init.pidfd, .events = POLLIN };
    siginfo_t info;

    ASSERT_INT(1, poll(&end, 1, -1)); /* the link has made the descriptor non-blocking */
    ASSERT_INT(0, waitid(P_PIDFD, (id_t)x->init.pidfd, &info, WEXITED | __WALL));
    x->init.pid = 0;
    return info.si_status;
}

void test_plan_kill(struct test_plan *x)
{
    if (x->helper > 0)
        (void)test_wait(x->helper);
    x->helper = 0;
    if (x->init.link)
        test_init_disconnect(&x->init);
    if (x->init.pid > 0) {
        (void)syscall(SYS_pidfd_send_signal, x->init.pidfd, SIGKILL, NULL, 0);
        (void)test_plan_reap(x);
    }
    for (size_t i = 0; x->init.loop && i < AGX_INIT_FDS_MAX; i++)
        agx_closep(&x->init.log_fds[i]);
    if (x->init.loop)
        test_loop_close(x->init.loop);
    agx_closep(&x->init.pidfd);
    agx_closep(&x->report_fd);
    memset(&x->init, 0, sizeof(x->init));
    x->report_fd = x->init.pidfd = -1;
}

void test_plan_close(struct test_plan *x)
{
    char command[128];

    test_plan_kill(x);
    x->devices = agx_devices_close(x->devices);
    (void)snprintf(command, sizeof(command), "rm -rf %s", x->dir);
    ASSERT_INT(0, system(command));
    test_sandbox_remove(&x->image);
    test_nsset_close(&x->nsset);
}
