/*
 * nsset_make.c: namespaces, then links.
 *
 *   GO --> MADE {user, net, netlink} --> id maps --> GO --> READY --> links, addresses
 *
 * The init that makes the namespaces is started for the first set and kept for later ones. A
 * failure leaves nothing: namespaces end with their descriptors and take their links along; a
 * bridge is removed.
 */
#include "backend/native/net/nsset_make.h"

#include "backend/native/net/initsock.h"
#include "backend/native/net/links.h"
#include "base/clock.h"
#include "base/fdpass.h"
#include "codec/initproto_plan.h"

#include <assert.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "base/banned.h"

enum { GATEWAY = 1, FIRST_MEMBER = 2, NAMES_TRIED = 4 };

static const char inner_link[] = "eth0";

/* ---- namespaces ---- */

/* The namespaces of one member, and a netlink socket in them. */
struct made {
    int fds[AGX_PLAN_REPORT_FDS_MAX];
    size_t n_fds; /* came; the others are -1 */
};

static void made_done(struct made *m)
{
    for (size_t i = 0; i < AGX_ARRAY_LEN(m->fds); i++)
        agx_closep(&m->fds[i]);
}

/* Kills it, if it runs, and waits for its end. */
static void end_init(struct agx_nsset_maker *m)
{
    agx_closep(&m->init_fd);
    m->init_fd = -1;
    if (m->init_pid <= 0)
        return;
    (void)kill(m->init_pid, SIGKILL);
    while (waitpid(m->init_pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    m->init_pid = 0;
}

/* Servers that are not root may have low ports and anybody may ping, as with engines: the network
 * is the sandbox's own. No IPv6 on its link, which no route leads out by. */
static void write_argv(const char *init, const char **argv)
{
    size_t n = 0;

    argv[n++] = init;
    argv[n++] = "--nssets";
    argv[n++] = AGX_INITSOCK_REPORT_ARG;
    argv[n++] = "net/ipv4/ip_unprivileged_port_start=0";
    argv[n++] = "net/ipv4/ping_group_range=0 65535";
    if (agx_links_ipv6())
        argv[n++] = "net/ipv6/conf/default/disable_ipv6=1";
    argv[n] = NULL;
}

static int start_init(struct agx_nsset_maker *m, struct agx_error **err)
{
    const char *argv[8];

    write_argv(m->init_path, argv);
    return agx_initsock_spawn(argv, &m->init_fd, &m->init_pid, err);
}

/* Its descriptors are added to those of `made`. */
static int nsset_make_hear(const struct agx_nsset_maker *m, enum agx_plan_kind want,
                           struct made *made, pid_t *ret_pid, struct agx_error **err)
{
    struct agx_fdpass in = { .fds = made->fds + made->n_fds,
                             .max = AGX_ARRAY_LEN(made->fds) - made->n_fds };
    int r = agx_initsock_hear(m->init_fd, want, &in, ret_pid, err);

    made->n_fds += in.n;
    return r;
}

static int write_map(pid_t pid, const char *which, const char *text, struct agx_error **err)
{
    char path[48];
    _cleanup_close_ int fd = -1;
    size_t n = strlen(text);

    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, which);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, text, n) != (ssize_t)n) /* the kernel accepts all of it or nothing */
        return agx_error_errno(err, errno, "write the map of ids '%.*s'", (int)strcspn(text, "\n"),
                               text);
    return 0;
}

static int map_ids(const struct agx_nsset_maker *m, pid_t pid, uint32_t base,
                   struct agx_error **err)
{
    char users[AGX_IDMAP_TEXT], groups[AGX_IDMAP_TEXT];
    int r;

    if (m->idmap.on) {
        (void)agx_idmap_lines(m->idmap.uid, users);
        (void)agx_idmap_lines(m->idmap.gid, groups);
    } else {
        (void)snprintf(users, sizeof(users), "0 %u %u\n", base, AGX_NSSET_IDS);
        memcpy(groups, users, sizeof(groups));
    }
    r = write_map(pid, "uid_map", users, err);
    return r < 0 ? r : write_map(pid, "gid_map", groups, err);
}

/* If init was killed since the last set, that is not a failure of this one: it is started again. */
static int nsset_make_begin(struct agx_nsset_maker *m, struct agx_error **err)
{
    int r;

    if (m->init_pid > 0 && agx_initsock_go(m->init_fd, NULL) > 0)
        return 0;
    end_init(m);
    r = start_init(m, err);
    return r < 0 ? r : agx_initsock_go(m->init_fd, err);
}

static int make_namespaces(struct agx_nsset_maker *m, uint32_t id_base, struct made *made,
                           struct agx_error **err)
{
    pid_t pid = 0;
    int r = nsset_make_begin(m, err);

    if (r >= 0)
        r = nsset_make_hear(m, AGX_PLAN_MADE, made, &pid, err);
    if (r == 0 && made->fds[2] < 0)
        r = agx_error_set(err, AGX_INTERNAL, "agentix-init sent no namespaces");
    if (r == 0)
        r = map_ids(m, pid, id_base, err);
    if (r == 0)
        r = agx_initsock_go(m->init_fd, err);
    if (r >= 0)
        r = nsset_make_hear(m, AGX_PLAN_READY, made, &pid, err);
    if (r < 0)
        end_init(m);
    return r;
}

