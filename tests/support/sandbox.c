/* sandbox.c: makes root file systems and enters them. */
#include "tests/support/paths.h"
#include "tests/support/sandbox.h"

#include "base/fd.h"
#include "base/path.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

enum { PATH_SIZE = 512, FILE_MAX = 64 << 20 };

static void in_root(const struct test_sandbox *s, const char *path, char out[PATH_SIZE])
{
    ASSERT_TRUE(snprintf(out, PATH_SIZE, "%s%s", s->root, path) < PATH_SIZE);
}

static void make_dir(const struct test_sandbox *s, const char *path)
{
    char full[PATH_SIZE];

    in_root(s, path, full);
    for (char *at = full + strlen(s->root) + 1; *at; at++) {
        if (*at != '/')
            continue;
        *at = '\0';
        (void)mkdir(full, 0755);
        *at = '/';
    }
    (void)mkdir(full, 0755);
}

/* Copies a file of the host, with its parent directories. */
static void copy(const struct test_sandbox *s, const char *from, const char *to)
{
    _cleanup_buf_ struct agx_buf bytes = AGX_BUF_INIT(FILE_MAX);
    char full[PATH_SIZE], dir[PATH_SIZE];
    int fd;

    (void)snprintf(dir, sizeof(dir), "%s", to);
    *strrchr(dir, '/') = '\0';
    make_dir(s, dir);
    in_root(s, to, full);
    ASSERT_OK(agx_fd_read_file(AT_FDCWD, from, &bytes, NULL));
    fd = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
    ASSERT_TRUE(fd >= 0);
    ASSERT_OK(agx_fd_write_all(fd, agx_buf_peek(&bytes), NULL));
    (void)close(fd);
}

void test_sandbox_write(const struct test_sandbox *s, const char *path, const char *text)
{
    char full[PATH_SIZE];
    int fd;

    in_root(s, path, full);
    fd = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    ASSERT_TRUE(fd >= 0);
    ASSERT_OK(agx_fd_write_all(fd, agx_str_from(text), NULL));
    (void)close(fd);
}

static void write_users(const struct test_sandbox *s)
{
    make_dir(s, "/etc");
    test_sandbox_write(s, "/etc/passwd",
                       "root:x:0:0:root:/root:/bin/sh\nagbox:x:1000:1001::/home/agbox:/bin/sh\n");
    test_sandbox_write(s, "/etc/group", "root:x:0:\nagbox:x:1001:\nextra:x:77:agbox\n");
}

static void make_busybox(const struct test_sandbox *s)
{
    static const char *const tools[] = { "sh",   "cat", "echo",  "sleep", "id", "true",
                                         "kill", "yes", "mkdir", "rm",    "ls", "setsid" };
    char full[PATH_SIZE], name[64];

    if (access("/bin/busybox", X_OK) < 0)
        SKIP("no busybox-static");
    copy(s, "/bin/busybox", "/bin/busybox");
    for (size_t i = 0; i < AGX_ARRAY_LEN(tools); i++) {
        (void)snprintf(name, sizeof(name), "/bin/%s", tools[i]);
        in_root(s, name, full);
        ASSERT_INT(0, symlink("busybox", full));
    }
    write_users(s);
    copy(s, test_path_init_prog, "/prog");
}

static void make_glibc(const struct test_sandbox *s)
{
    copy(s, "/lib64/ld-linux-x86-64.so.2", "/lib64/ld-linux-x86-64.so.2");
    copy(s, "/lib/x86_64-linux-gnu/libc.so.6", "/lib/x86_64-linux-gnu/libc.so.6");
    copy(s, "/bin/dash", "/bin/sh");
    copy(s, test_path_init_prog_glibc, "/prog");
    write_users(s);
}

static void make_musl(const struct test_sandbox *s)
{
    if (access("/lib/ld-musl-x86_64.so.1", R_OK) < 0 || strlen(test_path_init_prog_musl) == 0)
        SKIP("no musl-tools");
    copy(s, "/lib/ld-musl-x86_64.so.1", "/lib/ld-musl-x86_64.so.1");
    copy(s, test_path_init_prog_musl, "/prog");
    write_users(s);
}

void test_sandbox_make(struct test_sandbox *s, enum test_image image)
{
    if (geteuid() != 0)
        SKIP("needs root");
    *s = (struct test_sandbox){ .root = "/tmp/agx-root-XXXXXX" };
    ASSERT_NOT_NULL(mkdtemp(s->root));
    ASSERT_INT(0, chmod(s->root, 0755));
    make_dir(s, "/proc");
    make_dir(s, "/dev");
    make_dir(s, "/tmp");
    copy(s, test_path_init, "/agentix-init");
    switch (image) {
    case TEST_IMAGE_SCRATCH:
        copy(s, test_path_init_prog, "/prog");
        break;
    case TEST_IMAGE_BUSYBOX:
        make_busybox(s);
        break;
    case TEST_IMAGE_GLIBC:
        make_glibc(s);
        break;
    case TEST_IMAGE_MUSL:
        make_musl(s);
        break;
    }
}

