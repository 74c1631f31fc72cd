/*
 * Control groups of this kernel, version 1 or 2, in a box of namespaces (docker_box.py), or in a
 * guest with version 2.
 */
#include "backend/native/limits/cgroup_internal.h"
#include "base/fd.h"
#include "tests/support/test.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define LIMITS(...) ((struct agx_cgroup_limits){ .pids = 100, __VA_ARGS__ })

static struct agx_cgroups *open_groups(void)
{
    const struct agx_cgroups_config config = { .instance = "7e570001aaaa" };
    struct agx_cgroups *g = NULL;
    struct agx_error *err = NULL;
    char text[512];

    if (agx_cgroups_open(&config, &g, &err) < 0)
        FAIL("%s", agx_error_format(err, text, sizeof(text)));
    return g;
}

/* Files of a group as the kernel shows them, without the newline. */
static void expect_file(struct agx_cgroups *g, unsigned controller, const char *name,
                        const char *file, const char *want)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(4096);
    _cleanup_close_ int dir = agx_cgroup_dir(g, controller, name, NULL);
    struct agx_str got;

    ASSERT_TRUE(dir >= 0);
    ASSERT_OK(agx_fd_read_file(dir, file, &text, NULL));
    got = agx_buf_peek(&text);
    got.len = agx_str_find(got, '\n');
    ASSERT_STR(agx_str_from(want), got);
}

/* fork() without what the C library or a sanitizer does in a child: a thread more would count.
 * `dir_fd`: of the group that it is born in, or -1. */
static pid_t plain_fork(int dir_fd)
{
    struct clone_args args = { .exit_signal = SIGCHLD };

    if (dir_fd >= 0) {
        args.flags = CLONE_INTO_CGROUP;
        args.cgroup = (uint64_t)dir_fd;
    }
    return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

/* A child that begins its life in the group, as PID 1 of a sandbox does: 0 in it. */
static pid_t enter(const struct agx_cgroup_entry *e)
{
    pid_t child = plain_fork(e->dir_fd);

    for (size_t i = 0; child == 0 && i < e->n_tasks; i++) {
        if (write(e->tasks_fds[i], "0", 1) != 1)
            _exit(90);
    }
    ASSERT_TRUE(child >= 0);
    return child;
}

static void make(struct agx_cgroups *g, const char *name, struct agx_cgroup_limits limits,
                 struct agx_cgroup_entry *ret)
{
    struct agx_error *err = NULL;
    char text[512];

    if (agx_cgroups_make(g, name, &limits, ret, &err) < 0)
        FAIL("%s", agx_error_format(err, text, sizeof(text)));
}

/* Starts one that sleeps, and waits until it is inside. */
static pid_t start_sleeper(const struct agx_cgroup_entry *e)
{
    int ready[2];
    pid_t child;
    char byte;

    ASSERT_INT(0, pipe2(ready, O_CLOEXEC));
    child = enter(e);
    if (child == 0) {
        (void)!write(ready[1], "x", 1);
        for (;;)
            (void)pause();
    }
    (void)close(ready[1]);
    ASSERT_INT(1, read(ready[0], &byte, 1));
    (void)close(ready[0]);
    return child;
}

static int wait_for(pid_t child)
{
    int status;

    ASSERT_INT(child, waitpid(child, &status, 0));
    return status;
}

/* One that ended a moment ago may still count. */
static void remove_soon(struct agx_cgroups *g, const char *name)
{
    int r;

    while ((r = agx_cgroups_remove(g, name, NULL)) == -AGX_UNAVAILABLE)
        (void)usleep(1000);
    ASSERT_OK(r);
}

static int count(void *user, const char *name)
{
    int *n = user;

    *n += strcmp(name, "one-1") == 0 || strcmp(name, "two.c0") == 0 ? 1 : 100;
    return 0;
}

static int count_groups(struct agx_cgroups *g)
{
    int n = 0;

    ASSERT_OK(agx_cgroups_list(g, count, &n, NULL));
    return n;
}

TEST(make_sets_the_limits)
{
    struct agx_cgroups *g = open_groups();
    struct agx_cgroup_entry e = AGX_CGROUP_ENTRY_INIT;

    make(g, "one-1", LIMITS(.cpu_millicores = 500, .memory_bytes = 64 << 20), &e);
    expect_file(g, AGX_CGROUP_PIDS, "one-1", "pids.max", "100");
    if (g->version == 1) {
        ASSERT_INT(-1, e.dir_fd);
        ASSERT_TRUE(e.n_tasks >= 3);
        expect_file(g, AGX_CGROUP_MEMORY, "one-1", "memory.limit_in_bytes", "67108864");
        expect_file(g, AGX_CGROUP_CPU, "one-1", "cpu.cfs_quota_us", "50000");
    } else {
        ASSERT_TRUE(e.dir_fd >= 0);
        ASSERT_UINT(0, e.n_tasks);
        expect_file(g, AGX_CGROUP_MEMORY, "one-1", "memory.max", "67108864");
        expect_file(g, AGX_CGROUP_CPU, "one-1", "cpu.max", "50000 100000");
    }
    agx_cgroup_entry_done(&e);
    ASSERT_OK(agx_cgroups_remove(g, "one-1", NULL));
    agx_cgroups_close(g);
}

static mode_t mode_of(int dir, const char *path)
{
    struct stat st;

    ASSERT_INT(0, fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW));
    return st.st_mode & 07777;
}