static int make_member(struct agx_nsset_maker *m, struct agx_nsset_member *member, int *ret_netlink,
                       struct agx_error **err)
{
    _cleanup_(made_done) struct made made = { { -1, -1, -1 } };
    int r = make_namespaces(m, member->id_base, &made, err);

    if (r < 0)
        return r;
    member->user_fd = AGX_TAKE_FD(made.fds[0]);
    member->net_fd = AGX_TAKE_FD(made.fds[1]);
    *ret_netlink = AGX_TAKE_FD(made.fds[2]);
    return 0;
}

/* ---- links ---- */

void agx_nsset_number(struct agx_nsset *n, const struct agx_subnet *subnet)
{
    n->subnet = *subnet;
    agx_links_address(subnet, GATEWAY, n->gateway);
    for (size_t i = 0; i < n->n; i++)
        agx_links_address(subnet, (uint8_t)(FIRST_MEMBER + i), n->members[i].address);
}

/* What the host uses is read again from time to time only: with a thousand sandboxes that takes
 * milliseconds. Subnets that we used since are remembered. */
static int look_at_host(struct agx_nsset_maker *m, struct agx_error **err)
{
    uint64_t now_ms = agx_clock_ms();

    if (m->taken.len > 0 && now_ms - m->taken_ms < AGX_NSSET_ROUTES_MS)
        return 0;
    agx_subnet_list_done(&m->taken);
    m->taken_ms = now_ms;
    return agx_subnets_host(&m->taken, err);
}

static int choose_network(struct agx_nsset_maker *m, struct agx_nsset *n, struct agx_error **err)
{
    struct agx_subnet subnet;
    int r = look_at_host(m, err);

    if (r == 0)
        r = agx_subnets_next(&m->subnets, &m->taken, &subnet, err);
    if (r == 0)
        r = agx_subnet_list_add(&m->taken, &subnet, err);
    if (r == 0)
        agx_nsset_number(n, &subnet);
    return r;
}

/* A link with an unused name. `net_fd` -1: a bridge. */
static int make_link(struct agx_nsset_maker *m, int net_fd, char ret_name[IF_NAMESIZE],
                     struct agx_error **err)
{
    int r = -AGX_ALREADY_EXISTS;

    for (int i = 0; r == -AGX_ALREADY_EXISTS && i < NAMES_TRIED; i++) {
        if (*err)
            *err = agx_error_free(*err);
        r = agx_links_name(ret_name, err);
        if (r == 0 && net_fd < 0)
            r = agx_links_bridge(m->fd, ret_name, m->alias, err);
        else if (r == 0)
            r = agx_links_veth(m->fd, ret_name, net_fd, inner_link, err);
    }
    if (r < 0)
        ret_name[0] = '\0';
    return r;
}

/* Sets up the host's end, by which all packets of the members come. */
static int raise_host(struct agx_nsset_maker *m, struct agx_nsset *n, struct agx_error **err)
{
    const struct agx_links_up up = {
        .name = n->interface, .alias = m->alias, .network = &n->subnet, .number = GATEWAY
    };

    return agx_links_up(m->fd, &up, err);
}

/* Without our alias: it is removed with its namespace, so no later daemon has to. */
static int join_bridge(struct agx_nsset_maker *m, struct agx_nsset *n, size_t i,
                       struct agx_error **err)
{
    char name[IF_NAMESIZE];
    const struct agx_links_up up = { .name = name, .bridge = n->interface };
    int r = make_link(m, n->members[i].net_fd, name, err);

    return r < 0 ? r : agx_links_up(m->fd, &up, err);
}

static int connect_host(struct agx_nsset_maker *m, struct agx_nsset *n, struct agx_error **err)
{
    int r = make_link(m, n->n == 1 ? n->members[0].net_fd : -1, n->interface, err);

    if (r == 0)
        r = raise_host(m, n, err);
    for (size_t i = 0; r == 0 && n->n > 1 && i < n->n; i++)
        r = join_bridge(m, n, i, err);
    return r;
}

static int raise_member(struct agx_nsset *n, size_t i, int netlink, struct agx_error **err)
{
    const struct agx_links_up lo = { .name = "lo" };
    const struct agx_links_up up = { .name = inner_link,
                                     .network = &n->subnet,
                                     .number = (uint8_t)(FIRST_MEMBER + i),
                                     .gateway = GATEWAY,
                                     .steady_mac = n->n > 1 };
    int r = agx_links_up(netlink, &lo, err);

    return r < 0 || n->network == AGX_NSSET_NONE ? r : agx_links_up(netlink, &up, err);
}

/* ---- nssets ---- */

struct sockets {
    int fds[AGX_NSSET_MEMBERS_MAX];
};

static void sockets_done(struct sockets *s)
{
    for (size_t i = 0; i < AGX_NSSET_MEMBERS_MAX; i++)
        agx_closep(&s->fds[i]);
}

