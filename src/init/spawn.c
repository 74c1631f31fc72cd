/*
 * spawn.c: the new process between fork and exec. It has PID 1's memory, is not dumpable until its
 * exec, and allocates only from the kernel: threads of PID 1 may hold any lock.
 *
 * Ids are set by raw system calls: libc's functions would first signal all threads of the process,
 * and it has only this one.
 */
#include "init/spawn.h"

#include "base/clock.h"
#include "base/user.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/banned.h"

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

enum {
    REPORT_FD = 3,
    EXIT_NOT_FOUND = 127,
    EXIT_NOT_EXECUTABLE = 126,
    DIR_MODE = 0755,
    DIR_UMASK = 022,
    AWAIT_USER_NS = 10 * 1000 * 1000, /* between two checks for a user */
};

/* The arguments for exec. */
struct image {
    char **argv; /* argv[-1] is free, for a shell */
    char **env;
    const char *path; /* the value of PATH */
};

static _Noreturn void fail(const struct agx_spawn *s, enum agx_code code, const char *what,
                           const char *object, const char *why)
{
    struct agx_spawn_report report = { .code = code };

    if (s->report_fd >= 0) {
        (void)snprintf(report.text, sizeof(report.text), "%s '%s': %s", what, object, why);
        (void)!write(REPORT_FD, &report, sizeof(report));
    } else {
        dprintf(2, "agentix-init: %s '%s': %s\n", what, object, why);
    }
    _exit(EXIT_NOT_EXECUTABLE);
}

static _Noreturn void fail_errno(const struct agx_spawn *s, const char *what, const char *object)
{
    int fault = errno;

    fail(s, agx_code_from_errno(fault), what, object, strerror(fault));
}

static void *get_memory(const struct agx_spawn *s, size_t n)
{
    void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED)
        fail_errno(s, "memory for", "the arguments");
    return p;
}

/* By raw system call: libc refuses to change its two internal signals, and we may have been started
 * with them ignored. */
