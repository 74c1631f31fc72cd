/*
 * links.c: rtnetlink messages, several in one datagram, and the kernel's replies.
 *
 * A request is a fixed buffer: its content is ours and short. Every message asks for a reply. The
 * first failure is the request's, and the error names the object of that message.
 */
#include "backend/native/net/links.h"

#include "backend/net/rtnl.h"
#include "base/siphash.h"
#include "base/uuid.h"

#include <arpa/inet.h>
#include <assert.h>
#include <linux/if_link.h>
#include <linux/veth.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/banned.h"

/* The kernel replies at once; the timeout guards against one that does not. */
enum { ANSWER_S = 10, REQUEST_BYTES = 1024, ANSWER_BYTES = 8192, MESSAGES_MAX = 8, PREFIX4 = 32 };

struct request {
    union {
        struct nlmsghdr align;
        char bytes[REQUEST_BYTES];
    } out;
    size_t len;
    struct nlmsghdr *last;
    unsigned n;                      /* messages */
    const char *about[MESSAGES_MAX]; /* the object of each, for its error message */
};

/* ---- building ---- */

static void *room(struct request *q, size_t n)
{
    void *at = q->out.bytes + q->len;

    assert(q->len + NLMSG_ALIGN(n) <= sizeof(q->out));
    memset(at, 0, NLMSG_ALIGN(n));
    q->len += NLMSG_ALIGN(n);
    if (q->last)
        q->last->nlmsg_len = (uint32_t)(q->out.bytes + q->len - (char *)q->last);
    return at;
}

/* Begins a message; its body follows, zeroed. */
static void *links_begin(struct request *q, int type, int flags, size_t body, const char *about)
{
    struct nlmsghdr *m;

    assert(q->n < MESSAGES_MAX);
    q->last = NULL;
    m = room(q, sizeof(*m));
    q->last = m;
    m->nlmsg_type = (uint16_t)type;
    m->nlmsg_flags = (uint16_t)(NLM_F_REQUEST | NLM_F_ACK | flags);
    q->about[q->n] = about;
    m->nlmsg_seq = ++q->n;
    return room(q, body);
}

static struct rtattr *links_add(struct request *q, int type, const void *value, size_t len)
{
    struct rtattr *a = room(q, RTA_LENGTH(len));

    a->rta_type = (unsigned short)type;
    a->rta_len = (unsigned short)RTA_LENGTH(len);
    if (len > 0)
        memcpy(RTA_DATA(a), value, len);
    return a;
}

static void add_text(struct request *q, int type, const char *text)
{
    (void)links_add(q, type, text, strlen(text) + 1);
}

static void add_u32(struct request *q, int type, uint32_t value)
{
    (void)links_add(q, type, &value, sizeof(value));
}

static struct rtattr *nsset(struct request *q, int type)
{
    return links_add(q, type, NULL, 0);
}

static void links_end(struct request *q, struct rtattr *a)
{
    a->rta_len = (unsigned short)(q->out.bytes + q->len - (char *)a);
}

bool agx_links_ipv6(void)
{
    _cleanup_close_ int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    return fd >= 0;
}

/* No automatic IPv6 address: the sandbox could not remove it. A kernel without IPv6 does not know
 * the attribute, and does not need it. */
static void add_no_ipv6(struct request *q)
{
    const uint8_t mode = IN6_ADDR_GEN_MODE_NONE;
    struct rtattr *spec, *v6;

    if (!agx_links_ipv6())
        return;
    spec = nsset(q, IFLA_AF_SPEC);
    v6 = nsset(q, AF_INET6);
    (void)links_add(q, IFLA_INET6_ADDR_GEN_MODE, &mode, sizeof(mode));
    links_end(q, v6);
    links_end(q, spec);
}

/* ---- asking ---- */

static int links_fail(const struct request *q, uint32_t seq, int fault, struct agx_error **err)
{
    const char *about = seq >= 1 && seq <= q->n ? q->about[seq - 1] : "links";

    if (fault == EEXIST)
        return agx_error_set(err, AGX_ALREADY_EXISTS, "set up %s: it is there already", about);
    if (fault == EOPNOTSUPP)
        return agx_error_set(err, AGX_FAILED_PRECONDITION,
                             "set up %s: this kernel cannot, or its module is not loaded", about);
    return agx_error_errno(err, fault, "set up %s", about);
}

/* Counts the replies in one datagram. */
static int take_answers(const struct request *q, struct nlmsghdr *m, size_t left, unsigned *count,
                        struct agx_error **err)
{
    for (; NLMSG_OK(m, left); m = NLMSG_NEXT(m, left)) {
        const struct nlmsgerr *e = NLMSG_DATA(m);

        if (m->nlmsg_type != NLMSG_ERROR || m->nlmsg_len < NLMSG_LENGTH(sizeof(*e)))
            continue;
        ++*count;
        if (e->error != 0 && !*err)
            (void)links_fail(q, m->nlmsg_seq, -e->error, err);
    }
    return 0;
}

