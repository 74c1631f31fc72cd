#include "backend/native/limits/cgroup_internal.h"
#include "tests/support/test.h"

/* A Debian 12 with systemd. */
#define SYSTEMD_MOUNTS                                                                             \
    "24 30 0:22 / /sys rw,nosuid shared:7 - sysfs sysfs rw\n"                                      \
    "27 24 0:25 / /sys/fs/cgroup rw,nosuid,nodev shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"

/* A host with version 1, where cpu and cpuacct share a hierarchy, and an empty version 2. */
#define HYBRID_MOUNTS                                                                              \
    "30 24 0:26 / /sys/fs/cgroup ro,nosuid shared:10 - tmpfs tmpfs rw,mode=755\n"                  \
    "31 30 0:27 / /sys/fs/cgroup/unified rw shared:11 - cgroup2 cgroup2 rw\n"                      \
    "32 30 0:28 / /sys/fs/cgroup/systemd rw shared:12 - cgroup cgroup rw,xattr,name=systemd\n"     \
    "33 30 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:13 - cgroup cgroup rw,cpu,cpuacct\n"        \
    "34 30 0:30 / /sys/fs/cgroup/memory rw shared:14 - cgroup cgroup rw,memory\n"                  \
    "35 30 0:31 / /sys/fs/cgroup/pids rw shared:15 - cgroup cgroup rw,pids\n"                      \
    "36 30 0:32 / /sys/fs/cgroup/blkio rw shared:16 - cgroup cgroup rw,blkio\n"

#define HYBRID_SELF                                                                                \
    "5:pids:/user.slice\n4:memory:/\n3:cpu,cpuacct:/system.slice/agentixd.service\n0::/a\n"

TEST(find_v2_on_systemd_is_the_mount_and_the_service)
{
    struct agx_cgroup_mount m;
    struct agx_cgroup_mounts v1;

    ASSERT_TRUE(agx_cgroup_find_v2(AGX_STR(SYSTEMD_MOUNTS),
                                   AGX_STR("0::/system.slice/agentixd.service\n"), &m));
    ASSERT_CSTR("/sys/fs/cgroup", m.point);
    ASSERT_CSTR("/system.slice/agentixd.service", m.own);
    agx_cgroup_find_v1(AGX_STR(SYSTEMD_MOUNTS), AGX_STR("0::/\n"), &v1);
    ASSERT_INT(0, v1.version);
    ASSERT_UINT(0, v1.n);
}

TEST(find_v1_takes_each_controller_where_it_is)
{
    struct agx_cgroup_mounts m;

    agx_cgroup_find_v1(AGX_STR(HYBRID_MOUNTS), AGX_STR(HYBRID_SELF), &m);
    ASSERT_INT(1, m.version);
    ASSERT_UINT(3, m.n);
    ASSERT_UINT(AGX_CGROUP_CPU | AGX_CGROUP_CPUACCT, m.mounts[0].controllers);
    ASSERT_CSTR("/sys/fs/cgroup/cpu,cpuacct", m.mounts[0].point);
    ASSERT_CSTR("/system.slice/agentixd.service", m.mounts[0].own);
    ASSERT_UINT(AGX_CGROUP_MEMORY, m.mounts[1].controllers);
    ASSERT_CSTR("", m.mounts[1].own);
    ASSERT_CSTR("/user.slice", m.mounts[2].own);
}

TEST(find_v1_counts_a_hierarchy_that_is_mounted_twice_once)
{
    struct agx_cgroup_mounts m;

    agx_cgroup_find_v1(
        AGX_STR(HYBRID_MOUNTS "40 1 0:30 / /mnt/memory rw - cgroup cgroup rw,memory\n"),
        AGX_STR(HYBRID_SELF), &m);
    ASSERT_UINT(3, m.n);
    ASSERT_CSTR("/sys/fs/cgroup/memory", m.mounts[1].point);
}

