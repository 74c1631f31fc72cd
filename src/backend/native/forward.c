/*
 * forward.c: the daemon's side of the forwarder process.
 *
 *   start --> "ok" or an error on a pipe: done --> runs --> its end is reaped: ended
 *
 * It is our child only during this daemon's life; one that an earlier daemon started is held only
 * by a pidfd. There is a handle on the pipe and one on the pidfd; memory is freed with the last of
 * them.
 */
#include "backend/native/forward.h"

#include "backend/native/net/resolv.h"
#include "base/mem.h"
#include "loop/child.h"
#include "loop/uverr.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/banned.h"

enum {
    NET_FD = 3, /* descriptor numbers in the process */
    PID_FD = 4,
    REPORT_FD = 5,
    FIRST_SOCKET = 6,
    FIXED_WORDS = 12, /* program, four options with their values, the end, and some to spare */
    PORT_TEXT = 24,
};

struct agx_forward {
    struct agx_loop *loop;
    struct agx_native_proc proc;
    int pidfd, report_fd;
    bool ours; /* a child: must be reaped */
    bool over; /* its end was seen */
    uv_poll_t exit, report;
    unsigned n_open;  /* handles */
    agx_done_fn done; /* NULL: called already, or abandoned */
    void *user;
    agx_forward_ended_fn ended; /* NULL: called already, or not set */
    void *ended_user;
};

/* ---- sockets ---- */

static int refuse_port(const struct agx_port *p, int fault, struct agx_error **err)
{
    const char *name = agx_protocol_name((enum agx_protocol)p->protocol);

    if (fault == EADDRINUSE)
        return agx_error_set(err, AGX_ALREADY_EXISTS,
                             "ports: port %u/%s of 127.0.0.1 is taken by another program",
                             p->host_port, name);
    return agx_error_errno(err, fault, "ports: listen on port %u/%s of 127.0.0.1", p->host_port,
                           name);
}

static int bind_one(const struct agx_port *p, int *ret_fd, struct agx_error **err)
{
    bool tcp = p->protocol == AGX_PROTOCOL_TCP;
    _cleanup_close_ int fd = -1;
    const int on = 1;
    struct sockaddr_in at = { .sin_family = AF_INET,
                              .sin_port = htons((uint16_t)p->host_port),
                              .sin_addr = { htonl(INADDR_LOOPBACK) } };

    if (!tcp && p->protocol != AGX_PROTOCOL_UDP)
        return agx_error_set(err, AGX_FAILED_PRECONDITION,
                             "ports: %s is not forwarded by the native backend: tcp and udp are",
                             agx_protocol_name((enum agx_protocol)p->protocol));
    fd = socket(AF_INET, (tcp ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return refuse_port(p, errno, err);
    if (tcp) /* connections of the last owner in TIME_WAIT do not matter */
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, (const struct sockaddr *)&at, sizeof(at)) < 0 ||
        (tcp && listen(fd, SOMAXCONN) < 0))
        return refuse_port(p, errno, err);
    *ret_fd = AGX_TAKE_FD(fd);
    return 0;
}

int agx_forward_bind(const struct agx_port *ports, size_t n, struct agx_forward_sockets *ret,
                     struct agx_error **err)
{
    struct agx_forward_sockets s = { .fds = agx_alloc((n + 1) * sizeof(int)) };
    int r = 0;

    for (; r == 0 && s.n < n; s.n += r == 0)
        r = bind_one(&ports[s.n], &s.fds[s.n], err);
    if (r < 0)
        agx_forward_sockets_done(&s);
    else
        *ret = s;
    return r;
}

void agx_forward_sockets_done(struct agx_forward_sockets *s)
{
    for (size_t i = 0; i < s->n; i++)
        agx_closep(&s->fds[i]);
    free(s->fds);
    *s = (struct agx_forward_sockets){ 0 };
}

/* ---- the end ---- */

static void on_closed(uv_handle_t *h)
{
    struct agx_forward *f = h->data;

    if (--f->n_open > 0)
        return;
    agx_closep(&f->pidfd);
    agx_closep(&f->report_fd);
    free(f);
}

static void close_handle(uv_poll_t *p)
{
    if (!uv_is_closing((uv_handle_t *)p))
        uv_close((uv_handle_t *)p, on_closed);
}

