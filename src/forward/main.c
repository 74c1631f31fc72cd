/*
 * main.c: agentix-forward: forwards from one side of a sandbox's network to the other.
 *
 *     agentix-forward --net FD --pid FD --report FD --to ADDRESS [--tcp FD:PORT]... [--udp FD:PORT]...
 *     agentix-forward --net FD --pid FD --report FD --to SERVER --inside ADDRESS
 *
 * The first: sockets that the daemon bound on the host; connections go to ports of ADDRESS in the
 * network namespace `--net`. The second: port 53 of ADDRESS in that namespace, which this program
 * binds itself; connections go to port 53 of SERVER, from the host. Descriptors are inherited.
 *
 * It writes "ok" or an error to the report. It ends when the process behind the pidfd `--pid` does.
 * Everything that needs rights is done first: afterwards it is nobody, in one network namespace,
 * with the descriptors that it has.
 */
#include "forward/forward.h"

#include "base/str.h"

#include <arpa/inet.h>
#include <grp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "base/banned.h"

enum {
    DNS_PORT = 53,
    NOBODY = 65534,
    BACKLOG = 128,
    SPARE_FDS = 64 + FORWARD_FLOWS_MAX, /* for all except connections */
};

struct options {
    int net_fd, pid_fd, report_fd;
    const char *to, *inside;
};

static struct forward forward;
static int report_fd = 2;

static _Noreturn void die(const char *what)
{
    (void)dprintf(report_fd, "%s: %s\n", what, strerror(errno));
    _exit(1);
}

static _Noreturn void die_of(const char *what)
{
    errno = EINVAL;
    die(what);
}

static int number(const char *text, uint64_t max)
{
    uint64_t n;

    if (!agx_parse_u64(agx_str_from(text), max, &n))
        die_of(text);
    return (int)n;
}

static struct address address_of(const char *text, uint16_t port)
{
    struct address a = { 0 };
    struct sockaddr_in *v4 = (struct sockaddr_in *)&a.any;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&a.any;

    if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
        a.len = sizeof(*v4);
    } else if (inet_pton(AF_INET6, text, &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(port);
        a.len = sizeof(*v6);
    } else {
        die_of(text);
    }
    return a;
}

static void add_route(int fd, bool datagrams, const char *to, uint16_t port)
{
    struct route *r = calloc(1, sizeof(*r));

    if (!r)
        die("no memory");
    r->watch.fd = fd;
    r->watch.ready = datagrams ? agx_datagram_arrived : agx_stream_accept;
    r->datagrams = datagrams;
    r->to = address_of(to, port);
    r->next = forward.routes;
    forward.routes = r;
}

/* "FD:PORT" */
static void add_port(const char *value, bool datagrams, const char *to)
{
    const char *colon = strchr(value, ':');
    char fd[16];

    if (!colon || colon - value >= (ptrdiff_t)sizeof(fd) || !to)
        die_of(value);
    (void)snprintf(fd, sizeof(fd), "%.*s", (int)(colon - value), value);
    add_route(number(fd, INT32_MAX), datagrams, to, (uint16_t)number(colon + 1, UINT16_MAX));
}

static void take_option(struct options *o, const char *name, const char *value)
{
    if (strcmp(name, "--net") == 0)
        o->net_fd = number(value, INT32_MAX);
    else if (strcmp(name, "--pid") == 0)
        o->pid_fd = number(value, INT32_MAX);
    else if (strcmp(name, "--report") == 0)
        report_fd = o->report_fd = number(value, INT32_MAX);
    else if (strcmp(name, "--to") == 0)
        o->to = value;
    else if (strcmp(name, "--inside") == 0)
        o->inside = value;
    else if (strcmp(name, "--tcp") == 0 || strcmp(name, "--udp") == 0)
        add_port(value, name[2] == 'u', o->to);
    else
        die_of(name);
}

/* Port 53 in the sandbox's network, where every user may bind low ports. */
static int bind_inside(const struct options *o, int type)
{
    struct address at = address_of(o->inside, DNS_PORT);
    int fd = socket(at.any.ss_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0 || bind(fd, (const struct sockaddr *)&at.any, at.len) < 0 ||
        (type == SOCK_STREAM && listen(fd, BACKLOG) < 0))
        die("listen in the sandbox");
    return fd;
}

static void go_inside(const struct options *o)
{
    if (setns(o->net_fd, CLONE_NEWNET) < 0)
        die("enter the sandbox's network namespace");
}

struct errand {
    const struct options *o;
    int datagrams, streams;
};

static void *run_errand(void *arg)
{
    struct errand *e = arg;

    go_inside(e->o);
    e->datagrams = bind_inside(e->o, SOCK_DGRAM);
    e->streams = bind_inside(e->o, SOCK_STREAM);
    return NULL;
}

/* Done by a thread that enters the namespace and ends: an ordinary user could not return to the
 * host's network. */
static void listen_inside(const struct options *o)
{
    struct errand e = { .o = o };
    pthread_t thread;

    if ((errno = pthread_create(&thread, NULL, run_errand, &e)) != 0 ||
        (errno = pthread_join(thread, NULL)) != 0)
        die("start a thread");
    add_route(e.datagrams, true, o->to, DNS_PORT);
    add_route(e.streams, false, o->to, DNS_PORT);
}

/* Starts in the host's namespaces with the daemon's identity; ends in the network namespace from
 * which connections are made. */
static void main_enter(const struct options *o)
{
    if (o->inside)
        listen_inside(o);
    else
        go_inside(o);
    (void)close(o->net_fd); /* or it would outlive the sandbox */
}

/* From here on: an ordinary user without any rights, whose process cannot be traced. */
static void drop_rights(void)
{
    if (geteuid() == 0 && (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
                           setresuid(NOBODY, NOBODY, NOBODY) < 0))
        die("become nobody");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        die("give up rights");
}

static void on_sandbox_gone(struct forward *f, struct watch *w, uint32_t events)
{
    (void)f;
    (void)w;
    (void)events;
    _exit(0);
}

static void set_limits(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) < 0)
        die("limits");
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files);
    forward.max_streams = files.rlim_cur > 2 * SPARE_FDS ? (files.rlim_cur - SPARE_FDS) / 2 : 1;
    forward.max_streams = AGX_MIN(forward.max_streams, (size_t)FORWARD_STREAMS_MAX);
}

int main(int argc, char **argv)
{
    struct options o = { .net_fd = -1, .pid_fd = -1 };

    for (int i = 1; i + 1 < argc; i += 2)
        take_option(&o, argv[i], argv[i + 1]);
    if (argc % 2 == 0 || o.net_fd < 0 || o.pid_fd < 0 || !o.to || (!o.inside == !forward.routes))
        die_of("arguments");
    (void)signal(SIGPIPE, SIG_IGN);
    set_limits();
    main_enter(&o);
    forward.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (forward.epoll_fd < 0)
        die("epoll");
    drop_rights();
    forward.sandbox = (struct watch){ .fd = o.pid_fd, .ready = on_sandbox_gone };
    agx_watch_set(&forward, &forward.sandbox, EPOLLIN);
    for (struct route *r = forward.routes; r; r = r->next)
        agx_watch_set(&forward, &r->watch, EPOLLIN);
    if (o.report_fd > 2) {
        (void)dprintf(o.report_fd, "ok\n");
        (void)close(o.report_fd);
    }
    agx_forward_run(&forward);
}