/* The kernel continues after a message that failed: all replies are read, or they would be taken
 * for those of the next request. */
static int links_ask(int fd, const struct request *q, struct agx_error **err)
{
    union {
        struct nlmsghdr head;
        char bytes[ANSWER_BYTES];
    } in;
    struct agx_error *fault = NULL;
    unsigned count = 0;

    if (send(fd, q->out.bytes, q->len, 0) < 0)
        return agx_error_errno(err, errno, "send to rtnetlink");
    while (count < q->n) {
        ssize_t n = recv(fd, &in, sizeof(in), 0);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            agx_error_free(fault);
            return agx_error_errno(err, errno, "read rtnetlink's answer");
        }
        (void)take_answers(q, &in.head, (size_t)n, &count, &fault);
    }
    if (fault) {
        int r = -(int)fault->code;

        agx_error_propagate(err, &fault);
        return r;
    }
    return 0;
}

/* Its index, or 0. */
static uint32_t find_index(int fd, const char *name)
{
    struct request q = { .len = 0 };
    union {
        struct nlmsghdr head;
        char bytes[ANSWER_BYTES];
    } in;
    uint32_t index = 0;
    ssize_t n;

    (void)links_begin(&q, RTM_GETLINK, 0, sizeof(struct ifinfomsg), name);
    q.last->nlmsg_flags = NLM_F_REQUEST; /* the reply is the link itself */
    add_text(&q, IFLA_IFNAME, name);
    if (send(fd, q.out.bytes, q.len, 0) < 0)
        return 0;
    while ((n = recv(fd, &in, sizeof(in), 0)) < 0 && errno == EINTR)
        continue;
    if (n >= (ssize_t)NLMSG_LENGTH(sizeof(struct ifinfomsg)) && in.head.nlmsg_type == RTM_NEWLINK)
        index = (uint32_t)((const struct ifinfomsg *)NLMSG_DATA(&in.head))->ifi_index;
    return index;
}

/* ---- links ---- */

int agx_links_open(int *ret_fd, struct agx_error **err)
{
    _cleanup_close_ int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    struct timeval limit = { .tv_sec = ANSWER_S };

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) < 0)
        return agx_error_errno(err, errno, "open a netlink socket");
    *ret_fd = AGX_TAKE_FD(fd);
    return 0;
}

int agx_links_name(char ret[IF_NAMESIZE], struct agx_error **err)
{
    uint32_t number;
    int r = agx_random_bytes(&number, sizeof(number), err);

    if (r == 0)
        (void)snprintf(ret, IF_NAMESIZE, "agx%08x", number);
    return r;
}

int agx_links_veth(int fd, const char *name, int net_fd, const char *peer, struct agx_error **err)
{
    struct request q = { .len = 0 };
    struct rtattr *info, *data, *other;

    (void)links_begin(&q, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, sizeof(struct ifinfomsg), name);
    add_text(&q, IFLA_IFNAME, name);
    info = nsset(&q, IFLA_LINKINFO);
    add_text(&q, IFLA_INFO_KIND, "veth");
    data = nsset(&q, IFLA_INFO_DATA);
    other = nsset(&q, VETH_INFO_PEER);
    (void)room(&q, sizeof(struct ifinfomsg));
    add_text(&q, IFLA_IFNAME, peer);
    add_u32(&q, IFLA_NET_NS_FD, (uint32_t)net_fd);
    links_end(&q, other);
    links_end(&q, data);
    links_end(&q, info);
    return links_ask(fd, &q, err);
}

/*
 * The kernel accepts no alias for a link that is being made, but it does accept a group number.
 * This number identifies the bridge of a daemon that was killed before it set the alias.
 */
static uint32_t group_of(const char *owner)
{
    const struct agx_siphash_key key = { 0 };
    uint32_t group = (uint32_t)agx_siphash(key, agx_str_from(owner)) & INT32_MAX;

    return group == 0 ? 1 : group; /* 0 is the default of every link */
}

int agx_links_bridge(int fd, const char *name, const char *owner, struct agx_error **err)
{
    struct request q = { .len = 0 };
    struct rtattr *info;

    (void)links_begin(&q, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, sizeof(struct ifinfomsg), name);
    add_text(&q, IFLA_IFNAME, name);
    info = nsset(&q, IFLA_LINKINFO);
    add_text(&q, IFLA_INFO_KIND, "bridge");
    links_end(&q, info);
    if (owner)
        add_u32(&q, IFLA_GROUP, group_of(owner));
    return links_ask(fd, &q, err);
}

static uint32_t address_of(const struct agx_subnet *network, uint8_t number)
{
    uint32_t address;

    memcpy(&address, network->address, sizeof(address));
    return htonl(ntohl(address) + number);
}

static void add_mac(struct request *q, const struct agx_links_up *up)
{
    const uint32_t address = address_of(up->network, up->number);
    uint8_t mac[6] = { 0x02, 0x61 }; /* locally administered, unicast */

    memcpy(mac + 2, &address, sizeof(address));
    (void)links_add(q, IFLA_ADDRESS, mac, sizeof(mac));
}