static void forward_reap(struct agx_forward *f)
{
    if (f->ours)
        (void)waitid(P_PIDFD, (id_t)f->pidfd, &(siginfo_t){ 0 }, WEXITED | WNOHANG);
    f->ours = false;
    f->over = true;
    (void)uv_poll_stop(&f->exit);
}

/* If it never worked, its pipe says so: that is reported by `done`. */
static void tell_end(struct agx_forward *f)
{
    agx_forward_ended_fn ended = f->ended;

    if (!f->over || f->done || !ended)
        return;
    f->ended = NULL;
    ended(f->ended_user);
}

static void on_ended(uv_poll_t *p, int status, int events)
{
    (void)status;
    (void)events;
    forward_reap(p->data);
    tell_end(p->data);
}

static void on_ended_last(uv_poll_t *p, int status, int events)
{
    (void)status;
    (void)events;
    forward_reap(p->data);
    close_handle(p);
}

struct agx_forward *agx_forward_free(struct agx_forward *f)
{
    if (!f)
        return NULL;
    agx_loop_assert(f->loop);
    f->done = NULL;
    f->ended = NULL;
    if (f->report_fd >= 0)
        close_handle(&f->report);
    close_handle(&f->exit);
    return NULL;
}

struct agx_forward *agx_forward_stop(struct agx_forward *f)
{
    if (!f)
        return NULL;
    agx_loop_assert(f->loop);
    (void)pidfd_send_signal(f->pidfd, SIGKILL, NULL, 0); /* it may have ended already */
    if (!f->ours)
        return agx_forward_free(f);
    f->done = NULL;
    f->ended = NULL;
    if (f->report_fd >= 0)
        close_handle(&f->report);
    (void)uv_poll_start(&f->exit, UV_READABLE, on_ended_last);
    uv_ref((uv_handle_t *)&f->exit);
    return NULL;
}

/* ---- the start ---- */

