/*
 * child.c: starts programs and reports how they ended.
 *
 *   RUNNING --pidfd readable--> reaped, handle closing --closed--> on_exit, freed
 *
 * posix_spawn() does what a threaded process may do between fork and exec: it shares our memory
 * only while we wait, blocks signals meanwhile, and returns the error of exec. Invariants:
 *  (1) the pid is ours until waitid(), which happens once, in reap(); so it never names another
 *      process while the object lives, and `reaped` protects later uses.
 *  (2) the child's descriptors are exactly those of the map; 0, 1 and 2 are /dev/null if missing.
 */
#include "loop/child.h"

#include "loop/loop.h"
#include "loop/uverr.h"

#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/pidfd.h>
#include <sys/wait.h>

#include "base/banned.h"

struct agx_child {
    struct agx_loop *loop;
    pid_t pid;
    int pidfd;
    bool has_group, end_group;
    bool reaped;
    uv_poll_t poll;
    struct agx_child_status status;
    agx_child_exit_fn on_exit;
    void *user;
};

/* The arguments of posix_spawn(). `high` are copies of our descriptors above all numbers that the
 * child uses, so that no dup2() in the child overwrites one that is still needed. */
struct plan {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    int *high;
    size_t n_high;
};

static void plan_done(struct plan *p)
{
    for (size_t i = 0; i < p->n_high; i++)
        agx_closep(&p->high[i]);
    free(p->high);
    posix_spawn_file_actions_destroy(&p->actions);
    posix_spawnattr_destroy(&p->attr);
}

static bool is_listed(const struct agx_child_params *params, int theirs)
{
    for (size_t i = 0; i < params->n_fds; i++) {
        if (params->fds[i].theirs == theirs)
            return true;
    }
    return false;
}

/* These return 0 or a positive errno, as posix_spawn() does. */
static int plan_fds(struct plan *p, const struct agx_child_params *params)
{
    int end = 3, r = 0; /* one above the highest number that the child uses */

    for (size_t i = 0; i < params->n_fds; i++)
        end = AGX_MAX(end, params->fds[i].theirs + 1);
    p->high = calloc(params->n_fds + 1, sizeof(p->high[0]));
    if (!p->high)
        return ENOMEM;
    for (size_t i = 0; i < params->n_fds && r == 0; i++) {
        int copy = fcntl(params->fds[i].ours, F_DUPFD_CLOEXEC, end);

        if (copy < 0)
            return errno;
        p->high[p->n_high++] = copy;
        r = posix_spawn_file_actions_adddup2(&p->actions, copy, params->fds[i].theirs);
    }
    for (int fd = 0; fd < end && r == 0; fd++) {
        if (is_listed(params, fd))
            continue;
        if (fd < 3)
            r = posix_spawn_file_actions_addopen(&p->actions, fd, "/dev/null", O_RDWR, 0);
        else
            r = posix_spawn_file_actions_addclose(&p->actions, fd);
    }
    return r ? r : posix_spawn_file_actions_addclosefrom_np(&p->actions, end);
}

static int plan_attr(struct plan *p, const struct agx_child_params *params)
{
    short flags = POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK;
    sigset_t all, none;
    int r;

    memset(&all, 0xff, sizeof(all)); /* sigfillset() leaves out two of glibc's own: 32 and 33 */
    sigemptyset(&none);
    if (params->group == AGX_CHILD_NEW_GROUP)
        flags |= POSIX_SPAWN_SETPGROUP; /* with pgroup 0, the default: a new group */
    if (params->group == AGX_CHILD_NEW_SESSION)
        flags |= POSIX_SPAWN_SETSID;
    r = posix_spawnattr_setflags(&p->attr, flags);
    if (r == 0)
        r = posix_spawnattr_setsigdefault(&p->attr, &all);
    if (r == 0)
        r = posix_spawnattr_setsigmask(&p->attr, &none);
    if (r == 0 && params->cwd)
        r = posix_spawn_file_actions_addchdir_np(&p->actions, params->cwd);
    return r;
}

static int child_spawn(const struct agx_child_params *params, pid_t *ret_pid)
{
    const char *const only_file[] = { params->file, NULL }, *const nothing[] = { NULL };
    const char *const *argv = params->argv ? params->argv : only_file;
    const char *const *env = params->env ? params->env : nothing;
    struct plan p = { .n_high = 0 };
    int r;

    posix_spawn_file_actions_init(&p.actions);
    posix_spawnattr_init(&p.attr);
    r = plan_attr(&p, params);
    if (r == 0)
        r = plan_fds(&p, params);
    if (r == 0)
        r = posix_spawn(ret_pid, params->file, &p.actions, &p.attr, (char *const *)argv,
                        (char *const *)env);
    plan_done(&p);
    return r;
}