static void reset_signals(void)
{
    const struct {
        void *handler; /* SIG_DFL */
        unsigned long flags;
        void *restorer;
        uint64_t mask;
    } standard = { 0 };
    sigset_t none;

    for (int i = 1; i < NSIG; i++) /* KILL and STOP fail, and always have the default action */
        (void)syscall(SYS_rt_sigaction, i, &standard, NULL, sizeof(standard.mask));
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* 0, 1, 2, the report, and nothing else. All descriptors of PID 1 are above those. */
static void set_descriptors(const struct agx_spawn *s)
{
    const int from[3] = { s->in_fd, s->out_fd, s->err_fd };

    for (int i = 0; i < 3; i++) {
        if (from[i] >= 0 && from[i] != i && dup2(from[i], i) < 0)
            _exit(EXIT_NOT_EXECUTABLE);
    }
    if (s->report_fd >= 0 && dup3(s->report_fd, REPORT_FD, O_CLOEXEC) < 0)
        _exit(EXIT_NOT_EXECUTABLE);
    (void)syscall(SYS_close_range, s->report_fd >= 0 ? REPORT_FD + 1 : REPORT_FD, ~0u, 0);
    if (s->tty && ioctl(0, TIOCSCTTY, 0) < 0)
        fail_errno(s, "take", "the terminal");
}

static void set_limits(const struct agx_spawn *s)
{
    struct agx_init_list list = s->rlimits ? *s->rlimits : (struct agx_init_list){ 0 };
    struct agx_init_rlimit x;
    char number[16];

    while (agx_init_rlimit_next(&list, &x)) {
        const struct rlimit limit = { .rlim_cur = x.soft, .rlim_max = x.hard };

        if (setrlimit((__rlimit_resource_t)x.resource, &limit) == 0)
            continue;
        (void)snprintf(number, sizeof(number), "%u", x.resource);
        fail_errno(s, "set resource limit", number);
    }
}

static bool set_effective(uid_t uid)
{
    return syscall(SYS_setresuid, -1, uid, -1) == 0;
}

/*
 * Makes one missing directory, as the user. Where the user may not, PID 1 makes it and changes its
 * owner: the user cannot replace it in between, having no right to write there.
 */
static bool make_dir(const char *path, const struct agx_user *u)
{
    bool made;

    if (!set_effective(u->uid))
        return false;
    made = mkdir(path, DIR_MODE) == 0 || errno == EEXIST;
    if (!made && errno != EACCES)
        return false;
    if (!set_effective(0))
        return false;
    if (made)
        return true;
    if (mkdir(path, DIR_MODE) < 0)
        return errno == EEXIST;
    return lchown(path, u->uid, u->gid) == 0;
}

static void enter_cwd(const struct agx_spawn *s, const struct agx_user *u)
{
    char path[PATH_MAX];

    if (s->cwd.len == 0 || chdir(s->cwd.ptr) == 0)
        return;
    if (errno != ENOENT || s->cwd.len >= sizeof(path))
        fail_errno(s, "working directory", s->cwd.ptr);
    memcpy(path, s->cwd.ptr, s->cwd.len + 1);
    for (size_t i = 1; i <= s->cwd.len; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        path[i] = '\0';
        if (access(path, F_OK) < 0 && !make_dir(path, u))
            fail_errno(s, "make directory", path);
        path[i] = s->cwd.ptr[i];
    }
    if (chdir(s->cwd.ptr) < 0)
        fail_errno(s, "working directory", s->cwd.ptr);
}

static void find_user(const struct agx_spawn *s, struct agx_user *u)
{
    static const struct timespec pause = { .tv_nsec = AWAIT_USER_NS };

    for (;;) {
        struct agx_str group = { 0 };
        const char *why;

        if (s->user.len > 0)
            group = agx_user_read_file("/etc/group");
        why = agx_user_find(s->user, agx_user_read_file("/etc/passwd"), group, u);
        if (!why)
            break;
        if (agx_clock_ms() >= s->user_until_ms)
            fail(s, AGX_FAILED_PRECONDITION, "user", s->user.ptr, why);
        (void)nanosleep(&pause, NULL);
    }
    if (s->groups.len > 0 && !agx_user_join(u, s->groups))
        fail(s, AGX_FAILED_PRECONDITION, "user", s->user.ptr, "too many groups");
}

/* The user may open /dev/stdout and the like, as programs that only accept files need. */
static void give_output(const struct agx_user *u)
{
    struct stat st;

    for (int fd = 1; u->uid != 0 && fd <= 2; fd++) {
        if (fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode))
            (void)!fchown(fd, u->uid, (gid_t)-1);
    }
}

static void join_groups(const struct agx_spawn *s, const struct agx_user *u)
{
    if (s->user.len > 0 && (syscall(SYS_setgroups, u->n_groups, u->groups) < 0 ||
                            syscall(SYS_setresgid, u->gid, u->gid, u->gid) < 0))
        fail_errno(s, "join the groups of user", s->user.ptr);
}

/* For good: the saved id too. */
static void become(const struct agx_spawn *s, const struct agx_user *u)
{
    if (s->user.len > 0 && syscall(SYS_setresuid, u->uid, u->uid, u->uid) < 0)
        fail_errno(s, "become user", s->user.ptr);
}

/* exec does not change words, but its type says so. */
static char *as_word(const char *text)
{
    union {
        const char *in;
        char *out;
    } word = { .in = text };

    return word.out;
}

static bool same_name(const char *a, const char *b)
{
    for (; *a == *b && *a != '='; a++, b++) {
        if (*a == '\0')
            return false;
    }
    return *a == *b;
}

static bool has_name(char *const *env, const char *entry)
{
    for (; *env; env++) {
        if (same_name(*env, entry))
            return true;
    }
    return false;
}

static char *home_entry(const struct agx_spawn *s, struct agx_str home)
{
    char *entry = get_memory(s, sizeof("HOME=") + home.len);

    memcpy(entry, "HOME=", 5);
    memcpy(entry + 5, home.ptr, home.len);
    return entry; /* the rest is zero */
}

