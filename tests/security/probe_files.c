/*
 * probe_files.c: ways to files of the host. Unless a comment says otherwise, the argument is the
 * path, on the host, of a file with a secret.
 */
#include "tests/security/probe.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

static bool by_path(const char *secret)
{
    return probe_reads(secret);
}

static bool by_symlink(const char *secret)
{
    char link[] = "/tmp/probe-XXXXXX/link";

    link[17] = '\0';
    if (!mkdtemp(link))
        return probe_say(false, "mkdtemp");
    link[17] = '/';
    return symlink(secret, link) == 0 && probe_reads(link);
}

static bool by_dotdot(const char *secret)
{
    char path[4096];

    (void)snprintf(path, sizeof(path), "/../../../../../../../..%s", secret);
    return probe_reads(path);
}

/* The roots, directories and open files of every process that we see. */
static bool by_proc(const char *secret)
{
    static const char *const links[] = { "root", "cwd", "fd/3", "fd/4", "fd/5", "fd/6", "exe" };
    DIR *d = opendir("/proc");
    char path[4096];
    bool out = false;

    for (struct dirent *e = d ? readdir(d) : NULL; e && !out; e = readdir(d)) {
        if (e->d_name[0] < '0' || e->d_name[0] > '9')
            continue;
        for (size_t i = 0; i < sizeof(links) / sizeof(links[0]) && !out; i++) {
            (void)snprintf(path, sizeof(path), "/proc/%s/%s%s", e->d_name, links[i], secret);
            out = access(path, R_OK) == 0 && probe_reads(path);
        }
    }
    if (d)
        closedir(d);
    errno = EACCES;
    return probe_say(out, "links of /proc");
}

/* The old way out of a chroot by root: one below the directory that is held. */
static bool by_chroot(const char *secret)
{
    int here = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    (void)mkdir("/tmp/probe-jail", 0755);
    if (here < 0 || chroot("/tmp/probe-jail") < 0 || fchdir(here) < 0)
        return probe_say(false, "chroot");
    for (int i = 0; i < 64; i++)
        (void)!chdir("..");
    return chroot(".") == 0 && probe_reads(secret);
}

/* Number 2 is the root of most file systems: a handle to it needs no path. */
static bool by_handle(const char *secret)
{
    struct {
        struct file_handle head;
        uint32_t words[2];
    } handle = { .head = { .handle_bytes = 8, .handle_type = 1 }, .words = { 2, 0 } };
    int mount_fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int fd = open_by_handle_at(mount_fd, &handle.head, O_RDONLY | O_CLOEXEC);

    (void)secret;
    if (fd < 0 && errno == ESTALE) /* a file system without such a handle, but we may ask */
        fd = 0;
    return probe_say(fd >= 0, "open_by_handle_at");
}

static bool mounts(const char *unused)
{
    (void)unused;
    (void)mkdir("/tmp/probe-mount", 0755);
    return probe_say(mount("none", "/tmp/probe-mount", "tmpfs", 0, NULL) == 0, "mount a tmpfs");
}

static bool binds(const char *unused)
{
    (void)unused;
    (void)mkdir("/tmp/probe-bind", 0755);
    return probe_say(mount("/", "/tmp/probe-bind", NULL, MS_BIND, NULL) == 0, "mount --bind /");
}

static bool mounts_proc(const char *unused)
{
    (void)unused;
    (void)mkdir("/tmp/probe-proc", 0755);
    return probe_say(mount("proc", "/tmp/probe-proc", "proc", 0, NULL) == 0, "mount a proc");
}

/* The newer calls, which a filter of the older ones would let through. */
static bool mounts_newly(const char *unused)
{
    int fd = (int)syscall(SYS_fsopen, "tmpfs", 0);

    (void)unused;
    return probe_say(fd >= 0, "fsopen");
}

static bool clones_tree(const char *unused)
{
    (void)unused;
    return probe_say(syscall(SYS_open_tree, AT_FDCWD, "/", 1 /* OPEN_TREE_CLONE */) >= 0,
                     "open_tree");
}

static bool unmasks(const char *unused)
{
    static const char *const masks[] = { "/proc/kcore", "/proc/keys",    "/proc/sysrq-trigger",
                                         "/proc/sys",   "/sys/firmware", "/proc" };

    (void)unused;
    for (size_t i = 0; i < sizeof(masks) / sizeof(masks[0]); i++) {
        if (umount2(masks[i], MNT_DETACH) == 0)
            return probe_say(true, masks[i]);
    }
    return probe_say(false, "umount of a mask");
}

static bool remounts(const char *unused)
{
    (void)unused;
    return probe_say(mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND, NULL) == 0 ||
                         mount(NULL, "/proc/sys", NULL, MS_REMOUNT | MS_BIND, NULL) == 0,
                     "remount");
}