static void add_address(struct request *q, uint32_t index, const struct agx_links_up *up)
{
    uint32_t address = address_of(up->network, up->number);
    uint32_t last = address | htonl((uint32_t)(UINT64_C(0xffffffff) >> up->network->prefix));
    struct ifaddrmsg *m =
        links_begin(q, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, sizeof(*m), "an address");

    m->ifa_family = AF_INET;
    m->ifa_prefixlen = up->network->prefix;
    m->ifa_index = index;
    add_u32(q, IFA_LOCAL, address);
    add_u32(q, IFA_ADDRESS, address);
    add_u32(q, IFA_BROADCAST, last);
}

static void add_default_route(struct request *q, uint32_t index, const struct agx_links_up *up)
{
    struct rtmsg *m =
        links_begin(q, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, sizeof(*m), "the default route");

    m->rtm_family = AF_INET;
    m->rtm_table = RT_TABLE_MAIN;
    m->rtm_protocol = RTPROT_BOOT;
    m->rtm_scope = RT_SCOPE_UNIVERSE;
    m->rtm_type = RTN_UNICAST;
    add_u32(q, RTA_OIF, index);
    add_u32(q, RTA_GATEWAY, address_of(up->network, up->gateway));
}

int agx_links_up(int fd, const struct agx_links_up *up, struct agx_error **err)
{
    struct request q = { .len = 0 };
    uint32_t index = find_index(fd, up->name);
    struct ifinfomsg *m;

    if (index == 0)
        return agx_error_set(err, AGX_NOT_FOUND, "there is no link '%s'", up->name);
    m = links_begin(&q, RTM_NEWLINK, 0, sizeof(*m), up->name);
    m->ifi_index = (int)index;
    add_no_ipv6(&q);
    if (up->alias)
        (void)links_add(&q, IFLA_IFALIAS, up->alias, strlen(up->alias));
    if (up->bridge)
        add_u32(&q, IFLA_MASTER, find_index(fd, up->bridge));
    if (up->steady_mac)
        add_mac(&q, up);
    m = links_begin(&q, RTM_NEWLINK, 0, sizeof(*m),
                    up->name); /* in a message of its own: else an IPv6
                                                          * address comes first */
    m->ifi_index = (int)index;
    m->ifi_flags = m->ifi_change = IFF_UP;
    if (up->network)
        add_address(&q, index, up);
    if (up->network && up->gateway)
        add_default_route(&q, index, up);
    return links_ask(fd, &q, err);
}

int agx_links_remove(int fd, const char *name, struct agx_error **err)
{
    struct request q = { .len = 0 };
    struct agx_error *fault = NULL;
    int r;

    (void)links_begin(&q, RTM_DELLINK, 0, sizeof(struct ifinfomsg), name);
    add_text(&q, IFLA_IFNAME, name);
    r = links_ask(fd, &q, &fault);
    if (r == 0 || fault->sys_errno == ENODEV) {
        agx_error_free(fault);
        return 0;
    }
    agx_error_propagate(err, &fault);
    return agx_error_wrap(err, r, "remove link '%s'", name);
}

bool agx_links_has(int fd, const char *name)
{
    return find_index(fd, name) != 0;
}

struct search {
    const char *alias;
    struct agx_words *out;
};

static bool is_meant(const struct search *s, const struct rtattr *alias, const struct rtattr *group)
{
    uint32_t number = 0;

    if (alias)
        return strncmp(RTA_DATA(alias), s->alias, RTA_PAYLOAD(alias)) == 0;
    if (group && RTA_PAYLOAD(group) >= sizeof(number))
        memcpy(&number, RTA_DATA(group), sizeof(number));
    return number == group_of(s->alias);
}

static int on_link(void *user, struct nlmsghdr *m, struct agx_error **err)
{
    const struct search *s = user;
    struct ifinfomsg *i = NLMSG_DATA(m);
    const struct rtattr *name, *alias, *group;

    if (m->nlmsg_type != RTM_NEWLINK || m->nlmsg_len < NLMSG_LENGTH(sizeof(*i)))
        return 0;
    alias = agx_rtnl_find(IFLA_RTA(i), IFLA_PAYLOAD(m), IFLA_IFALIAS);
    name = agx_rtnl_find(IFLA_RTA(i), IFLA_PAYLOAD(m), IFLA_IFNAME);
    group = agx_rtnl_find(IFLA_RTA(i), IFLA_PAYLOAD(m), IFLA_GROUP);
    if (!name || !is_meant(s, alias, group))
        return 0;
    return agx_words_add(s->out, agx_str_from(RTA_DATA(name)), err);
}

int agx_links_find(const char *alias, struct agx_words *out, struct agx_error **err)
{
    struct search s = { alias, out };

    return agx_rtnl_dump(RTM_GETLINK, on_link, &s, err);
}

void agx_links_address(const struct agx_subnet *network, uint8_t number, char ret[16])
{
    uint32_t address = address_of(network, number);

    (void)inet_ntop(AF_INET, &address, ret, 16);
}