TEST(find_v1_without_memory_is_no_version)
{
    struct agx_cgroup_mounts m;

    agx_cgroup_find_v1(AGX_STR("33 30 0:29 / /c/cpu rw - cgroup cgroup rw,cpu\n"
                               "35 30 0:31 / /c/pids rw - cgroup cgroup rw,pids\n"),
                       AGX_STR(HYBRID_SELF), &m);
    ASSERT_INT(0, m.version);
    ASSERT_UINT(AGX_CGROUP_CPU | AGX_CGROUP_PIDS, m.found);
}

TEST(find_in_a_container_counts_from_what_is_mounted)
{
    struct agx_cgroup_mount m;

    ASSERT_TRUE(agx_cgroup_find_v2(
        AGX_STR("9 8 0:25 /docker/abc /sys/fs/cgroup ro shared:9 - cgroup2 cgroup rw\n"),
        AGX_STR("0::/docker/abc/child\n"), &m));
    ASSERT_CSTR("/child", m.own);
    ASSERT_TRUE(
        agx_cgroup_find_v2(AGX_STR("9 8 0:25 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n"),
                           AGX_STR("0::/docker/abc\n"), &m));
    ASSERT_CSTR("", m.own);
}

TEST(find_of_a_group_outside_what_is_mounted_is_the_mount)
{
    struct agx_cgroup_mount m;

    ASSERT_TRUE(agx_cgroup_find_v2(AGX_STR(SYSTEMD_MOUNTS), AGX_STR("0::/../other\n"), &m));
    ASSERT_CSTR("", m.own);
}

TEST(find_in_lines_that_are_cut_short_finds_nothing)
{
    struct agx_cgroup_mount m;

    ASSERT_FALSE(agx_cgroup_find_v2(AGX_STR(""), AGX_STR(""), &m));
    ASSERT_FALSE(agx_cgroup_find_v2(AGX_STR("27 24 0:25 / /sys/fs/cgroup rw\n27 24\n-\n- cgroup2"),
                                    AGX_STR("0:"), &m));
    ASSERT_FALSE(agx_cgroup_find_v2(AGX_STR("27 24 0:25 / /a\\040b rw - cgroup2 cgroup2 rw\n"),
                                    AGX_STR("0::/\n"), &m));
}

TEST(controllers_are_whole_words)
{
    ASSERT_UINT(AGX_CGROUP_CPU | AGX_CGROUP_MEMORY | AGX_CGROUP_PIDS | AGX_CGROUP_IO,
                agx_cgroup_controllers(AGX_STR("cpuset cpu io memory hugetlb pids rdma"), ' '));
    ASSERT_UINT(0, agx_cgroup_controllers(AGX_STR("cpuset,memoryx"), ','));
}

TEST(cgroups_that_are_none_take_groups_and_refuse_limits_by_name)
{
    _cleanup_(agx_cgroups_closep) struct agx_cgroups *g = NULL;
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_cgroup_limits limits = { .pids = 10 };
    struct agx_cgroup_entry entry = AGX_CGROUP_ENTRY_INIT;
    struct agx_cgroup_stats stats;

    ASSERT_OK(agx_cgroups_open_none(&g, NULL));
    ASSERT_INT(0, g->version);
    ASSERT_OK(agx_cgroups_make(g, "a", &limits, &entry, NULL));
    ASSERT_INT(-1, entry.dir_fd);
    ASSERT_UINT(0, entry.n_tasks);
    ASSERT_CODE(AGX_NOT_FOUND, agx_cgroups_stats(g, "a", &stats, NULL));
    ASSERT_OK(agx_cgroups_kill(g, "a", NULL));
    ASSERT_OK(agx_cgroups_remove(g, "a", NULL));
    limits.memory_bytes = 1 << 20;
    ASSERT_CODE(AGX_FAILED_PRECONDITION, agx_cgroups_check(g, &limits, &err));
    ASSERT_MESSAGE(err, "memory_limit");
}
