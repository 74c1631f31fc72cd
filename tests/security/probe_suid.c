/*
 * probe_suid.c: ways to leave a file in a directory of the host that gives its power to any user
 * who runs it there. The argument is the directory. The last ones are not attempts: they show
 * whether such calls work where nothing forbids them.
 */
#include "tests/security/probe.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

enum { PATH_SIZE = 512, SWAPS = 500, CALLS_MAX = 50000, KILLS = 20 };

/* The file of one attempt. */
static const char *file_in(const char *dir, const char *name)
{
    static char path[PATH_SIZE];

    (void)snprintf(path, sizeof(path), "%s/left-%s", dir, name);
    (void)unlink(path);
    return path;
}

static int make(const char *path)
{
    return open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0755);
}

static mode_t mode_of(const char *path)
{
    struct stat st;

    return lstat(path, &st) < 0 ? 0 : st.st_mode & ALLPERMS;
}

static bool has_bit(const char *path, mode_t bit, const char *what)
{
    int fault = errno;
    bool has = mode_of(path) & bit;

    errno = fault;
    return probe_say(has, what);
}

/* ---- each call ---- */

static bool by_chmod(const char *dir)
{
    const char *path = file_in(dir, "chmod");

    (void)close(make(path));
    (void)syscall(SYS_chmod, path, 04755);
    return has_bit(path, S_ISUID, "chmod");
}

static bool by_chmod_setgid(const char *dir)
{
    const char *path = file_in(dir, "setgid");

    (void)close(make(path));
    (void)syscall(SYS_chmod, path, 02755);
    return has_bit(path, S_ISGID, "chmod");
}

static bool by_chmod_of_directory(const char *dir)
{
    char path[PATH_SIZE];

    (void)snprintf(path, sizeof(path), "%s/left-directory", dir);
    (void)rmdir(path);
    (void)mkdir(path, 0755);
    (void)syscall(SYS_chmod, path, 02755);
    return has_bit(path, S_ISGID, "chmod of a directory");
}

static bool by_fchmod(const char *dir)
{
    const char *path = file_in(dir, "fchmod");

    (void)fchmod(make(path), 04755);
    return has_bit(path, S_ISUID, "fchmod");
}

static bool by_fchmodat(const char *dir)
{
    const char *path = file_in(dir, "fchmodat");
    int at = open(dir, O_PATH | O_CLOEXEC);

    (void)close(make(path));
    (void)syscall(SYS_fchmodat, at, strrchr(path, '/') + 1, 04755);
    return has_bit(path, S_ISUID, "fchmodat");
}

/* A kernel without it says so, and a caller falls back as libc does. */
static bool by_fchmodat2(const char *dir)
{
    const char *path = file_in(dir, "fchmodat2");
    int fd = make(path);

    if (syscall(SYS_fchmodat2, fd, "", 04755, AT_EMPTY_PATH) < 0 && errno == ENOSYS)
        (void)syscall(SYS_fchmodat, AT_FDCWD, path, 04755);
    return has_bit(path, S_ISUID, "fchmodat2");
}

static bool by_link_of_proc(const char *dir)
{
    const char *path = file_in(dir, "proc");
    char link[64];

    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", make(path));
    (void)syscall(SYS_chmod, link, 04755);
    return has_bit(path, S_ISUID, "chmod of a link of /proc");
}

static bool by_creat(const char *dir)
{
    const char *path = file_in(dir, "creat");

    (void)syscall(SYS_creat, path, 04755);
    return has_bit(path, S_ISUID, "creat");
}

static bool by_open(const char *dir)
{
    const char *path = file_in(dir, "open");

    (void)syscall(SYS_open, path, O_CREAT | O_WRONLY, 04755);
    return has_bit(path, S_ISUID, "open");
}

static bool by_openat(const char *dir)
{
    const char *path = file_in(dir, "openat");
    int at = open(dir, O_PATH | O_CLOEXEC);

    (void)syscall(SYS_openat, at, strrchr(path, '/') + 1, O_CREAT | O_EXCL | O_WRONLY, 04755);
    return has_bit(path, S_ISUID, "openat");
}