static void on_closed(uv_handle_t *h)
{
    struct agx_child *c = container_of(h, struct agx_child, poll);

    c->on_exit(c->user, &c->status);
    free(c);
}

/* True if it had ended. */
static bool child_reap(struct agx_child *c)
{
    siginfo_t info = { 0 };
    int r;

    do
        r = waitid(P_PIDFD, (id_t)c->pidfd, &info, WEXITED | WNOHANG);
    while (r < 0 && errno == EINTR);
    if (r == 0 && info.si_pid == 0)
        return false; /* not yet */
    c->reaped = true;
    if (r == 0 && info.si_code == CLD_EXITED)
        c->status = (struct agx_child_status){ .code = info.si_status };
    else
        c->status = (struct agx_child_status){ .code = -1, .signo = r == 0 ? info.si_status : 0 };
    return true;
}

static void on_ended(uv_poll_t *poll, int status, int events)
{
    struct agx_child *c = container_of(poll, struct agx_child, poll);

    (void)status; /* waitid() gives a precise result */
    (void)events;
    if (c->end_group)
        agx_child_kill_group(c, SIGKILL); /* the unreaped leader still reserves the group's id */
    if (!child_reap(c))
        return;
    uv_close((uv_handle_t *)&c->poll, on_closed);
    agx_closep(&c->pidfd);
}

/* Watches the new process; kills it if that fails, because nothing would reap it. */
static int child_watch(struct agx_child *c, struct agx_error **err)
{
    int r;

    c->pidfd = pidfd_open(c->pid, 0);
    if (c->pidfd < 0) {
        r = agx_error_errno(err, errno, "open a pidfd");
    } else {
        r = uv_poll_init(agx_loop_uv(c->loop), &c->poll, c->pidfd);
        if (r == 0) {
            (void)uv_poll_start(&c->poll, UV_READABLE, on_ended); /* an open handle: cannot fail */
            return 0;
        }
        r = agx_uverr_set(err, r, "watch a pidfd");
    }
    (void)kill(c->pid, SIGKILL);
    while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    agx_closep(&c->pidfd);
    return r;
}

int agx_child_spawn(const struct agx_child_params *params, pid_t *ret_pid, struct agx_error **err)
{
    int r = child_spawn(params, ret_pid);

    if (r != 0 && params->cwd)
        return agx_error_errno(err, r, "start '%s' in '%s'", params->file, params->cwd);
    return r != 0 ? agx_error_errno(err, r, "start '%s'", params->file) : 0;
}

static int spawn_and_watch(struct agx_child *c, const struct agx_child_params *params,
                           struct agx_error **err)
{
    int r = agx_child_spawn(params, &c->pid, err);

    if (r < 0)
        return r;
    r = child_watch(c, err);
    return r < 0 ? agx_error_wrap(err, r, "start '%s'", params->file) : 0;
}

int agx_child_start(struct agx_loop *l, const struct agx_child_params *params,
                    agx_child_exit_fn on_exit, void *user, struct agx_child **ret_child,
                    struct agx_error **err)
{
    struct agx_child *c = calloc(1, sizeof(*c));
    int r;

    agx_loop_assert(l);
    if (!c)
        return agx_error_errno(err, ENOMEM, "start '%s'", params->file);
    *c = (struct agx_child){ .loop = l, .pidfd = -1, .on_exit = on_exit, .user = user };
    c->has_group = params->group != AGX_CHILD_OUR_GROUP;
    c->end_group = params->end_group;
    assert(c->has_group || !c->end_group);
    r = spawn_and_watch(c, params, err);
    if (r < 0) {
        free(c);
        return r;
    }
    *ret_child = c;
    return 0;
}

pid_t agx_child_pid(const struct agx_child *c)
{
    return c->pid;
}

void agx_child_kill(struct agx_child *c, int signo)
{
    agx_loop_assert(c->loop);
    if (!c->reaped)
        (void)pidfd_send_signal(c->pidfd, signo, NULL, 0); /* a failure means that it has ended */
}

void agx_child_kill_group(struct agx_child *c, int signo)
{
    agx_loop_assert(c->loop);
    assert(c->has_group);
    if (!c->reaped) /* the unreaped leader reserves the group's id */
        (void)kill(-c->pid, signo);
}
