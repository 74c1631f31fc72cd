/*
 * rootless.c: see rootless.h.
 *
 *   record --> the process lives: enter
 *          --> none: find what forbids it --> spawn --> MADE --> newuidmap, newgidmap
 *              --> GO --> READY --> record --> enter
 */
#include "backend/native/rootless.h"

#include "backend/native/net/initsock.h"
#include "backend/native/net/pasta.h"
#include "backend/native/net/userns.h"
#include "base/fd.h"
#include "base/fdpass.h"
#include "base/limits_native.h"
#include "codec/initproto_plan.h"
#include "loop/child.h"

#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/pidfd.h>
#include <sys/wait.h>

#include "base/banned.h"

#define RECORD "rootless"

enum { SUBIDS_MAX = 1 << 20, COMPLAINT_MAX = 400 };

/* ---- a new one ---- */

struct holder {
    pid_t pid;
    int fd; /* its reports */
};

static void holder_done(struct holder *h)
{
    agx_closep(&h->fd);
    if (h->pid <= 0)
        return;
    (void)kill(h->pid, SIGKILL);
    while (waitpid(h->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}

static int rootless_spawn(struct holder *h, const char *init, struct agx_error **err)
{
    const char *const argv[] = { init, "--hold", AGX_INITSOCK_REPORT_ARG, NULL };

    return agx_initsock_spawn(argv, &h->fd, &h->pid, err);
}

static int rootless_hear(const struct holder *h, enum agx_plan_kind want, struct agx_error **err)
{
    struct agx_fdpass in = { 0 };
    pid_t pid;

    return agx_initsock_hear(h->fd, want, &in, &pid, err);
}

/* ---- ids ---- */

/* Its error output when it failed, as one line. */
static int await_mapper(pid_t pid, int complaints, const char *program, struct agx_error **err)
{
    char text[COMPLAINT_MAX] = "";
    ssize_t n = read(complaints, text, sizeof(text) - 1);
    int status = 0;

    text[n > 0 ? n : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    return agx_error_set(err, AGX_FAILED_PRECONDITION, "map ids by '%s': %s", program,
                         text[0] ? text : "it failed");
}

/* newuidmap PID 0 USER 1 1 FIRST N: the user's own id, and those of /etc/subuid. */
static int map_ids(const char *program, pid_t target, uint32_t own, uint32_t first,
                   struct agx_error **err)
{
    char number[16], user[16], from[16], count[16];
    const char *const argv[] = { program, number, "0", user, "1", "1", from, count, NULL };
    struct agx_child_fd map;
    const struct agx_child_params params = {
        .file = program, .argv = argv, .fds = &map, .n_fds = 1
    };
    int pipes[2], r;
    pid_t pid = 0;

    (void)snprintf(number, sizeof(number), "%d", (int)target);
    (void)snprintf(user, sizeof(user), "%u", own);
    (void)snprintf(from, sizeof(from), "%u", first);
    (void)snprintf(count, sizeof(count), "%d", AGX_IDMAP_IDS);
    if (pipe2(pipes, O_CLOEXEC) < 0)
        return agx_error_errno(err, errno, "make a pipe");
    map = (struct agx_child_fd){ pipes[1], STDERR_FILENO };
    r = agx_child_spawn(&params, &pid, err);
    (void)close(pipes[1]);
    if (r == 0)
        r = await_mapper(pid, pipes[0], program, err);
    (void)close(pipes[0]);
    return r;
}

static int find_subids(bool groups, struct agx_subids *ret, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(SUBIDS_MAX);
    const struct passwd *pw = getpwuid(getuid());
    char number[16];

    (void)snprintf(number, sizeof(number), "%u", getuid());
    /* A missing file has no entry either. */
    (void)!agx_fd_read_file(AT_FDCWD, groups ? "/etc/subgid" : "/etc/subuid", &text, NULL);
    return agx_subids_find(agx_buf_peek(&text), pw ? pw->pw_name : number, getuid(), groups, ret,
                           err);
}

/* ---- all of it ---- */

static int make_namespaces(struct holder *h, const struct agx_userns_facts *facts, const char *init,
                           struct agx_error **err)
{
    struct agx_subids users = { 0 }, groups = { 0 };
    int r;

    if ((r = find_subids(false, &users, err)) < 0 || (r = find_subids(true, &groups, err)) < 0 ||
        (r = rootless_spawn(h, init, err)) < 0 || (r = rootless_hear(h, AGX_PLAN_MADE, err)) < 0 ||
        (r = map_ids(facts->newuidmap, h->pid, getuid(), users.first, err)) < 0 ||
        (r = map_ids(facts->newgidmap, h->pid, getgid(), groups.first, err)) < 0 ||
        (r = agx_initsock_go(h->fd, err)) < 0)
        return r;
    return rootless_hear(h, AGX_PLAN_READY, err);
}

/* Where the host forbids it, the error names the setting; otherwise the failure itself. */
static int make(struct agx_rootless *r, const char *init, struct agx_error **err)
{
    _cleanup_(holder_done) struct holder h = { .fd = -1 };
    struct agx_native_proc proc;
    struct agx_userns_facts facts;
    struct agx_error *fault = NULL;
    int bad;

    agx_userns_look("", &facts);
    bad = agx_userns_check(&facts, false, err);
    if (bad < 0)
        return bad;
    bad = make_namespaces(&h, &facts, init, &fault);
    if (bad < 0 && bad != -AGX_FAILED_PRECONDITION && agx_userns_check(&facts, true, err) < 0) {
        agx_error_free(fault);
        return -AGX_FAILED_PRECONDITION;
    }
    if (bad < 0) {
        agx_error_propagate(err, &fault);
        return agx_error_wrap(err, bad, "make the namespaces of user %u", getuid());
    }
    if ((bad = agx_native_proc_note(&proc, h.pid, err)) < 0 ||
        (bad = agx_native_proc_open(&proc, err)) < 0)
        return bad;
    r->pidfd = bad;
    agx_pasta_end(r->dir_fd); /* of earlier namespaces */
    bad = agx_native_proc_save(r->dir_fd, RECORD, &proc, AGX_STR(""), err);
    if (bad < 0)
        return bad;
    r->ours = r->empty = true;
    h.pid = 0;
    return proc.pid;
}

/* From here on we are root of the user namespace. The working directory stays the same, reached
 * through the mounts of the new namespace. */
static int rootless_enter(struct agx_rootless *r, pid_t pid, struct agx_error **err)
{
    char path[64], cwd[PATH_MAX];

    if (!getcwd(cwd, sizeof(cwd)))
        (void)snprintf(cwd, sizeof(cwd), "/");
    if (setns(r->pidfd, CLONE_NEWUSER | CLONE_NEWNS) < 0)
        return agx_error_errno(err, errno, "enter the user namespace of process %d", (int)pid);
    (void)!chdir(cwd);
    (void)snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)pid);
    r->net_fd = open(path, O_RDONLY | O_CLOEXEC);
    if (r->net_fd < 0)
        return agx_error_errno(err, errno, "open '%s'", path);
    return 0;
}

int agx_rootless_enter(struct agx_rootless *r, const struct agx_rootless_config *c,
                       struct agx_error **err)
{
    struct agx_native_proc proc = { 0 };
    int bad = 0;

    r->idmap = (struct agx_idmap){ .on = true, .uid = getuid(), .gid = getgid() };
    r->dir_fd = open(c->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (r->dir_fd < 0)
        return agx_error_errno(err, errno, "open '%s'", c->dir);
    if (agx_native_proc_load(r->dir_fd, RECORD, &proc, NULL))
        r->pidfd = agx_native_proc_open(&proc, NULL);
    if (r->pidfd < 0)
        bad = proc.pid = make(r, c->init_path, err);
    return bad < 0 ? bad : rootless_enter(r, proc.pid, err);
}

void agx_rootless_leave(struct agx_rootless *r)
{
    if (r->pidfd >= 0 && r->empty) {
        agx_pasta_end(r->dir_fd);
        (void)unlinkat(r->dir_fd, RECORD, 0);
        (void)pidfd_send_signal(r->pidfd, SIGKILL, NULL, 0);
        if (r->ours)
            (void)waitid(P_PIDFD, (id_t)r->pidfd, &(siginfo_t){ 0 }, WEXITED);
    }
    agx_closep(&r->pidfd);
    agx_closep(&r->net_fd);
    agx_closep(&r->dir_fd);
    r->pidfd = r->net_fd = r->dir_fd = -1;
}
