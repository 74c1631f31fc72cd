/*
 * subnets_host.c: the address ranges that the host's routes and addresses use.
 *
 * Routes of every table: a VPN's range counts too. Addresses are added because an interface that is
 * down has some, but no routes.
 */
#include "backend/net/subnets.h"

#include "backend/net/rtnl.h"

#include <sys/socket.h>

#include "base/banned.h"

static int subnets_host_add(struct agx_subnet_list *taken, int family, unsigned prefix,
                            const struct rtattr *a, struct agx_error **err)
{
    struct agx_subnet s = { .ipv6 = family == AF_INET6, .prefix = (uint8_t)prefix };
    size_t bytes = s.ipv6 ? 16 : 4;

    if ((family != AF_INET && family != AF_INET6) || prefix > 8 * bytes)
        return 0;
    if (prefix == 0 || !a || RTA_PAYLOAD(a) < bytes)
        return 0; /* a default route uses no range */
    memcpy(s.address, RTA_DATA(a), bytes);
    agx_subnet_mask(&s);
    return agx_subnet_list_add(taken, &s, err);
}

static int on_route(void *user, struct nlmsghdr *m, struct agx_error **err)
{
    struct rtmsg *r = NLMSG_DATA(m);

    if (m->nlmsg_type != RTM_NEWROUTE || m->nlmsg_len < NLMSG_LENGTH(sizeof(*r)))
        return 0;
    return subnets_host_add(user, r->rtm_family, r->rtm_dst_len,
                            agx_rtnl_find(RTM_RTA(r), RTM_PAYLOAD(m), RTA_DST), err);
}

static int on_address(void *user, struct nlmsghdr *m, struct agx_error **err)
{
    struct ifaddrmsg *i = NLMSG_DATA(m);

    if (m->nlmsg_type != RTM_NEWADDR || m->nlmsg_len < NLMSG_LENGTH(sizeof(*i)))
        return 0;
    return subnets_host_add(user, i->ifa_family, i->ifa_prefixlen,
                            agx_rtnl_find(IFA_RTA(i), IFA_PAYLOAD(m), IFA_ADDRESS), err);
}

int agx_subnets_host(struct agx_subnet_list *taken, struct agx_error **err)
{
    int r = agx_rtnl_dump(RTM_GETROUTE, on_route, taken, err);

    return r < 0 ? r : agx_rtnl_dump(RTM_GETADDR, on_address, taken, err);
}