static bool by_openat2(const char *dir)
{
    const char *path = file_in(dir, "openat2");
    const struct {
        uint64_t flags, mode, resolve;
    } how = { .flags = O_CREAT | O_WRONLY, .mode = 04755 };

    (void)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
    return has_bit(path, S_ISUID, "openat2");
}

/* A file without a name, which gets one. */
static bool by_tmpfile(const char *dir)
{
    const char *path = file_in(dir, "tmpfile");
    int fd = (int)syscall(SYS_openat, AT_FDCWD, dir, O_TMPFILE | O_WRONLY, 04755);
    char link[64];

    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    if (fd >= 0)
        (void)!linkat(AT_FDCWD, link, AT_FDCWD, path, AT_SYMLINK_FOLLOW);
    return has_bit(path, S_ISUID, "a file without a name");
}

static bool by_mknod(const char *dir)
{
    const char *path = file_in(dir, "mknod");

    (void)syscall(SYS_mknod, path, S_IFREG | 04755, 0);
    return has_bit(path, S_ISUID, "mknod");
}

static bool by_mknodat(const char *dir)
{
    const char *path = file_in(dir, "mknodat");

    (void)syscall(SYS_mknodat, AT_FDCWD, path, S_IFREG | 02755, 0);
    return has_bit(path, S_ISGID, "mknodat");
}

static bool by_capabilities(const char *dir)
{
    const struct vfs_cap_data caps = {
        .magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE,
        .data = { { .permitted = 1u << CAP_SETUID } },
    };
    const char *path = file_in(dir, "capabilities");

    (void)close(make(path));
    return probe_say(setxattr(path, "security.capability", &caps, sizeof(caps), 0) == 0,
                     "capabilities of a file");
}

/* ---- what is changed while it is decided ---- */

struct swap {
    const char *link, *own, *theirs; /* paths */
    int fd, own_fd, theirs_fd;
    char *text;
    atomic_uint n; /* how often it was swapped */
    atomic_bool over;
};

/* Whether it is to be ours next. */
static bool next_is_own(struct swap *s)
{
    return atomic_fetch_add(&s->n, 1) % 2;
}

static void *swap_links(void *arg)
{
    struct swap *s = arg;
    char made[PATH_SIZE];

    (void)snprintf(made, sizeof(made), "%s-new", s->link);
    while (!atomic_load(&s->over)) {
        (void)!symlink(next_is_own(s) ? s->own : s->theirs, made);
        (void)rename(made, s->link);
    }
    return NULL;
}

static void *swap_descriptors(void *arg)
{
    struct swap *s = arg;

    while (!atomic_load(&s->over))
        (void)dup2(next_is_own(s) ? s->own_fd : s->theirs_fd, s->fd);
    return NULL;
}

static void *swap_texts(void *arg)
{
    struct swap *s = arg;

    while (!atomic_load(&s->over)) {
        const char *text = next_is_own(s) ? s->own : s->theirs;

        memcpy(s->text, text, strlen(text) + 1);
    }
    return NULL;
}

/* Changes the mode of what is sometimes ours until it was, some time, the other one's. Gives up
 * after SWAPS calls in which it was swapped; a busy machine rarely runs both threads at once, so
 * CALLS_MAX bounds the calls. */