/* Called once, before anything else: the thread stays in that namespace. */
static int open_host(struct agx_nsset_maker *m, struct agx_error **err)
{
    if (m->fd < 0 && m->net_fd > 0 && setns(m->net_fd, CLONE_NEWNET) < 0)
        return agx_error_errno(err, errno, "enter the network namespace of the sandboxes");
    return m->fd < 0 ? agx_links_open(&m->fd, err) : 0;
}

static int make_all(struct agx_nsset_maker *m, struct agx_nsset *n, struct sockets *netlink,
                    struct agx_error **err)
{
    int r = open_host(m, err);

    for (size_t i = 0; r == 0 && i < n->n; i++)
        r = make_member(m, &n->members[i], &netlink->fds[i], err);
    if (r == 0 && n->network != AGX_NSSET_NONE)
        r = choose_network(m, n, err);
    if (r == 0 && n->network != AGX_NSSET_NONE)
        r = connect_host(m, n, err);
    for (size_t i = 0; r == 0 && i < n->n; i++)
        r = raise_member(n, i, netlink->fds[i], err);
    return r;
}

int agx_nsset_make(struct agx_nsset_maker *m, struct agx_nsset *n, struct agx_error **err)
{
    _cleanup_(sockets_done) struct sockets netlink;
    struct agx_error *fault = NULL;
    int r;

    assert(n->n >= 1 && n->n <= AGX_NSSET_MEMBERS_MAX);
    for (size_t i = 0; i < AGX_NSSET_MEMBERS_MAX; i++)
        netlink.fds[i] = -1;
    r = make_all(m, n, &netlink, &fault);
    if (r == 0)
        return 0;
    if (n->n > 1 && n->interface[0])
        (void)agx_links_remove(m->fd, n->interface, NULL);
    for (size_t i = 0; i < n->n; i++) {
        agx_closep(&n->members[i].user_fd);
        agx_closep(&n->members[i].net_fd);
        n->members[i].user_fd = n->members[i].net_fd = -1;
    }
    n->interface[0] = '\0';
    agx_error_propagate(err, &fault);
    return agx_error_wrap(err, r, "make a sandbox's network");
}

static int remake(struct agx_nsset_maker *m, struct agx_nsset *n, size_t i, struct agx_error **err)
{
    _cleanup_close_ int netlink = -1;
    int r = open_host(m, err);

    if (r == 0)
        r = make_member(m, &n->members[i], &netlink, err);
    if (r == 0 && n->network != AGX_NSSET_NONE)
        r = join_bridge(m, n, i, err);
    return r < 0 ? r : raise_member(n, i, netlink, err);
}

int agx_nsset_make_member(struct agx_nsset_maker *m, struct agx_nsset *n, size_t i,
                          struct agx_error **err)
{
    struct agx_error *fault = NULL;
    int r = remake(m, n, i, &fault);

    if (r == 0)
        return 0;
    agx_closep(&n->members[i].user_fd);
    agx_closep(&n->members[i].net_fd);
    n->members[i].user_fd = n->members[i].net_fd = -1;
    agx_error_propagate(err, &fault);
    return agx_error_wrap(err, r, "make the network of a companion anew");
}

/* ---- the first work, and the last ---- */

static int forward_packets(bool *ret_changed, struct agx_error **err)
{
    static const char path[] = "/proc/sys/net/ipv4/ip_forward";
    _cleanup_close_ int fd = open(path, O_RDWR | O_CLOEXEC);
    char now = '\0';

    *ret_changed = false;
    if (fd >= 0 && pread(fd, &now, 1, 0) == 1 && now == '1')
        return 0;
    if (fd < 0 || pwrite(fd, "1", 1, 0) != 1)
        return agx_error_errno(err, errno, "let the host forward packets: write '%s'", path);
    *ret_changed = true;
    return 0;
}

int agx_nsset_clean(struct agx_nsset_maker *m, const struct agx_words *keep, bool *ret_forwarding,
                    struct agx_error **err)
{
    _cleanup_(agx_words_done) struct agx_words found = { 0 };
    int r = open_host(m, err);

    if (r == 0)
        r = forward_packets(ret_forwarding, err);
    if (r == 0)
        r = agx_links_find(m->alias, &found, err);
    for (size_t i = 0; r == 0 && i < found.len; i++) {
        if (!agx_words_has(keep, found.items[i]))
            r = agx_links_remove(m->fd, found.items[i], err);
    }
    return r;
}

bool agx_nsset_gone(struct agx_nsset_maker *m, const char *interface, bool now)
{
    if (now && open_host(m, NULL) == 0)
        (void)agx_links_remove(m->fd, interface, NULL);
    return open_host(m, NULL) < 0 || !agx_links_has(m->fd, interface);
}

void agx_nsset_maker_done(struct agx_nsset_maker *m)
{
    end_init(m);
    free(m->init_path);
    agx_subnet_list_done(&m->taken);
    if (m->fd >= 0)
        (void)close(m->fd);
}