/* Another root for the whole namespace, with the old one still in it. */
static bool pivots(const char *unused)
{
    (void)unused;
    (void)mkdir("/tmp/probe-root", 0755);
    /* Not a mount point: that is looked at once the right to ask is there. */
    return probe_say(
        probe_considered(syscall(SYS_pivot_root, "/tmp/probe-root", "/tmp/probe-root")),
        "pivot_root");
}

/* The kernel's log: it is on every machine, and nobody's business inside. */
static bool makes_device(const char *unused)
{
    int fd;

    (void)unused;
    (void)unlink("/tmp/probe-device");
    if (mknod("/tmp/probe-device", S_IFCHR | 0600, makedev(1, 11)) < 0)
        return probe_say(false, "mknod");
    fd = open("/tmp/probe-device", O_RDONLY | O_CLOEXEC);
    return probe_say(fd >= 0, "open of a device that we made");
}

/* The argument is a device that came with the image. */
static bool opens_device(const char *path)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

    return probe_say(fd >= 0, path);
}

/* The argument is a file that is to be read, not written. */
static bool writes(const char *path)
{
    return probe_opens_to_write(path);
}

/* Where our output goes. A file could be cut, read, or opened again by its link in /proc. */
static bool has_log(const char *unused)
{
    struct stat st;

    (void)unused;
    errno = EPIPE;
    return probe_say(fstat(STDOUT_FILENO, &st) == 0 && S_ISREG(st.st_mode), "a log file");
}

/* Anything in /dev beyond the harmless. */
static bool finds_device(const char *unused)
{
    static const char *const harmless[] = { "null",    "zero", "full",  "random", "urandom", "tty",
                                            "console", "ptmx", "stdin", "stdout", "stderr" };
    DIR *d = opendir("/dev");
    bool out = false;

    (void)unused;
    for (struct dirent *e = d ? readdir(d) : NULL; e && !out; e = readdir(d)) {
        bool known = false;
        struct stat st;

        for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++)
            known = known || strcmp(e->d_name, harmless[i]) == 0;
        if (known || fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        out = (S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode)) && probe_say(true, e->d_name);
    }
    if (d)
        closedir(d);
    errno = ENOENT;
    return probe_say(out, "a device of the host");
}

/* Paths of the host that the kernel would tell us. The argument is a part of one. */
static bool sees_host_paths(const char *part)
{
    char line[8192];
    FILE *f = fopen("/proc/self/mountinfo", "re");
    bool out = false;

    while (f && !out && fgets(line, sizeof(line), f))
        out = strstr(line, part) != NULL;
    if (f)
        (void)fclose(f);
    errno = ENOENT;
    return probe_say(out, "a path of the host in mountinfo");
}

/* A copy of ourselves that is root's and setuid; an ordinary user runs it. */
static bool uses_setuid(const char *path)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        char *const argv[] = { (char *)"probe", (char *)"is-root", NULL };

        if (setresgid(12345, 12345, 12345) < 0 || setresuid(12345, 12345, 12345) < 0)
            _exit(3);
        execv(path, argv);
        _exit(3);
    }
    return probe_say(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
                         WEXITSTATUS(status) == 0,
                     "a setuid program");
}

static bool is_root(const char *unused)
{
    (void)unused;
    errno = EPERM;
    return probe_say(geteuid() == 0, "root by setuid");
}

/* Descriptors that nobody gave us. */
static bool inherits(const char *unused)
{
    (void)unused;
    for (int fd = 3; fd < 1024; fd++) {
        if (fcntl(fd, F_GETFD) >= 0)
            return probe_say(true, "a descriptor above 2");
    }
    return probe_say(false, "descriptors above 2");
}

const struct probe probes_files[] = {
    { "host-file", by_path },
    { "host-file-by-symlink", by_symlink },
    { "host-file-by-dotdot", by_dotdot },
    { "host-file-by-proc", by_proc },
    { "host-file-by-chroot", by_chroot },
    { "file-handle", by_handle },
    { "mount", mounts },
    { "mount-bind", binds },
    { "mount-proc", mounts_proc },
    { "fsopen", mounts_newly },
    { "open-tree", clones_tree },
    { "unmask", unmasks },
    { "remount", remounts },
    { "pivot-root", pivots },
    { "write", writes },
    { "log-file", has_log },
    { "mknod", makes_device },
    { "image-device", opens_device },
    { "host-device", finds_device },
    { "host-paths", sees_host_paths },
    { "setuid", uses_setuid },
    { "is-root", is_root },
    { "inherited-fd", inherits },
    { NULL, NULL },
};
