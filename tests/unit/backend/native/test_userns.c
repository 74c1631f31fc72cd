#include "backend/native/net/userns.h"
#include "base/fd.h"
#include "base/path.h"
#include "tests/support/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

/* A host of files. */
struct host {
    char root[32];
    int fd;
};

static void put(const struct host *h, const char *path, const char *text)
{
    char dir[PATH_MAX];
    _cleanup_close_ int made = -1;

    (void)snprintf(dir, sizeof(dir), "%.*s", (int)(strrchr(path, '/') - path), path);
    made = agx_path_mkdirs(h->fd, dir, 0755, NULL);
    ASSERT_OK(made);
    ASSERT_OK(agx_path_write_file(h->fd, path, agx_str_from(text), 0755, NULL));
}

static struct host make(void)
{
    struct host h = { .root = "/tmp/agx-userns-XXXXXX" };

    ASSERT_NOT_NULL(mkdtemp(h.root));
    h.fd = open(h.root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ASSERT_TRUE(h.fd >= 0);
    put(&h, "usr/bin/newuidmap", "");
    put(&h, "usr/bin/newgidmap", "");
    put(&h, "proc/sys/user/max_user_namespaces", "15000\n");
    put(&h, "proc/sys/kernel/unprivileged_userns_clone", "1\n");
    put(&h, "proc/sys/kernel/apparmor_restrict_unprivileged_userns", "0\n");
    put(&h, "proc/self/mountinfo",
        "21 27 0:20 / /proc rw - proc proc rw\n"
        "22 21 0:30 / /proc/sys/fs/binfmt_misc rw - autofs systemd-1 rw\n");
    return h;
}

static void host_done(struct host *h)
{
    (void)close(h->fd);
    h->fd = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
    ASSERT_OK(agx_path_remove_tree(h->fd, strrchr(h->root, '/') + 1, NULL));
    (void)close(h->fd);
}

static int check(const struct host *h, bool tried, struct agx_error **err)
{
    struct agx_userns_facts facts;

    agx_userns_look(h->root, &facts);
    return agx_userns_check(&facts, tried, err);
}

static void forbidden(const struct host *h, bool tried, const char *setting, const char *help)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;

    ASSERT_CODE(AGX_FAILED_PRECONDITION, check(h, tried, &err));
    ASSERT_MESSAGE(err, setting);
    ASSERT_MESSAGE(err, help);
}

TEST(userns_of_a_host_that_forbids_nothing_is_allowed)
{
    _cleanup_(host_done) struct host h = make();

    ASSERT_OK(check(&h, false, NULL));
    ASSERT_OK(check(&h, true, NULL));
    ASSERT_OK(unlinkat(h.fd, "proc/sys/kernel/unprivileged_userns_clone", 0));
    ASSERT_OK(unlinkat(h.fd, "proc/sys/kernel/apparmor_restrict_unprivileged_userns", 0));
    ASSERT_OK(check(&h, true, NULL));
}

TEST(userns_that_a_setting_forbids_names_it_and_what_helps)
{
    _cleanup_(host_done) struct host h = make();

    put(&h, "proc/sys/user/max_user_namespaces", "0\n");
    forbidden(&h, false, "user.max_user_namespaces is 0", "sysctl user.max_user_namespaces=");
    put(&h, "proc/sys/user/max_user_namespaces", "1\n");
    put(&h, "proc/sys/kernel/unprivileged_userns_clone", "0\n");
    forbidden(&h, false, "kernel.unprivileged_userns_clone is 0",
              "sysctl kernel.unprivileged_userns_clone=1");
}

TEST(userns_that_apparmor_restricts_is_forbidden_only_when_it_was_tried)
{
    _cleanup_(host_done) struct host h = make();

    put(&h, "proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1\n");
    ASSERT_OK(check(&h, false, NULL));
    forbidden(&h, true, "kernel.apparmor_restrict_unprivileged_userns is 1", "userns,");
}

TEST(userns_without_the_programs_that_map_ids_names_their_package)
{
    _cleanup_(host_done) struct host h = make();

    ASSERT_OK(unlinkat(h.fd, "usr/bin/newgidmap", 0));
    forbidden(&h, false, "newgidmap", "'uidmap'");
    ASSERT_OK(unlinkat(h.fd, "usr/bin/newuidmap", 0));
    forbidden(&h, false, "newuidmap", "'uidmap'");
}

TEST(userns_with_parts_of_proc_hidden_is_forbidden)
{
    _cleanup_(host_done) struct host h = make();

    put(&h, "proc/self/mountinfo",
        "21 27 0:20 / /proc rw - proc proc rw\n22 21 0:30 / /proc/kcore rw - tmpfs tmpfs rw\n");
    forbidden(&h, false, "/proc", "unmasked");
}

/* ---- ids ---- */

static void no_range(const char *text, bool groups, const char *help)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_subids got;

    ASSERT_CODE(AGX_FAILED_PRECONDITION,
                agx_subids_find(agx_str_from(text), "ann", 1000, groups, &got, &err));
    ASSERT_MESSAGE(err, help);
}

TEST(subids_are_those_of_the_users_name_or_number)
{
    struct agx_subids got;

    ASSERT_OK(agx_subids_find(AGX_STR("bob:100000:65536\nann:165536:65536\n"), "ann", 1000, false,
                              &got, NULL));
    ASSERT_UINT(165536, got.first);
    ASSERT_OK(
        agx_subids_find(AGX_STR("ann:1:2\n1000:200000:70000"), "ann", 1000, true, &got, NULL));
    ASSERT_UINT(200000, got.first);
    ASSERT_UINT(70000, got.n);
}

TEST(subids_that_are_missing_or_too_few_name_the_file_and_the_command)
{
    no_range("", false, "/etc/subuid");
    no_range("ann:100000:65535\n", false, "usermod --add-subuids 100000-165535 ann");
    no_range("bob:100000:65536\n", true, "/etc/subgid");
    no_range("anna:100000:65536\nann:x:65536\nann:100000\nann\n", true, "--add-subgids");
}