/* Version 2 cannot be mounted in a sandbox whose root may not pass through them; a daemon's umask
 * keeps others out of all that it makes. */
TEST(groups_can_be_passed_through_whatever_the_umask_is)
{
    mode_t before = umask(077);
    struct agx_cgroups *g = open_groups();
    struct agx_cgroup_entry e = AGX_CGROUP_ENTRY_INIT;
    int dir;

    make(g, "open-1", LIMITS(0), &e);
    (void)umask(before);
    dir = agx_cgroup_dir(g, AGX_CGROUP_PIDS, "open-1", NULL);
    ASSERT_TRUE(dir >= 0);
    ASSERT_INT(0755, mode_of(dir, "."));
    ASSERT_INT(0755, mode_of(dir, ".."));
    (void)close(dir);
    agx_cgroup_entry_done(&e);
    ASSERT_OK(agx_cgroups_remove(g, "open-1", NULL));
    agx_cgroups_close(g);
}

TEST(make_without_limits_leaves_all_but_pids_open)
{
    struct agx_cgroups *g = open_groups();
    struct agx_cgroup_entry e = AGX_CGROUP_ENTRY_INIT;

    make(g, "one-1", LIMITS(.cpu_millicores = 0), &e);
    expect_file(g, AGX_CGROUP_PIDS, "one-1", "pids.max", "100");
    if (g->version == 1)
        expect_file(g, AGX_CGROUP_CPU, "one-1", "cpu.cfs_quota_us", "-1");
    else
        expect_file(g, AGX_CGROUP_MEMORY, "one-1", "memory.max", "max");
    agx_cgroup_entry_done(&e);
    ASSERT_OK(agx_cgroups_remove(g, "one-1", NULL));
    agx_cgroups_close(g);
}

TEST(tiny_cpu_limit_is_the_least_that_the_kernel_takes)
{
    struct agx_cgroups *g = open_groups();
    struct agx_cgroup_entry e = AGX_CGROUP_ENTRY_INIT;

    make(g, "one-1", LIMITS(.cpu_millicores = 1), &e);
    if (g->version == 1)
        expect_file(g, AGX_CGROUP_CPU, "one-1", "cpu.cfs_quota_us", "1000");
    else
        expect_file(g, AGX_CGROUP_CPU, "one-1", "cpu.max", "1000 100000");
    agx_cgroup_entry_done(&e);
    ASSERT_OK(agx_cgroups_remove(g, "one-1", NULL));
    agx_cgroups_close(g);
}

TEST(make_that_the_kernel_refuses_leaves_nothing)
{
    struct agx_cgroups *g = open_groups();
    struct agx_cgroup_entry e = AGX_CGROUP_ENTRY_INIT;
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    /* More processes than Linux has numbers for. */
    const struct agx_cgroup_limits limits = { .pids = INT64_MAX };

    ASSERT_TRUE(agx_cgroups_make(g, "one-1", &limits, &e, &err) < 0);
    ASSERT_MESSAGE(err, "one-1");
    ASSERT_MESSAGE(err, "pids.max");
    ASSERT_INT(-1, e.dir_fd);
    ASSERT_INT(0, count_groups(g));
    agx_cgroups_close(g);
}

TEST(names_that_are_none_are_refused)
{
    static const char *const bad[] = { "", ".", "..", "a/b", "../x", ".hidden", "a b", "a\nb" };
    struct agx_cgroups *g = open_groups();
    struct agx_cgroup_limits limits = LIMITS(.memory_bytes = 0);
    struct agx_cgroup_entry e = AGX_CGROUP_ENTRY_INIT;
    struct agx_cgroup_stats s;
    char longer[AGX_CGROUP_NAME_MAX + 2];

    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++) {
        ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_cgroups_make(g, bad[i], &limits, &e, NULL));
        ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_cgroups_remove(g, bad[i], NULL));
        ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_cgroups_stats(g, bad[i], &s, NULL));
        ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_cgroups_kill(g, bad[i], NULL));
    }
    memset(longer, 'a', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_cgroups_make(g, longer, &limits, &e, NULL));
    longer[AGX_CGROUP_NAME_MAX] = '\0';
    ASSERT_OK(agx_cgroups_make(g, longer, &limits, &e, NULL));
    agx_cgroup_entry_done(&e);
    ASSERT_OK(agx_cgroups_remove(g, longer, NULL));
    agx_cgroups_close(g);
}

