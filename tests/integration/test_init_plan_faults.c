/* agentix-init --plan: a failure is reported with its stage, and leaves nothing behind. */
#include "tests/support/plan.h"

#include "base/fd.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* ---- one thing wrong ---- */

static void lose_layer(struct test_plan *x)
{
    x->layers[1] = "/no/such/layer";
}

static void lose_source(struct test_plan *x)
{
    x->mounts[0] = (struct test_plan_mount){ "/no/such/source", "/data", 0 };
}

static void map_ids_of_proc(struct test_plan *x)
{
    x->mounts[0] = (struct test_plan_mount){ "/proc/sys", "/data", AGX_PLAN_IDMAP };
}

static void break_cgroup(struct test_plan *x)
{
    x->cgroup.tasks_fds[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    x->cgroup.n_tasks = 1;
}

static void break_cgroup_of_version_2(struct test_plan *x)
{
    x->cgroup.dir_fd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void ask_for_no_such_limit(struct test_plan *x)
{
    agx_init_rlimit_put(x->limits, &(struct agx_init_rlimit){ 99, 1, 1 });
}

static void swap_namespaces(struct test_plan *x)
{
    (void)close(x->nsset.net_fd);
    x->nsset.net_fd = fcntl(x->nsset.user_fd, F_DUPFD_CLOEXEC, 3);
}

static void lose_upper(struct test_plan *x)
{
    ASSERT_INT(0, rmdir(test_plan_path(x, "box/upper")));
}

static void put_link(struct test_plan *x, const char *name, const char *target)
{
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/%s", x->image.root, name);
    ASSERT_INT(0, symlink(target, path));
}

static void make_sys_a_link(struct test_plan *x)
{
    put_link(x, "sys", "/etc");
}

static void mount_below_a_file(struct test_plan *x)
{
    x->mounts[0] = (struct test_plan_mount){ x->dir, "/etc/passwd/data", 0 };
}

static void mount_directory_on_a_file(struct test_plan *x)
{
    x->mounts[0] = (struct test_plan_mount){ x->dir, "/etc/passwd", 0 };
}

static void mount_through_a_descriptor(struct test_plan *x)
{
    put_link(x, "way-out", "/proc/self/fd/1");
    x->mounts[0] = (struct test_plan_mount){ x->dir, "/way-out/data", 0 };
}

static void mount_where_a_link_leads_nowhere(struct test_plan *x)
{
    put_link(x, "nowhere", "/not/there");
    x->mounts[0] = (struct test_plan_mount){ x->dir, "/nowhere", 0 };
}

static void layer_a_file(struct test_plan *x)
{
    test_plan_write(x, "file", "");
    x->mounts[0] =
        (struct test_plan_mount){ test_plan_path(x, "file"), "/data",
                                  AGX_PLAN_IDMAP | AGX_PLAN_READ_ONLY | AGX_PLAN_LAYERED };
}

static void mask_a_link_to_itself(struct test_plan *x)
{
    put_link(x, "loop", "loop");
    x->plan.masked = TEST_WORDS(&x->masked, "/loop");
}

static void freeze_a_link_to_itself(struct test_plan *x)
{
    put_link(x, "loop", "loop");
    x->plan.frozen = TEST_WORDS(&x->frozen, "/loop");
}

static void filter_without_an_end(struct test_plan *x)
{
    static const struct sock_filter filter[] = { BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0) };

    x->plan.seccomp = agx_str_bytes(filter, sizeof(filter));
}

TEST(what_cannot_be_done_is_told_with_its_stage_and_object)
{
    static const struct {
        void (*spoil)(struct test_plan *);
        const char *words;
    } faults[] = {
        { lose_layer, "open '/no/such/layer': No such file" },
        { lose_source, "open '/no/such/source': No such file" },
        { map_ids_of_proc, "map the ids of '/proc/sys': its file system" },
        { break_cgroup, "enter the cgroup: " },
        { break_cgroup_of_version_2, "start PID 1 of the sandbox: " },
        { ask_for_no_such_limit, "set the limit '99': Invalid argument" },
        { swap_namespaces, "enter the namespaces of the sandbox: Invalid argument" },
        { lose_upper, "mount overlay on '/': No such file" },
        { make_sys_a_link, "mount on '/sys': Not a directory" },
        { mount_below_a_file, "mount on '/etc/passwd/data': Not a directory" },
        { mount_directory_on_a_file, "mount on '/etc/passwd': Not a directory" },
        { mount_through_a_descriptor, "mount on '/way-out/data': Too many levels" },
        { mount_where_a_link_leads_nowhere, "mount on '/nowhere': File exists" },
        { layer_a_file, "mount overlay on '/data': Not a directory" },
        { mask_a_link_to_itself, "protect '/loop': Too many levels" },
        { freeze_a_link_to_itself, "protect '/loop': Too many levels" },
        { filter_without_an_end, "filter system calls: Invalid argument" },
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(faults); i++) {
        struct test_plan x;

        test_plan_open(&x);
        faults[i].spoil(&x);
        test_plan_start(&x);
        test_plan_expect_failure(&x, faults[i].words);
        test_plan_close(&x);
    }
}

/* ---- the plan itself ---- */

static int exit_code_of_plan(const char *bytes, bool seal)
{
    _cleanup_close_ int fd = memfd_create("plan", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    char number[16];

    ASSERT_INT(strlen(bytes), write(fd, bytes, strlen(bytes)));
    if (seal)
        ASSERT_INT(0, fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK));
    (void)snprintf(number, sizeof(number), "%d", fd);
    return WEXITSTATUS(
        test_wait(test_init_spawn((const char *const[]){ "--plan", number, NULL }, &fd, 1)));
}

TEST(bytes_that_are_no_plan_are_refused)
{
    ASSERT_INT(125, exit_code_of_plan("no plan", true));
    ASSERT_INT(125, exit_code_of_plan("", true));
    ASSERT_INT(125, exit_code_of_plan("no plan", false));
}

/* ---- the daemon, and PID 1 ---- */

TEST(daemon_that_goes_away_before_go_ends_the_sandbox)
{
    struct test_plan x;

    test_plan_open(&x);
    x.plan.flags &= ~AGX_PLAN_AT_ONCE;
    test_plan_start(&x);
    test_plan_expect(&x, AGX_PLAN_CLONED);
    test_plan_expect(&x, AGX_PLAN_READY);
    (void)close(x.report_fd);
    x.report_fd = -1;
    ASSERT_INT(125, test_plan_reap(&x));
    test_plan_close(&x);
}

TEST(pid_1_that_is_killed_before_go_ends_the_reports)
{
    int fds[AGX_PLAN_REPORT_FDS_MAX];
    struct agx_plan_report r;
    struct test_plan x;

    test_plan_open(&x);
    x.plan.flags &= ~AGX_PLAN_AT_ONCE;
    test_plan_start(&x);
    test_plan_expect(&x, AGX_PLAN_CLONED);
    test_plan_expect(&x, AGX_PLAN_READY);
    ASSERT_INT(0, kill(x.init.pid, SIGKILL));
    ASSERT_INT(SIGKILL, test_plan_reap(&x));
    ASSERT_FALSE(test_report_read(x.report_fd, &r, fds));
    test_plan_close(&x);
}

TEST(main_process_that_is_not_there_is_127)
{
    struct test_plan x;

    test_plan_open(&x);
    x.plan.argv = TEST_WORDS(&x.argv, "no-such-program");
    test_plan_start(&x);
    test_plan_expect(&x, AGX_PLAN_CLONED);
    test_plan_expect(&x, AGX_PLAN_RUNNING);
    ASSERT_INT(127, test_plan_reap(&x));
    test_plan_close(&x);
}

/* ---- cgroups ---- */

TEST(sandbox_is_in_its_cgroup_from_the_start_and_sees_no_other)
{
    const struct agx_cgroups_config config = { .instance = "91a77e57" };
    const struct agx_cgroup_limits limits = { .pids = 64 };
    _cleanup_(agx_cgroups_closep) struct agx_cgroups *groups = NULL;
    struct test_plan x;

    test_plan_open(&x);
    ASSERT_OK(agx_cgroups_open(&config, &groups, NULL));
    ASSERT_OK(agx_cgroups_make(groups, "plan", &limits, &x.cgroup, NULL));
    if (x.cgroup.dir_fd >= 0)
        x.plan.flags |= AGX_PLAN_CGROUP2;
    test_plan_boot(&x);
    test_init_run(&x.init, "one", "busybox", "grep", "-e", "agentix", "-e", "[.][.]",
                  "/proc/self/cgroup");
    ASSERT_CSTR("", x.init.out);
    ASSERT_TRUE(agx_cgroups_holds(groups, "plan", x.init.pid));
    test_plan_kill(&x);
    while (agx_cgroups_remove(groups, "plan", NULL) == -AGX_UNAVAILABLE)
        continue; /* the last process is dead, and not gone yet */
    agx_cgroup_entry_done(&x.cgroup);
    test_plan_close(&x);
}