void test_sandbox_remove(struct test_sandbox *s)
{
    char command[128];

    (void)snprintf(command, sizeof(command), "rm -rf %s", s->root);
    ASSERT_INT(0, system(command));
}

/* The functions below run in the new process: each failure ends it with its own exit code. */
#define MUST(n, e)                                                                                 \
    do {                                                                                           \
        if (!(e))                                                                                  \
            _exit(n);                                                                              \
    } while (0)

/* The capabilities that Docker leaves a container. */
static void drop_capabilities(void)
{
    static const int kept[] = { CAP_CHOWN,       CAP_DAC_OVERRIDE,    CAP_FSETID,     CAP_FOWNER,
                                CAP_MKNOD,       CAP_NET_RAW,         CAP_SETGID,     CAP_SETUID,
                                CAP_SETFCAP,     CAP_SETPCAP,         CAP_SYS_CHROOT, CAP_KILL,
                                CAP_AUDIT_WRITE, CAP_NET_BIND_SERVICE };

    for (int cap = 0; cap <= CAP_LAST_CAP; cap++) {
        bool keep = false;

        for (size_t i = 0; i < AGX_ARRAY_LEN(kept); i++)
            keep = keep || kept[i] == cap;
        if (!keep)
            (void)prctl(PR_CAPBSET_DROP, cap, 0, 0, 0); /* fails for one that we never had */
    }
}

static void put_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    MUST(90, fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    (void)close(fd);
}

static void map_ids(void)
{
    put_text("/proc/self/setgroups", "deny");
    put_text("/proc/self/uid_map", "0 0 1");
    put_text("/proc/self/gid_map", "0 0 1");
}

/* A user namespace cannot make devices, so it binds the host's. */
static void make_devices(bool bind)
{
    static const struct {
        const char *name;
        unsigned minor;
    } devices[] = { { "null", 3 }, { "zero", 5 }, { "urandom", 9 } };

    for (size_t i = 0; i < AGX_ARRAY_LEN(devices); i++) {
        char inside[64], outside[64];

        (void)snprintf(inside, sizeof(inside), "dev/%s", devices[i].name);
        (void)snprintf(outside, sizeof(outside), "/dev/%s", devices[i].name);
        if (bind) {
            MUST(80, mknod(inside, S_IFREG | 0666, 0) == 0);
            MUST(81, mount(outside, inside, NULL, MS_BIND, NULL) == 0);
        } else {
            MUST(82, mknod(inside, S_IFCHR | 0666, makedev(1, devices[i].minor)) == 0);
            MUST(83, chmod(inside, 0666) == 0);
        }
    }
}

static void enter(void *user)
{
    const struct test_sandbox *s = user;

    if (s->cgroup_tasks)
        put_text(s->cgroup_tasks, "0");
    if (s->user_namespace)
        map_ids();
    MUST(71, chdir(s->root) == 0);
    MUST(72, mount("proc", "proc", "proc", 0, NULL) == 0);
    MUST(73, mount("dev", "dev", "tmpfs", 0, "mode=755") == 0);
    make_devices(s->user_namespace);
    MUST(74, mkdir("dev/pts", 0755) == 0);
    MUST(75, mount("devpts", "dev/pts", "devpts", 0, "newinstance,ptmxmode=0666") == 0);
    MUST(76, chroot(".") == 0 && chdir("/") == 0);
    drop_capabilities();
}

void test_sandbox_own_mounts(void)
{
    static bool taken;
    _cleanup_close_ int ns = -1, root = -1;

    if (taken)
        return;
    ASSERT_INT(0, unshare(CLONE_NEWNS));
    root = open_tree(AT_FDCWD, "/", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
    ASSERT_TRUE(root >= 0);
    ns = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    ASSERT_TRUE(ns >= 0);
    ASSERT_INT(0, setns(ns, CLONE_NEWNS));
    ASSERT_INT(0, mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
    ASSERT_INT(0, move_mount(root, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH));
    ASSERT_INT(0, fchdir(root));
    ASSERT_INT(0, chroot("."));
    ASSERT_INT(0, mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)); /* including the copies */
    taken = true;
}

void test_sandbox_boot_stdio(struct test_sandbox *s, struct test_init *t, const char *const *args,
                             int in_fd, int out_fd)
{
    const struct test_init_params params = {
        .args = args,
        .enter = enter,
        .user = s,
        .clone_flags = CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS |
                       (s->user_namespace ? CLONE_NEWUSER : 0),
        .program = "/agentix-init",
        .in_fd = in_fd,
        .out_fd = out_fd,
    };

    test_sandbox_own_mounts();
    test_init_start(t, &params);
}

void test_sandbox_boot(struct test_sandbox *s, struct test_init *t, const char *const *args)
{
    test_sandbox_boot_stdio(s, t, args, 0, 0);
}
