/*
 * firewall_watch.c: two netlink sockets that only receive.
 *
 * The nftables socket reports each object of a transaction and, at its end, who made it (NEWGEN).
 * So `touched` records whether our table is among them, and the end decides. Messages lost for lack
 * of buffer space count as a change by another program.
 */
#include "backend/net/firewall_watch.h"

#include "backend/net/firewall_docker_user.h"
#include "backend/net/netns.h"
#include "backend/net/rtnl.h"
#include "base/limits_backend.h"
#include "base/mem.h"
#include "base/str.h"
#include "loop/uverr.h"

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/banned.h"

enum { NEWS_BYTES = 16 << 10, RULES = 0, ROUTES = 1, SOCKETS = 2 };

struct listener {
    struct agx_firewall_watch *watch;
    int fd;
    uv_poll_t poll;
};

struct agx_firewall_watch {
    const struct agx_firewall_watch_ops *ops;
    void *user;
    int net_fd; /* only used by open */
    char table[NFT_TABLE_MAXNAMELEN], thread[16];
    struct listener sockets[SOCKETS];
    uv_timer_t gather;
    unsigned n_open; /* open handles */
    /* The transaction that is being reported contains our table, or the chain of
     * firewall_docker_user.h.
     */
    bool touched, touched_pass;
    bool table_news, route_news, pass_news;
};

static void on_gathered(uv_timer_t *t)
{
    struct agx_firewall_watch *w = t->data;
    bool table = w->table_news, routes = w->route_news, pass = w->pass_news;

    w->table_news = w->route_news = w->pass_news = false;
    if (pass)
        w->ops->pass(w->user);
    if (routes)
        w->ops->routes(w->user);
    if (table)
        w->ops->table(w->user);
}

static void gather(struct agx_firewall_watch *w)
{
    if (!uv_is_active((uv_handle_t *)&w->gather))
        (void)uv_timer_start(&w->gather, on_gathered, AGX_FIREWALL_NEWS_MS, 0);
    uv_unref((uv_handle_t *)&w->gather);
}

/* A string attribute. */
static struct agx_str find_text(struct nlmsghdr *m, unsigned type)
{
    struct rtattr *a =
        (struct rtattr *)((char *)NLMSG_DATA(m) + NLMSG_ALIGN(sizeof(struct nfgenmsg)));
    size_t len = m->nlmsg_len - NLMSG_LENGTH(sizeof(struct nfgenmsg));

    for (; RTA_OK(a, len); a = RTA_NEXT(a, len)) {
        if ((a->rta_type & NLA_TYPE_MASK) == type) {
            struct agx_str s = agx_str_bytes(RTA_DATA(a), RTA_PAYLOAD(a));

            return (struct agx_str){ s.ptr, agx_str_find(s, '\0') };
        }
    }
    return (struct agx_str){ 0 };
}

/* Whether a message is about that chain or one of its rules. */
static bool is_pass(struct nlmsghdr *m)
{
    const struct nfgenmsg *g = NLMSG_DATA(m);
    int type = NFNL_MSG_TYPE(m->nlmsg_type);
    bool rule = type == NFT_MSG_NEWRULE || type == NFT_MSG_DELRULE;

    return (rule || type == NFT_MSG_NEWCHAIN) && g->nfgen_family == NFPROTO_IPV4 &&
           agx_str_eq(find_text(m, NFTA_TABLE_NAME), AGX_STR(AGX_FIREWALL_PASS_TABLE)) &&
           agx_str_eq(find_text(m, rule ? NFTA_RULE_CHAIN : NFTA_CHAIN_NAME),
                      AGX_STR(AGX_FIREWALL_PASS_CHAIN));
}

static void on_rule_message(struct agx_firewall_watch *w, struct nlmsghdr *m)
{
    const struct nfgenmsg *g = NLMSG_DATA(m);

    if (m->nlmsg_len < NLMSG_LENGTH(sizeof(*g)) ||
        NFNL_SUBSYS_ID(m->nlmsg_type) != NFNL_SUBSYS_NFTABLES)
        return;
    if (NFNL_MSG_TYPE(m->nlmsg_type) != NFT_MSG_NEWGEN) {
        /* The table's name is the first attribute of all these messages. */
        w->touched =
            w->touched || (g->nfgen_family == NFPROTO_INET &&
                           agx_str_eq(find_text(m, NFTA_TABLE_NAME), agx_str_from(w->table)));
        w->touched_pass = w->touched_pass || is_pass(m);
        return;
    }
    if ((w->touched || w->touched_pass) &&
        !agx_str_eq(find_text(m, NFTA_GEN_PROC_NAME), agx_str_from(w->thread))) {
        w->table_news = w->table_news || w->touched;
        w->pass_news = w->pass_news || w->touched_pass;
        gather(w);
    }
    w->touched = w->touched_pass = false;
}

/* Whether a route may add or remove an uplink: it leads out of the host's own networks. All other
 * routes come and go with every sandbox. */
