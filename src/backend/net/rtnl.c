/* rtnl.c: requests a dump and reads its messages. */
#include "backend/net/rtnl.h"

#include <stdint.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/banned.h"

/* The kernel answers a dump at once; the timeout guards against one that does not. Unless asked to,
 * it sends no more than these bytes in one message. */
enum { ANSWER_S = 5, ANSWER_BYTES = 32 << 10 };

static int rtnl_ask(int fd, int type, struct agx_error **err)
{
    struct {
        struct nlmsghdr head;
        union { /* all zero: request everything */
            struct rtmsg route;
            struct ifaddrmsg address;
            struct ifinfomsg link;
        } body;
    } q = { .head = { .nlmsg_len = sizeof(q),
                      .nlmsg_type = (uint16_t)type,
                      .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP } };

    if (send(fd, &q, sizeof(q), 0) < 0)
        return agx_error_errno(err, errno, "request the host's networks from the kernel");
    return 0;
}

const struct rtattr *agx_rtnl_find(struct rtattr *a, size_t len, unsigned short type)
{
    for (; RTA_OK(a, len); a = RTA_NEXT(a, len)) {
        if (a->rta_type == type)
            return a;
    }
    return NULL;
}

/* Reads one message of the kernel's; 1 when it was the last. */
static int take_answer(int fd, agx_rtnl_fn each, void *user, struct agx_error **err)
{
    union {
        struct nlmsghdr head;
        uint8_t bytes[ANSWER_BYTES];
    } in;
    ssize_t got = recv(fd, &in, sizeof(in), 0);
    size_t left = (size_t)got;
    int r = 0;

    if (got < 0)
        return agx_error_errno(err, errno, "read the host's networks");
    for (struct nlmsghdr *m = &in.head; r == 0 && NLMSG_OK(m, left); m = NLMSG_NEXT(m, left)) {
        const struct nlmsgerr *e = NLMSG_DATA(m);

        if (m->nlmsg_type == NLMSG_DONE)
            return 1;
        if (m->nlmsg_type != NLMSG_ERROR)
            r = each(user, m, err);
        else if (m->nlmsg_len >= NLMSG_LENGTH(sizeof(*e)) && e->error != 0)
            r = agx_error_errno(err, -e->error, "read the host's networks");
    }
    return r;
}

int agx_rtnl_dump(int type, agx_rtnl_fn each, void *user, struct agx_error **err)
{
    _cleanup_close_ int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    struct timeval limit = { .tv_sec = ANSWER_S };
    int r;

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) < 0)
        return agx_error_errno(err, errno, "open a netlink socket");
    r = rtnl_ask(fd, type, err);
    while (r == 0)
        r = take_answer(fd, each, user, err);
    return AGX_MIN(r, 0);
}