TEST(limits_that_cannot_be_are_named)
{
    struct agx_cgroups *g = open_groups();
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_cgroup_limits none = { .pids = 0 }, heavy = LIMITS(.io_weight = 10001),
                             wide = LIMITS(.cpu_millicores = INT64_MAX),
                             weight = LIMITS(.io_weight = 50);

    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_cgroups_check(g, &none, NULL));
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_cgroups_check(g, &heavy, NULL));
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_cgroups_check(g, &wide, NULL));
    if (g->version == 1) {
        ASSERT_CODE(AGX_FAILED_PRECONDITION, agx_cgroups_check(g, &weight, &err));
        ASSERT_MESSAGE(err, "limits.io_weight");
    }
    agx_cgroups_close(g);
}

/* Where the kernel has it: a guest. */
TEST(io_weight_is_set_where_the_kernel_has_it)
{
    struct agx_cgroups *g = open_groups();
    struct agx_cgroup_limits weight = LIMITS(.io_weight = 50);
    struct agx_cgroup_entry e = AGX_CGROUP_ENTRY_INIT;

    if (agx_cgroups_check(g, &weight, NULL) >= 0) {
        make(g, "one-1", weight, &e);
        expect_file(g, AGX_CGROUP_IO, "one-1", "io.weight", "default 50");
        agx_cgroup_entry_done(&e);
        ASSERT_OK(agx_cgroups_remove(g, "one-1", NULL));
    }
    agx_cgroups_close(g);
}

TEST(process_is_held_until_it_is_killed)
{
    struct agx_cgroups *g = open_groups();
    struct agx_cgroup_limits limits = LIMITS(.memory_bytes = 0);
    struct agx_cgroup_entry e = AGX_CGROUP_ENTRY_INIT, again = AGX_CGROUP_ENTRY_INIT;
    struct agx_cgroup_stats s;
    pid_t child;

    make(g, "one-1", limits, &e);
    child = start_sleeper(&e);
    ASSERT_TRUE(agx_cgroups_holds(g, "one-1", child));
    ASSERT_FALSE(agx_cgroups_holds(g, "one-1", getpid()));
    ASSERT_FALSE(agx_cgroups_holds(g, "one", child));
    ASSERT_OK(agx_cgroups_stats(g, "one-1", &s, NULL));
    ASSERT_UINT(1, s.pids);
    ASSERT_CODE(AGX_UNAVAILABLE, agx_cgroups_remove(g, "one-1", NULL));
    ASSERT_CODE(AGX_ALREADY_EXISTS, agx_cgroups_make(g, "one-1", &limits, &again, NULL));
    ASSERT_TRUE(agx_cgroups_holds(g, "one-1", child));
    ASSERT_OK(agx_cgroups_kill(g, "one-1", NULL));
    ASSERT_INT(SIGKILL, WTERMSIG(wait_for(child)));
    ASSERT_FALSE(agx_cgroups_holds(g, "one-1", child));
    agx_cgroup_entry_done(&e);
    remove_soon(g, "one-1");
    agx_cgroups_close(g);
}

TEST(kill_and_remove_of_one_that_is_not_there_succeed)
{
    struct agx_cgroups *g = open_groups();
    struct agx_cgroup_stats s;

    ASSERT_OK(agx_cgroups_kill(g, "one-1", NULL));
    ASSERT_OK(agx_cgroups_remove(g, "one-1", NULL));
    ASSERT_CODE(AGX_NOT_FOUND, agx_cgroups_stats(g, "one-1", &s, NULL));
    agx_cgroups_close(g);
}

TEST(empty_group_of_the_same_name_makes_room)
{
    struct agx_cgroups *g = open_groups();
    struct agx_cgroup_entry e = AGX_CGROUP_ENTRY_INIT;

    make(g, "one-1", LIMITS(.memory_bytes = 32 << 20), &e);
    agx_cgroup_entry_done(&e);
    make(g, "one-1", LIMITS(.memory_bytes = 64 << 20), &e);
    agx_cgroup_entry_done(&e);
    expect_file(g, AGX_CGROUP_MEMORY, "one-1",
                g->version == 1 ? "memory.limit_in_bytes" : "memory.max", "67108864");
    ASSERT_OK(agx_cgroups_remove(g, "one-1", NULL));
    agx_cgroups_close(g);
}