static void on_report(uv_poll_t *p, int status, int events)
{
    struct agx_forward *f = p->data;
    agx_done_fn done = f->done;
    void *user = f->user;
    struct agx_error *error = NULL;
    char text[256];
    ssize_t n = read(f->report_fd, text, sizeof(text) - 1);

    (void)status;
    (void)events;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    text[n > 0 ? n : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    if (strcmp(text, "ok") != 0)
        (void)agx_error_set(&error, AGX_INTERNAL, "forward ports of a sandbox: %s",
                            text[0] ? text : "agentix-forward ended without a report");
    f->done = NULL;
    if (error)
        f->ended = NULL;
    close_handle(p);
    if (done)
        done(user, error);
    else
        agx_error_free(error);
    tell_end(f); /* freed only when its handles are closed */
}

static int forward_watch(struct agx_forward *f, uv_poll_t *p, int fd, uv_poll_cb ready,
                         struct agx_error **err)
{
    int r = uv_poll_init(agx_loop_uv(f->loop), p, fd);

    if (r < 0)
        return agx_uverr_set(err, r, "watch agentix-forward");
    p->data = f;
    f->n_open++;
    (void)uv_poll_start(p, UV_READABLE, ready);
    return 0;
}

/* Takes the pidfd and the pipe, even on failure. `report_fd` may be -1. */
static int forward_hold(struct agx_loop *l, const struct agx_native_proc *proc, int pidfd,
                        int report_fd, struct agx_forward **ret, struct agx_error **err)
{
    struct agx_forward *f = agx_new(struct agx_forward);
    int r;

    *f = (struct agx_forward){ .loop = l, .proc = *proc, .pidfd = pidfd, .report_fd = report_fd };
    f->ours = report_fd >= 0;
    r = forward_watch(f, &f->exit, pidfd, on_ended, err);
    if (r < 0) {
        agx_closep(&f->pidfd);
        agx_closep(&f->report_fd);
        free(f);
        return r;
    }
    uv_unref((uv_handle_t *)&f->exit); /* its end is watched, but must not keep the loop running */
    if (report_fd >= 0)
        r = forward_watch(f, &f->report, report_fd, on_report, err);
    if (r < 0) {
        agx_closep(&f->report_fd);
        f->report_fd = -1;
        (void)agx_forward_stop(f);
        return r;
    }
    *ret = f;
    return 0;
}

struct command {
    const char **argv;
    char (*texts)[PORT_TEXT];
    struct agx_child_fd *fds;
    size_t n_words, n_fds;
};

static void command_done(struct command *c)
{
    free(c->argv);
    free(c->texts);
    free(c->fds);
}

static void add_option(struct command *c, const char *name, const char *value)
{
    c->argv[c->n_words++] = name;
    c->argv[c->n_words++] = value;
}

static void add_fd(struct command *c, int ours, int theirs)
{
    c->fds[c->n_fds++] = (struct agx_child_fd){ ours, theirs };
}

static void add_ports(struct command *c, const struct agx_forward_params *p)
{
    for (size_t i = 0; i < p->sockets->n; i++) {
        int fd = FIRST_SOCKET + (int)i;

        add_fd(c, p->sockets->fds[i], fd);
        (void)snprintf(c->texts[i], PORT_TEXT, "%d:%u", fd, p->ports[i].container_port);
        add_option(c, p->ports[i].protocol == AGX_PROTOCOL_TCP ? "--tcp" : "--udp", c->texts[i]);
    }
}

static struct command make_command(const struct agx_forward_params *p, int report_fd)
{
    size_t n = p->dns ? 0 : p->sockets->n;
    struct command c = { .argv = agx_alloc((FIXED_WORDS + 2 * n) * sizeof(*c.argv)),
                         .texts = agx_alloc((n + 1) * sizeof(*c.texts)),
                         .fds = agx_alloc((FIRST_SOCKET + n) * sizeof(*c.fds)) };

    c.argv[c.n_words++] = p->program;
    add_option(&c, "--net", "3");
    add_option(&c, "--pid", "4");
    add_option(&c, "--report", "5");
    add_fd(&c, p->net_fd, NET_FD);
    add_fd(&c, p->pidfd, PID_FD);
    add_fd(&c, report_fd, REPORT_FD);
    add_option(&c, "--to", p->dns ? p->dns : p->address);
    if (p->dns)
        add_option(&c, "--inside", AGX_RESOLV_INSIDE);
    else
        add_ports(&c, p);
    return c;
}

static int forward_spawn(const struct agx_forward_params *p, int report_fd,
                         struct agx_native_proc *ret, int *ret_pidfd, struct agx_error **err)
{
    _cleanup_(command_done) struct command c = make_command(p, report_fd);
    const struct agx_child_params child = { .file = p->program,
                                            .argv = c.argv,
                                            .fds = c.fds,
                                            .n_fds = c.n_fds,
                                            .group = AGX_CHILD_NEW_SESSION };
    pid_t pid = 0;
    int r = agx_child_spawn(&child, &pid, err);

    if (r < 0)
        return r;
    *ret_pidfd = pidfd_open(pid, 0);
    r = *ret_pidfd < 0 ? agx_error_errno(err, errno, "open the process of agentix-forward")
                       : agx_native_proc_note(ret, pid, err);
    if (r == 0)
        return 0;
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
    agx_closep(ret_pidfd);
    return r;
}

int agx_forward_start(struct agx_loop *l, const struct agx_forward_params *params, agx_done_fn done,
                      void *user, struct agx_forward **ret_forward, struct agx_error **err)
{
    struct agx_native_proc proc;
    int pipes[2], pidfd = -1, r;

    agx_loop_assert(l);
    if (pipe2(pipes, O_CLOEXEC) < 0)
        return agx_error_errno(err, errno, "start agentix-forward");
    r = forward_spawn(params, pipes[1], &proc, &pidfd, err);
    (void)close(pipes[1]);
    if (r < 0) {
        (void)close(pipes[0]);
        return r;
    }
    r = forward_hold(l, &proc, pidfd, pipes[0], ret_forward, err);
    if (r == 0) {
        (*ret_forward)->done = done;
        (*ret_forward)->user = user;
    }
    return r;
}

int agx_forward_adopt(struct agx_loop *l, const struct agx_native_proc *proc,
                      struct agx_forward **ret_forward, struct agx_error **err)
{
    int pidfd = agx_native_proc_open(proc, err);

    agx_loop_assert(l);
    return pidfd < 0 ? pidfd : forward_hold(l, proc, pidfd, -1, ret_forward, err);
}

void agx_forward_watch(struct agx_forward *f, agx_forward_ended_fn ended, void *user)
{
    agx_loop_assert(f->loop);
    f->ended = ended;
    f->ended_user = user;
}

const struct agx_native_proc *agx_forward_proc(const struct agx_forward *f)
{
    return &f->proc;
}

int agx_forward_dup_pidfd(const struct agx_forward *f)
{
    return f && !f->over ? fcntl(f->pidfd, F_DUPFD_CLOEXEC, 0) : -1;
}