static void build_env(const struct agx_spawn *s, const struct agx_user *u, struct image *image)
{
    struct agx_init_list list = s->env;
    size_t n = 0, base = 0;
    const char *word;

    while (s->base_env && s->base_env[base])
        base++;
    image->env = get_memory(s, (s->env.count + base + 4) * sizeof(char *));
    while ((word = agx_init_list_next(&list)))
        image->env[n++] = as_word(word);
    for (size_t i = 0; i < base; i++) {
        if (!has_name(image->env, s->base_env[i]))
            image->env[n++] = s->base_env[i];
    }
    if (!has_name(image->env, "HOME="))
        image->env[n++] = home_entry(s, u->home);
    if (s->tty && !has_name(image->env, "TERM="))
        image->env[n++] = as_word("TERM=xterm");
    if (!has_name(image->env, "PATH="))
        image->env[n++] = as_word("PATH=" DEFAULT_PATH);
    for (size_t i = 0; i < n; i++) {
        if (same_name(image->env[i], "PATH="))
            image->path = image->env[i] + 5;
    }
}

static void build_argv(const struct agx_spawn *s, struct image *image)
{
    struct agx_init_list list = s->argv;
    const char *word;
    size_t n = 0;

    if (s->main_argv) {
        image->argv = s->main_argv;
        return;
    }
    image->argv = (char **)get_memory(s, (s->argv.count + 2) * sizeof(char *)) + 1;
    while ((word = agx_init_list_next(&list)))
        image->argv[n++] = as_word(word);
}

/* Returns only on failure: errno. */
static void try_exec(const struct agx_spawn *s, const struct image *image, const char *path)
{
    (void)execve(path, image->argv, image->env);
    if (errno != ENOEXEC || s->is_main)
        return;
    /* A script without an interpreter line: a shell would read it. */
    image->argv[-1] = as_word("sh");
    image->argv[0] = as_word(path);
    (void)execve("/bin/sh", image->argv - 1, image->env);
    errno = ENOEXEC;
}

/* Tries every directory of PATH. The first file that exists but cannot be run determines the
 * error. */
static void search_exec(const struct agx_spawn *s, const struct image *image)
{
    struct agx_str rest = agx_str_from(image->path), dir, name = agx_str_from(image->argv[0]);
    int fault = ENOENT;
    char path[PATH_MAX];

    while (name.len > 0 && agx_str_split(&rest, ':', &dir)) {
        if (dir.len == 0)
            dir = AGX_STR(".");
        if (dir.len + name.len + 2 > sizeof(path))
            continue;
        memcpy(path, dir.ptr, dir.len);
        path[dir.len] = '/';
        memcpy(path + dir.len + 1, name.ptr, name.len + 1);
        try_exec(s, image, path);
        if (errno != ENOENT && errno != ENOTDIR && fault == ENOENT)
            fault = errno;
    }
    errno = fault;
}

static _Noreturn void run(const struct agx_spawn *s)
{
    struct agx_user user;
    struct image image = { .path = DEFAULT_PATH };
    int fault;

    (void)setsid();
    reset_signals();
    set_descriptors(s);
    set_limits(s);
    find_user(s, &user);
    give_output(&user);
    join_groups(s, &user);
    (void)umask(DIR_UMASK);
    enter_cwd(s, &user);
    (void)umask(s->umask);
    become(s, &user);
    build_env(s, &user, &image);
    build_argv(s, &image);
    if (strchr(image.argv[0], '/'))
        try_exec(s, &image, image.argv[0]);
    else
        search_exec(s, &image);
    fault = errno;
    if (fault == E2BIG)
        fail_errno(s, "start", "the command and its environment");
    if (fault == ENOTDIR)
        fault = ENOENT;
    dprintf(2, "agentix: %s: %s\n", image.argv[0], fault == ENOENT ? "not found" : strerror(fault));
    _exit(fault == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE);
}

pid_t agx_spawn(const struct agx_spawn *s)
{
    pid_t pid = _Fork();

    if (pid == 0)
        run(s);
    return pid;
}