TEST(list_finds_groups_after_a_restart_also_half_removed_ones)
{
    struct agx_cgroups *g = open_groups();
    struct agx_cgroup_entry e = AGX_CGROUP_ENTRY_INIT;

    make(g, "one-1", LIMITS(.memory_bytes = 0), &e);
    agx_cgroup_entry_done(&e);
    make(g, "two.c0", LIMITS(.memory_bytes = 0), &e);
    agx_cgroup_entry_done(&e);
    agx_cgroups_close(g);
    g = open_groups();
    ASSERT_INT(2, count_groups(g));
    if (g->n_trees > 1) {
        ASSERT_INT(0, unlinkat(g->trees[0].top_fd, AGX_CGROUP_PREFIX "one-1", AT_REMOVEDIR));
        ASSERT_INT(2, count_groups(g));
    }
    ASSERT_OK(agx_cgroups_remove(g, "one-1", NULL));
    ASSERT_OK(agx_cgroups_remove(g, "two.c0", NULL));
    ASSERT_INT(0, count_groups(g));
    agx_cgroups_close(g);
}

TEST(close_of_an_empty_one_leaves_nothing_on_the_host)
{
    struct agx_cgroups *g = open_groups();
    int above = openat(g->trees[0].top_fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
    char top[sizeof(g->top)];

    (void)snprintf(top, sizeof(top), "%s", g->top);
    ASSERT_CSTR("agentix-7e570001", top);
    ASSERT_INT(0, faccessat(above, top, F_OK, 0));
    agx_cgroups_close(g);
    ASSERT_INT(-1, faccessat(above, top, F_OK, 0));
    (void)close(above);
}

TEST(fork_bomb_ends_at_the_limit)
{
    struct agx_cgroups *g = open_groups();
    struct agx_cgroup_entry e = AGX_CGROUP_ENTRY_INIT;
    int status;
    pid_t child;

    make(g, "one-1", (struct agx_cgroup_limits){ .pids = 10 }, &e);
    child = enter(&e);
    if (child == 0) {
        int n = 0;

        for (; n < 50; n++) {
            pid_t p = plain_fork(-1);

            if (p == 0)
                for (;;)
                    (void)pause();
            if (p < 0)
                break;
        }
        _exit(n);
    }
    status = wait_for(child);
    ASSERT_TRUE(WIFEXITED(status));
    ASSERT_INT(9, WEXITSTATUS(status));
    ASSERT_OK(agx_cgroups_kill(g, "one-1", NULL));
    agx_cgroup_entry_done(&e);
    remove_soon(g, "one-1");
    agx_cgroups_close(g);
}

TEST(memory_hog_is_killed_and_counted)
{
    struct agx_cgroups *g = open_groups();
    struct agx_cgroup_entry e = AGX_CGROUP_ENTRY_INIT;
    struct agx_cgroup_stats s;
    pid_t child;

    make(g, "one-1", LIMITS(.memory_bytes = 16 << 20), &e);
    ASSERT_OK(agx_cgroups_stats(g, "one-1", &s, NULL));
    ASSERT_UINT(0, s.oom_kills);
    child = enter(&e);
    if (child == 0) {
        size_t size = 64 << 20;
        volatile char *p =
            mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        for (size_t i = 0; i < size; i += 4096)
            p[i] = 1;
        _exit(0);
    }
    ASSERT_INT(SIGKILL, WTERMSIG(wait_for(child)));
    ASSERT_OK(agx_cgroups_stats(g, "one-1", &s, NULL));
    ASSERT_UINT(1, s.oom_kills);
    agx_cgroup_entry_done(&e);
    remove_soon(g, "one-1");
    agx_cgroups_close(g);
}

TEST(stats_count_what_was_used)
{
    struct agx_cgroups *g = open_groups();
    struct agx_cgroup_entry e = AGX_CGROUP_ENTRY_INIT;
    struct agx_cgroup_stats s;
    pid_t child;
    int go[2];

    ASSERT_INT(0, pipe2(go, O_CLOEXEC));
    make(g, "one-1", LIMITS(.memory_bytes = 0), &e);
    child = enter(&e);
    if (child == 0) {
        size_t size = 8 << 20;
        char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        for (int i = 0; i < 20; i++)
            memset(p, i, size);
        (void)!write(go[1], "x", 1);
        for (;;)
            (void)pause();
    }
    ASSERT_INT(1, read(go[0], go, 1));
    ASSERT_OK(agx_cgroups_stats(g, "one-1", &s, NULL));
    ASSERT_TRUE(s.cpu_usec > 0);
    ASSERT_TRUE(s.memory_bytes >= 8 << 20);
    ASSERT_UINT(1, s.pids);
    ASSERT_UINT(0, s.oom_kills);
    ASSERT_TRUE(g->version == 2 || !s.has_io);
    ASSERT_OK(agx_cgroups_kill(g, "one-1", NULL));
    (void)wait_for(child);
    agx_cgroup_entry_done(&e);
    remove_soon(g, "one-1");
    agx_cgroups_close(g);
}
