/* sockowner.c: queries inet_diag for one socket by addresses and ports; see sock_diag(7). */
#include "runtime/sockowner.h"

#include "base/fd.h"

#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/banned.h"

/* The kernel's id for users without an id in a user namespace. */
enum { OVERFLOW_UID = 65534 };

/* An address and a port in inet_diag's format. */
struct end {
    uint8_t family;
    uint16_t port; /* network byte order */
    uint32_t address[4];
};

struct question {
    struct nlmsghdr head;
    struct inet_diag_req_v2 body;
};

union answer {
    struct nlmsghdr head;
    uint8_t bytes[4096];
};

int agx_sockowner_open(int *ret_fd, struct agx_error **err)
{
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);

    if (fd < 0)
        return agx_error_errno(err, errno, "open a netlink socket for sock_diag");
    *ret_fd = fd;
    return 0;
}

/* IPv4 mapped into IPv6 is IPv4 to the kernel's tables. */
static bool read_end(const struct sockaddr_storage *sa, struct end *ret)
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)sa;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)sa;

    *ret = (struct end){ .family = AF_INET };
    if (sa->ss_family == AF_INET) {
        ret->port = v4->sin_port;
        ret->address[0] = v4->sin_addr.s_addr;
    } else if (sa->ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
        ret->port = v6->sin6_port;
        ret->address[0] = v6->sin6_addr.s6_addr32[3];
    } else if (sa->ss_family == AF_INET6) {
        ret->family = AF_INET6;
        ret->port = v6->sin6_port;
        memcpy(ret->address, &v6->sin6_addr, sizeof(ret->address));
    } else {
        return false;
    }
    return true;
}

static int read_ends(int fd, struct end *ret_ours, struct end *ret_theirs, struct agx_error **err)
{
    struct sockaddr_storage ours = { 0 }, theirs = { 0 };
    socklen_t ours_len = sizeof(ours), theirs_len = sizeof(theirs);

    if (getsockname(fd, (struct sockaddr *)&ours, &ours_len) < 0)
        return agx_error_errno(err, errno, "read our address of a connection");
    if (getpeername(fd, (struct sockaddr *)&theirs, &theirs_len) < 0 && errno == ENOTCONN)
        return agx_error_set(err, AGX_NOT_FOUND, "the other end is closed");
    if (!read_end(&ours, ret_ours) || !read_end(&theirs, ret_theirs) ||
        ret_ours->family != ret_theirs->family)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "the connection is not TCP");
    return 0;
}

/* Queries the peer's socket, so the addresses are from the peer's point of view. */
static int sockowner_ask(int ask_fd, const struct end *ours, const struct end *theirs,
                         struct agx_error **err)
{
    struct question q = {
        .head = { .nlmsg_len = sizeof(q),
                  .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                  .nlmsg_flags = NLM_F_REQUEST },
        .body = { .sdiag_family = theirs->family,
                  .sdiag_protocol = IPPROTO_TCP,
                  .idiag_states = UINT32_MAX,
                  .id = { .idiag_sport = theirs->port,
                          .idiag_dport = ours->port,
                          .idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE } } },
    };
    struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };

    memcpy(q.body.id.idiag_src, theirs->address, sizeof(theirs->address));
    memcpy(q.body.id.idiag_dst, ours->address, sizeof(ours->address));
    if (sendto(ask_fd, &q, sizeof(q), 0, (struct sockaddr *)&kernel, sizeof(kernel)) < 0)
        return agx_error_errno(err, errno, "ask the kernel whose socket it is");
    return 0;
}

/* Any process could send to our socket; only the kernel has port id 0. */
static int take_answer(int ask_fd, union answer *in, struct agx_error **err)
{
    struct sockaddr_nl from = { 0 };
    socklen_t from_len = sizeof(from);
    ssize_t n;

    do {
        from.nl_pid = 0;
        n = recvfrom(ask_fd, in, sizeof(*in), 0, (struct sockaddr *)&from, &from_len);
    } while ((n < 0 && errno == EINTR) || (n >= 0 && from.nl_pid != 0));
    if (n < 0)
        return agx_error_errno(err, errno, "hear from the kernel whose socket it is");
    if (!NLMSG_OK(&in->head, (size_t)n))
        return agx_error_set(err, AGX_INTERNAL, "an answer of sock_diag is cut");
    return 0;
}

/*
 * If there is no such connection, the kernel returns a listening socket of that address, whose peer
 * port is 0. For a socket that its process has closed it no longer knows the user and returns 0, as
 * for root: such a socket has no inode.
 */
static bool is_open_end(const struct inet_diag_msg *m, const struct end *ours,
                        const struct end *theirs)
{
    return m->idiag_inode != 0 && m->id.idiag_sport == theirs->port &&
           m->id.idiag_dport == ours->port;
}

/* Are we in the initial user namespace, or in one with an identity mapping of all ids? */
static bool numbers_everybody(void)
{
    _cleanup_buf_ struct agx_buf map = AGX_BUF_INIT(4096);
    struct agx_str rest, word;
    uint64_t n[3];
    size_t found = 0;

    if (agx_fd_read_file(AT_FDCWD, "/proc/self/uid_map", &map, NULL) < 0)
        return false;
    rest = agx_buf_peek(&map);
    rest.len = agx_str_find(rest, '\n');
    while (found < AGX_ARRAY_LEN(n) && agx_str_split(&rest, ' ', &word)) {
        if (word.len > 0 && !agx_parse_u64(word, UINT32_MAX, &n[found++]))
            return false;
    }
    return found == AGX_ARRAY_LEN(n) && n[0] == 0 && n[1] == 0 && n[2] == UINT32_MAX;
}

int agx_sockowner_find(int ask_fd, int fd, uid_t *ret_uid, struct agx_error **err)
{
    struct end ours = { 0 }, theirs = { 0 };
    union answer in = { .bytes = { 0 } };
    const void *body = NLMSG_DATA(&in.head);
    const struct nlmsgerr *e = body;
    const struct inet_diag_msg *m = body;
    int r = read_ends(fd, &ours, &theirs, err);

    if (r == 0)
        r = sockowner_ask(ask_fd, &ours, &theirs, err);
    if (r == 0)
        r = take_answer(ask_fd, &in, err);
    if (r < 0)
        return r;
    if (in.head.nlmsg_type == NLMSG_ERROR && in.head.nlmsg_len >= NLMSG_LENGTH(sizeof(*e)) &&
        e->error != -ENOENT)
        return agx_error_errno(err, -e->error, "ask the kernel whose socket it is");
    if (in.head.nlmsg_type != SOCK_DIAG_BY_FAMILY || in.head.nlmsg_len < NLMSG_LENGTH(sizeof(*m)) ||
        !is_open_end(m, &ours, &theirs))
        return agx_error_set(err, AGX_NOT_FOUND, "the other end is not an open socket here");
    if (m->idiag_uid == OVERFLOW_UID && !numbers_everybody())
        return agx_error_set(err, AGX_NOT_FOUND, "the user has no id in our user namespace");
    *ret_uid = m->idiag_uid;
    return 0;
}