static bool races(const char *dir, const char *name, void *(*swaps)(void *))
{
    char theirs[PATH_SIZE], own[] = "/tmp/left-own", link[] = "/tmp/left-link", text[PATH_SIZE];
    struct swap s = { .link = link, .own = own, .theirs = theirs, .text = text };
    unsigned n_done = 0, n_swapped = 0; /* calls that succeeded, those in which it was swapped */
    unsigned n_calls = 0;
    pthread_t thread;

    (void)snprintf(theirs, sizeof(theirs), "%s", file_in(dir, name));
    (void)snprintf(text, sizeof(text), "%s", own);
    s.own_fd = make(own);
    s.theirs_fd = make(theirs);
    s.fd = dup(s.own_fd);
    (void)unlink(link);
    (void)!symlink(own, link);
    if (pthread_create(&thread, NULL, swaps, &s) != 0)
        return probe_say(false, "a thread");
    while (n_swapped < SWAPS && n_calls++ < CALLS_MAX && !(mode_of(theirs) & S_ISUID)) {
        unsigned before = atomic_load(&s.n);
        long r = swaps == swap_descriptors
                     ? syscall(SYS_fchmod, s.fd, 04755)
                     : syscall(SYS_chmod, swaps == swap_texts ? text : link, 04755);

        n_done += r == 0;
        if (atomic_load(&s.n) != before)
            n_swapped++;
        else
            (void)sched_yield();
    }
    atomic_store(&s.over, true);
    (void)pthread_join(thread, NULL);
    (void)unlink(own);
    (void)unlink(link);
    (void)printf("%u calls were made\n", n_done);
    errno = EPERM;
    return has_bit(theirs, S_ISUID, name);
}

static bool by_swapped_link(const char *dir)
{
    return races(dir, "swapped-link", swap_links);
}

static bool by_swapped_descriptor(const char *dir)
{
    return races(dir, "swapped-descriptor", swap_descriptors);
}

static bool by_swapped_text(const char *dir)
{
    return races(dir, "swapped-text", swap_texts);
}

/* ---- elsewhere they do what was asked ---- */

static bool failed;

static void expect_that(bool holds, int line, const char *what)
{
    if (holds)
        return;
    failed = true;
    (void)printf("line %d: %s: %s\n", line, what, strerror(errno));
}

#define EXPECT(x) expect_that((x), __LINE__, #x)
#define EXPECT_FAULT(fault, x) expect_that((x) < 0 && errno == (fault), __LINE__, #x)

static void enter_new(const char *dir)
{
    char path[] = "/tmp/calls-XXXXXX";

    (void)dir;
    EXPECT(mkdtemp(path) && chmod(path, 0777) == 0 && chdir(path) == 0);
    (void)umask(022);
}

static void check_modes(void)
{
    int dir = open(".", O_PATH | O_CLOEXEC), fd = make("f"), by_path;
    char link[64];

    (void)close(make("g"));
    EXPECT(chmod("f", 04755) == 0 && mode_of("f") == 04755);
    EXPECT(fchmod(fd, 02711) == 0 && mode_of("f") == 02711);
    EXPECT(syscall(SYS_fchmodat, dir, "g", 06700) == 0 && mode_of("g") == 06700);
    EXPECT(syscall(SYS_fchmodat2, fd, "", 04700, AT_EMPTY_PATH) == 0 && mode_of("f") == 04700);
    EXPECT(symlink("f", "l") == 0 && chmod("l", 04711) == 0 && mode_of("f") == 04711);
    EXPECT_FAULT(EOPNOTSUPP, syscall(SYS_fchmodat2, dir, "l", 04700, AT_SYMLINK_NOFOLLOW));
    EXPECT_FAULT(EINVAL, syscall(SYS_fchmodat2, dir, "f", 04700, 1));
    by_path = open("f", O_PATH | O_CLOEXEC);
    EXPECT_FAULT(EBADF, fchmod(by_path, 04755));
    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", by_path);
    EXPECT(chmod(link, 04755) == 0 && mode_of("f") == 04755);
    EXPECT(mkdir("d", 0755) == 0 && chmod("d", 02775) == 0 && mode_of("d") == 02775);
    (void)close(make("/dev/shm/f"));
    EXPECT(chmod("/dev/shm/f", 04755) == 0 && mode_of("/dev/shm/f") == 04755);
}