static bool leads_out(struct nlmsghdr *m)
{
    static const unsigned short ways[] = { RTA_GATEWAY, RTA_VIA, RTA_MULTIPATH };
    struct rtmsg *r = NLMSG_DATA(m);

    if (m->nlmsg_len < NLMSG_LENGTH(sizeof(*r)) || r->rtm_dst_len == 0)
        return true;
    for (size_t i = 0; i < AGX_ARRAY_LEN(ways); i++) {
        if (agx_rtnl_find(RTM_RTA(r), RTM_PAYLOAD(m), ways[i]))
            return true;
    }
    return false;
}

static void on_bytes(struct listener *l, struct nlmsghdr *m, size_t len)
{
    for (; NLMSG_OK(m, len); m = NLMSG_NEXT(m, len)) {
        if (l == &l->watch->sockets[RULES])
            on_rule_message(l->watch, m);
        else
            l->watch->route_news = l->watch->route_news || leads_out(m);
    }
    if (l->watch->route_news)
        gather(l->watch);
}

static void on_readable(uv_poll_t *p, int status, int events)
{
    struct listener *l = p->data;
    struct agx_firewall_watch *w = l->watch;
    union {
        struct nlmsghdr head;
        char bytes[NEWS_BYTES];
    } in;

    (void)events;
    if (status < 0) /* an error stops the handle and is cleared by reading it */
        (void)uv_poll_start(p, UV_READABLE, on_readable);
    for (int i = 0; i < AGX_FIREWALL_NEWS_TURN; i++) {
        ssize_t n = recv(l->fd, &in, sizeof(in), MSG_DONTWAIT);

        if (n < 0 && errno == ENOBUFS) {
            w->table_news = w->route_news = w->pass_news = true;
            w->touched = w->touched_pass = false;
            gather(w);
        } else if (n <= 0) {
            return;
        } else {
            on_bytes(l, &in.head, (size_t)n);
        }
    }
}

static void on_closed(uv_handle_t *h)
{
    struct agx_firewall_watch *w;

    if (h->type == UV_TIMER) {
        w = h->data;
    } else {
        struct listener *l = h->data;

        (void)close(l->fd);
        w = l->watch;
    }
    if (--w->n_open == 0)
        free(w);
}

static int firewall_watch_join(struct agx_loop *loop, struct listener *l, int protocol,
                               const int groups[2], struct agx_error **err)
{
    _cleanup_close_ int fd = agx_netns_socket(
        l->watch->net_fd, AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol, err);
    struct sockaddr_nl any = { .nl_family = AF_NETLINK };
    const int room = AGX_FIREWALL_NEWS_ROOM;
    int r;

    if (fd < 0)
        return agx_error_wrap(err, fd, "listen for changes of the packet filter");
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)) < 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room)); /* as much as the kernel
                                                                           * permits */
    if (bind(fd, (struct sockaddr *)&any, sizeof(any)) < 0)
        return agx_error_errno(err, errno, "listen for changes of the packet filter");
    for (size_t i = 0; i < 2; i++) {
        if (groups[i] &&
            setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &groups[i], sizeof(groups[i])) < 0)
            return agx_error_errno(err, errno, "listen for changes of the packet filter");
    }
    r = uv_poll_init(agx_loop_uv(loop), &l->poll, fd);
    if (r < 0)
        return agx_uverr_set(err, r, "listen for changes of the packet filter");
    l->poll.data = l;
    l->fd = AGX_TAKE_FD(fd);
    l->watch->n_open++;
    (void)uv_poll_start(&l->poll, UV_READABLE, on_readable);
    uv_unref((uv_handle_t *)&l->poll);
    return 0;
}

struct agx_firewall_watch *agx_firewall_watch_close(struct agx_firewall_watch *w)
{
    if (!w)
        return NULL;
    for (int i = 0; i < SOCKETS; i++) {
        if (w->sockets[i].fd >= 0)
            uv_close((uv_handle_t *)&w->sockets[i].poll, on_closed);
    }
    uv_close((uv_handle_t *)&w->gather, on_closed);
    return NULL;
}

int agx_firewall_watch_open(struct agx_loop *l, const struct agx_firewall_watch_config *config,
                            struct agx_firewall_watch **ret_watch, struct agx_error **err)
{
    static const int rules[2] = { NFNLGRP_NFTABLES };
    static const int routes[2] = { RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV6_ROUTE };
    struct agx_firewall_watch *w = agx_new(struct agx_firewall_watch);
    int r;

    w->ops = config->ops;
    w->user = config->user;
    w->net_fd = config->net_fd;
    (void)snprintf(w->table, sizeof(w->table), "%s", config->table);
    (void)snprintf(w->thread, sizeof(w->thread), "%s", config->thread);
    (void)uv_timer_init(agx_loop_uv(l), &w->gather);
    w->gather.data = w;
    w->n_open = 1;
    for (int i = 0; i < SOCKETS; i++)
        w->sockets[i] = (struct listener){ .watch = w, .fd = -1 };
    r = firewall_watch_join(l, &w->sockets[RULES], NETLINK_NETFILTER, rules, err);
    if (r == 0)
        r = firewall_watch_join(l, &w->sockets[ROUTES], NETLINK_ROUTE, routes, err);
    if (r < 0) {
        agx_firewall_watch_close(w);
        return r;
    }
    *ret_watch = w;
    return 0;
}
