/* firewall_host.c: routes by rtnetlink, name servers from the files that engines read too. */
#include "backend/net/firewall_host.h"

#include "backend/net/rtnl.h"
#include "base/fd.h"
#include "base/limits_backend.h"

#include <fcntl.h>
#include <net/if.h>
#include <sys/socket.h>

#include "base/banned.h"

/* Where the first names only systemd-resolved, engines use the second. */
static const char *const resolv_conf[] = { "/etc/resolv.conf", "/run/systemd/resolve/resolv.conf" };

static int add_uplink(struct agx_firewall_host *h, unsigned index, struct agx_error **err)
{
    char name[IF_NAMESIZE];

    if (!if_indextoname(index, name) || agx_words_has(&h->uplinks, name))
        return 0; /* it disappeared meanwhile */
    return agx_words_add(&h->uplinks, agx_str_from(name), err);
}

/* A multipath route. */
static int add_ways(struct agx_firewall_host *h, const struct rtattr *a, struct agx_error **err)
{
    const struct rtnexthop *hop = RTA_DATA(a);
    int left = (int)RTA_PAYLOAD(a), r = 0;

    while (r == 0 && RTNH_OK(hop, left)) {
        r = add_uplink(h, (unsigned)hop->rtnh_ifindex, err);
        left -= RTNH_ALIGN(hop->rtnh_len);
        hop = RTNH_NEXT(hop);
    }
    return r;
}

static int on_route(void *user, struct nlmsghdr *m, struct agx_error **err)
{
    struct rtmsg *r = NLMSG_DATA(m);
    const struct rtattr *ways, *out;
    bool far;

    if (m->nlmsg_type != RTM_NEWROUTE || m->nlmsg_len < NLMSG_LENGTH(sizeof(*r)) ||
        r->rtm_type != RTN_UNICAST)
        return 0;
    ways = agx_rtnl_find(RTM_RTA(r), RTM_PAYLOAD(m), RTA_MULTIPATH);
    if (ways)
        return add_ways(user, ways, err);
    out = agx_rtnl_find(RTM_RTA(r), RTM_PAYLOAD(m), RTA_OIF);
    far = r->rtm_dst_len == 0 || agx_rtnl_find(RTM_RTA(r), RTM_PAYLOAD(m), RTA_GATEWAY) ||
          agx_rtnl_find(RTM_RTA(r), RTM_PAYLOAD(m), RTA_VIA);
    if (!far || !out || RTA_PAYLOAD(out) < sizeof(uint32_t))
        return 0;
    return add_uplink(user, *(const uint32_t *)RTA_DATA(out), err);
}

static bool is_loopback(const struct agx_subnet *s)
{
    static const struct agx_subnet v4 = { false, 8, { 127 } }, v6 = { true, 128, { [15] = 1 } };

    return agx_subnet_contains(&v4, s) || agx_subnet_contains(&v6, s);
}

static bool has(const struct agx_subnet_list *list, const struct agx_subnet *s)
{
    for (size_t i = 0; i < list->len; i++) {
        if (agx_subnet_contains(&list->items[i], s))
            return true;
    }
    return false;
}

int agx_firewall_host_resolvers(struct agx_firewall_host *h, struct agx_str text,
                                struct agx_error **err)
{
    struct agx_str line;

    while (agx_str_split(&text, '\n', &line)) {
        struct agx_str key = AGX_STR("nameserver");
        struct agx_subnet s;
        int r;

        if (!agx_str_starts(line, key))
            continue;
        if (agx_subnet_parse(agx_str_trim(agx_str_skip(line, key.len)), &s, NULL) < 0 ||
            s.prefix != (s.ipv6 ? 128 : 32) || is_loopback(&s) || has(&h->resolvers, &s))
            continue;
        r = agx_subnet_list_add(&h->resolvers, &s, err);
        if (r < 0)
            return r;
    }
    return 0;
}

int agx_firewall_host_read(struct agx_firewall_host *h, struct agx_error **err)
{
    int r = agx_rtnl_dump(RTM_GETROUTE, on_route, h, err);

    for (size_t i = 0; r == 0 && i < AGX_ARRAY_LEN(resolv_conf); i++) {
        _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(AGX_FIREWALL_RESOLV_MAX);

        if (agx_fd_read_file(AT_FDCWD, resolv_conf[i], &text, NULL) >= 0)
            r = agx_firewall_host_resolvers(h, agx_buf_peek(&text), err);
    }
    return r;
}

void agx_firewall_host_done(struct agx_firewall_host *h)
{
    agx_words_done(&h->uplinks);
    agx_subnet_list_done(&h->resolvers);
}
