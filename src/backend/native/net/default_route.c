/* default_route.c: see default_route.h. */
#include "backend/native/net/default_route.h"

#include "backend/net/rtnl.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/banned.h"

/* A root name server: on every host an address out in the Internet. */
#define FAR_AWAY "198.41.0.4"

enum { DNS_PORT = 53 };

/* The address that the host would send from; false: there is no route. Connecting a datagram socket
 * looks up the route and sends nothing. */
static bool find_source(struct in_addr *ret)
{
    _cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(DNS_PORT) };
    socklen_t len = sizeof(at);

    if (inet_pton(AF_INET, FAR_AWAY, &at.sin_addr) != 1 || fd < 0 ||
        connect(fd, (const struct sockaddr *)&at, sizeof(at)) < 0 ||
        getsockname(fd, (struct sockaddr *)&at, &len) < 0)
        return false;
    *ret = at.sin_addr;
    return ntohl(at.sin_addr.s_addr) >> 24 != IN_LOOPBACKNET;
}

struct search {
    struct in_addr source;
    unsigned index; /* interface index, when known */
    struct agx_words *out;
};

/* The host's own address, not the peer's on a point-to-point link. */
static bool parse_address(struct nlmsghdr *m, unsigned *ret_index, struct in_addr *ret)
{
    struct ifaddrmsg *i = NLMSG_DATA(m);
    const struct rtattr *a;

    if (m->nlmsg_type != RTM_NEWADDR || m->nlmsg_len < NLMSG_LENGTH(sizeof(*i)) ||
        i->ifa_family != AF_INET)
        return false;
    a = agx_rtnl_find(IFA_RTA(i), IFA_PAYLOAD(m), IFA_LOCAL);
    if (!a || RTA_PAYLOAD(a) < sizeof(*ret))
        return false;
    memcpy(ret, RTA_DATA(a), sizeof(*ret));
    *ret_index = i->ifa_index;
    return true;
}

static int find_interface(void *user, struct nlmsghdr *m, struct agx_error **err)
{
    struct search *s = user;
    struct in_addr address;
    unsigned index;

    (void)err;
    if (s->index == 0 && parse_address(m, &index, &address) && address.s_addr == s->source.s_addr)
        s->index = index;
    return 0;
}

static int add_address(void *user, struct nlmsghdr *m, struct agx_error **err)
{
    const struct search *s = user;
    char text[INET_ADDRSTRLEN];
    struct in_addr address;
    unsigned index;

    if (!parse_address(m, &index, &address) || index != s->index ||
        !inet_ntop(AF_INET, &address, text, sizeof(text)) || agx_words_has(s->out, text))
        return 0;
    return agx_words_add(s->out, agx_str_from(text), err);
}

int agx_default_route_read(struct agx_words *ret, struct agx_error **err)
{
    struct search s = { .out = ret };
    char name[IF_NAMESIZE];
    int r;

    if (!find_source(&s.source))
        return 0;
    r = agx_rtnl_dump(RTM_GETADDR, find_interface, &s, err);
    if (r < 0 || s.index == 0 || !if_indextoname(s.index, name))
        return r;
    r = agx_words_add(ret, agx_str_from(name), err);
    return r < 0 ? r : agx_rtnl_dump(RTM_GETADDR, add_address, &s, err);
}