static void check_faults(void)
{
    const long page = sysconf(_SC_PAGESIZE);
    char *pages =
        mmap(NULL, 2 * (size_t)page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *last = pages + page - 2, longest[5000];

    EXPECT_FAULT(ENOENT, chmod("missing", 04755));
    EXPECT_FAULT(ENOENT, chmod("", 04755));
    EXPECT_FAULT(ENOTDIR, chmod("f/below", 04755));
    EXPECT_FAULT(EBADF, fchmod(500, 04755));
    EXPECT_FAULT(EBADF, syscall(SYS_fchmodat, 500, "f", 04755));
    EXPECT_FAULT(EFAULT, syscall(SYS_chmod, 1, 04755));
    EXPECT_FAULT(EPERM, chmod("/proc/version", 04755));
    memset(longest, 'x', sizeof(longest));
    longest[sizeof(longest) - 1] = '\0';
    EXPECT_FAULT(ENAMETOOLONG, chmod(longest, 04755));
    EXPECT(munmap(pages + page, (size_t)page) == 0);
    memcpy(last, "f", sizeof("f"));
    EXPECT(chmod(last, 04755) == 0);
    last[1] = 'x';
    EXPECT_FAULT(EFAULT, chmod(last, 04755));
    EXPECT_FAULT(EEXIST, mknod("f", S_IFREG | 04755, 0));
    EXPECT_FAULT(ENOENT, mknod("missing/f", S_IFREG | 04755, 0));
    EXPECT_FAULT(ENOENT, open("missing/f", O_CREAT | O_WRONLY, 04755));
    EXPECT_FAULT(EISDIR, open("d", O_CREAT | O_WRONLY, 04755));
    EXPECT_FAULT(EISDIR, open("new/", O_CREAT | O_WRONLY, 04755));
}

static void check_files(void)
{
    char text[8] = "";
    struct stat st;
    int fd;

    fd = creat("created", 06777);
    EXPECT(fd > 2 && mode_of("created") == 06755 && !(fcntl(fd, F_GETFD) & FD_CLOEXEC));
    EXPECT(write(fd, "kept", 4) == 4);
    fd = open("created", O_CREAT | O_RDWR | O_APPEND | O_CLOEXEC, 04711);
    EXPECT(fd > 2 && (fcntl(fd, F_GETFD) & FD_CLOEXEC) && (fcntl(fd, F_GETFL) & O_APPEND));
    EXPECT(read(fd, text, 4) == 4 && strcmp(text, "kept") == 0 && mode_of("created") == 0755);
    EXPECT(open("created", O_CREAT | O_RDWR | O_TRUNC, 04711) > 2);
    EXPECT(fstat(fd, &st) == 0 && st.st_size == 0);
    EXPECT_FAULT(EEXIST, open("created", O_CREAT | O_EXCL | O_RDWR, 04711));
    EXPECT(symlink("created", "c") == 0);
    EXPECT_FAULT(ELOOP, open("c", O_CREAT | O_NOFOLLOW | O_RDWR, 04711));
    EXPECT(open("c", O_CREAT | O_RDWR, 04711) > 2);
    /* Overlays have no such files before Linux 6.3. */
    fd = openat(AT_FDCWD, "/dev/shm", O_TMPFILE | O_RDWR, 04711);
    EXPECT(fd > 2 && fstat(fd, &st) == 0 && (st.st_mode & ALLPERMS) == 04711);
    EXPECT(mknod("node", S_IFREG | 04711, 0) == 0 && mode_of("node") == 04711);
    EXPECT(mknodat(AT_FDCWD, "fifo", S_IFIFO | 06666, 0) == 0 && mode_of("fifo") == 06644);
}

static void check_root(void)
{
    pid_t pid;
    int status = 0;

    EXPECT(mkdir("jail", 0755) == 0);
    (void)close(make("jail/inner"));
    pid = fork();
    if (pid == 0) {
        if (chroot("jail") < 0 || chmod("/inner", 04755) < 0 || chmod("/../inner", 04755) < 0)
            _exit(1);
        _exit(creat("/made", 04711) < 0);
    }
    EXPECT(waitpid(pid, &status, 0) == pid && status == 0);
    EXPECT(mode_of("jail/inner") == 04755 && mode_of("jail/made") == 04711);
}

/* An ordinary user, with a group more. */
static void check_as_user(void)
{
    const gid_t more = 77;
    struct stat st = { 0 };

    EXPECT(setgroups(1, &more) == 0 && setresgid(1000, 1000, 1000) == 0 &&
           setresuid(1000, 1000, 1000) == 0);
    EXPECT_FAULT(EPERM, chmod("roots", 04755));
    EXPECT_FAULT(EACCES, creat("closed/f", 04755));
    EXPECT_FAULT(EACCES, chmod("private/f", 04755));
    EXPECT_FAULT(EPERM, mknod("device", S_IFCHR | 04666, 259));
    EXPECT(chmod("users", 04755) == 0 && mode_of("users") == 04755);
    /* Not his group, and one that is. */
    EXPECT(chmod("strange", 06755) == 0 && mode_of("strange") == 04755);
    EXPECT(chmod("shared", 02755) == 0 && mode_of("shared") == 02755);
    EXPECT(creat("made", 06755) > 2 && stat("made", &st) == 0);
    EXPECT(st.st_uid == 1000 && st.st_gid == 1000 && (st.st_mode & ALLPERMS) == 06755);
    _exit(failed);
}

static void check_users(void)
{
    int status = 0;
    pid_t pid;

    EXPECT(fchown(make("users"), 1000, 1000) == 0);
    EXPECT(fchown(make("strange"), 1000, 55) == 0);
    EXPECT(fchown(make("shared"), 1000, 77) == 0);
    EXPECT(make("roots") > 2 && mkdir("closed", 0755) == 0 && mkdir("private", 0700) == 0);
    pid = fork();
    if (pid == 0)
        check_as_user();
    EXPECT(waitpid(pid, &status, 0) == pid && status == 0);
}

static void on_alarm(int unused)
{
    (void)unused;
}

/* A call that is made again by a signal would find its own file. */
static void check_signals(void)
{
    const struct sigaction act = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
    const struct itimerval often = { { 0, 200 }, { 0, 200 } }, never = { 0 };
    char name[32];

    EXPECT(sigaction(SIGALRM, &act, NULL) == 0 && setitimer(ITIMER_REAL, &often, NULL) == 0);
    for (int i = 0; i < 200; i++) {
        int fd;

        (void)snprintf(name, sizeof(name), "signal-%d", i);
        fd = open(name, O_CREAT | O_EXCL | O_WRONLY, 04755);
        EXPECT(fd > 2);
        (void)close(fd);
    }
    EXPECT(setitimer(ITIMER_REAL, &never, NULL) == 0);
}

static void *change_often(void *arg)
{
    const int *const number = arg;
    char name[32];

    (void)snprintf(name, sizeof(name), "many-%d", *number);
    (void)close(make(name));
    for (int i = 0; i < 50; i++) {
        if (chmod(name, 04755) < 0 || chmod(name, 0755) < 0)
            return arg;
    }
    return NULL;
}

/* More callers at a time than are answered at a time. */
static void check_many(void)
{
    enum { MANY = 48 };
    pthread_t threads[MANY];
    int numbers[MANY];
    void *bad;

    for (int i = 0; i < MANY; i++) {
        numbers[i] = i;
        EXPECT(pthread_create(&threads[i], NULL, change_often, &numbers[i]) == 0);
    }
    for (int i = 0; i < MANY; i++)
        EXPECT(pthread_join(threads[i], &bad) == 0 && !bad);
}

static bool calls_work(const char *unused)
{
    enter_new(unused);
    check_modes();
    check_faults();
    check_files();
    check_root();
    check_users();
    check_signals();
    check_many();
    errno = 0;
    return !failed;
}

/* ---- whoever answers them is killed ---- */

/* What stands in a file of that process in /proc; empty: it is gone. */
static const char *proc_text(const char *pid, const char *name)
{
    static char text[64];
    char path[300];
    ssize_t n = -1;
    int fd;

    (void)snprintf(path, sizeof(path), "/proc/%s/%s", pid, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        n = read(fd, text, sizeof(text) - 1);
        (void)close(fd);
    }
    text[n > 0 ? n : 0] = '\0';
    return text;
}

/* Somebody who is agentix-init, but the first; 0: nobody is just now. */
static pid_t find_helper(void)
{
    DIR *d = opendir("/proc");
    pid_t found = 0;

    for (struct dirent *e = d ? readdir(d) : NULL; e && !found; e = readdir(d)) {
        if (e->d_name[0] >= '0' && e->d_name[0] <= '9' && strcmp(e->d_name, "1") != 0 &&
            strncmp(proc_text(e->d_name, "comm"), "agentix-init", 12) == 0)
            found = atoi(e->d_name);
    }
    if (d)
        (void)closedir(d);
    return found;
}

static void *kill_helpers(void *arg)
{
    const atomic_bool *over = arg;

    while (!atomic_load(over)) {
        pid_t pid = find_helper();

        if (pid)
            (void)kill(pid, SIGKILL);
    }
    return NULL;
}

/* Until some calls were refused for it: each ends, and afterwards they work as before. */
static bool outlives_its_helpers(const char *dir)
{
    atomic_bool over = false;
    pthread_t thread;
    unsigned refused = 0;

    enter_new(dir);
    (void)close(make("f"));
    EXPECT(pthread_create(&thread, NULL, kill_helpers, &over) == 0);
    while (refused < KILLS && !failed) {
        int r = chmod("f", 04755);

        refused += r < 0;
        EXPECT(r == 0 || errno == EPERM);
        EXPECT(r == 0 ? mode_of("f") == 04755 : true);
        EXPECT(chmod("f", 0755) == 0);
    }
    atomic_store(&over, true);
    EXPECT(pthread_join(thread, NULL) == 0);
    EXPECT(chmod("f", 04755) == 0 && mode_of("f") == 04755);
    (void)printf("%u were refused\n", refused);
    return !failed;
}

/* It was stopped before it ended. */
static bool stays_stopped(pid_t pid)
{
    char name[16];

    (void)snprintf(name, sizeof(name), "%d", pid);
    for (;;) {
        const char *state = strchr(proc_text(name, "stat"), ')');

        if (!state || state[2] == 'Z' || state[2] == 'X')
            return false;
        if (state[2] == 'T')
            return true;
    }
}

/* Who waits for one that was stopped can be killed, and nobody else waits. */
static bool is_not_held_by_stopped_helpers(const char *dir)
{
    pid_t caller, helper;
    int status = 0;

    enter_new(dir);
    (void)close(make("f"));
    caller = fork();
    if (caller == 0) {
        for (;;)
            (void)chmod("f", 04755);
    }
    do {
        helper = find_helper();
    } while (!helper || kill(helper, SIGSTOP) < 0 || !stays_stopped(helper));
    EXPECT(kill(caller, SIGKILL) == 0 && waitpid(caller, &status, 0) == caller);
    EXPECT(chmod("f", 02755) == 0 && mode_of("f") == 02755);
    EXPECT(kill(helper, SIGKILL) == 0);
    return !failed;
}

const struct probe probes_suid[] = {
    { "left-chmod", by_chmod },
    { "left-setgid", by_chmod_setgid },
    { "left-directory", by_chmod_of_directory },
    { "left-fchmod", by_fchmod },
    { "left-fchmodat", by_fchmodat },
    { "left-fchmodat2", by_fchmodat2 },
    { "left-proc", by_link_of_proc },
    { "left-creat", by_creat },
    { "left-open", by_open },
    { "left-openat", by_openat },
    { "left-openat2", by_openat2 },
    { "left-tmpfile", by_tmpfile },
    { "left-mknod", by_mknod },
    { "left-mknodat", by_mknodat },
    { "left-capabilities", by_capabilities },
    { "left-swapped-link", by_swapped_link },
    { "left-swapped-descriptor", by_swapped_descriptor },
    { "left-swapped-text", by_swapped_text },
    { "suid-calls", calls_work },
    { "suid-killed", outlives_its_helpers },
    { "suid-stopped", is_not_held_by_stopped_helpers },
    { NULL, NULL },
};
