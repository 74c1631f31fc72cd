/* probe_net.c: sockets. Unless a comment says otherwise, the argument is the ADDRESS:PORT of a
 * server.
 */
#include "tests/security/probe.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

static bool raw(const char *unused)
{
    (void)unused;
    return probe_say(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP) >= 0, "raw socket");
}

static bool packet(const char *unused)
{
    (void)unused;
    return probe_say(socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL)) >= 0, "packet socket");
}

/* To the machine that this one may be a guest of: no network namespace holds it. */
static bool vsock(const char *unused)
{
    (void)unused;
    return probe_say(socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0) >= 0, "vsock");
}

/* Turning one's own interfaces is the beginning of pretending to be another. */
static bool sets_interface(const char *unused)
{
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct ifreq q = { .ifr_name = "lo" };

    (void)unused;
    if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &q) < 0)
        return probe_say(false, "SIOCGIFFLAGS");
    return probe_say(ioctl(fd, SIOCSIFFLAGS, &q) == 0, "SIOCSIFFLAGS");
}

static bool audits(const char *unused)
{
    struct {
        struct nlmsghdr head;
        char text[8];
    } m = { .head = { .nlmsg_len = sizeof(m),
                      .nlmsg_type = 1100 /* AUDIT_USER */,
                      .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK } };
    struct {
        struct nlmsghdr head;
        struct nlmsgerr error;
        char rest[256];
    } answer = { 0 };
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_AUDIT);

    (void)unused;
    if (fd < 0 || send(fd, &m, sizeof(m), 0) < 0 || recv(fd, &answer, sizeof(answer), 0) < 0)
        return probe_say(false, "audit socket");
    errno = -answer.error.error;
    return probe_say(answer.error.error == 0, "a message to the audit log");
}

static bool connects(const char *where)
{
    struct sockaddr_in a = { .sin_family = AF_INET };
    struct timeval wait = { .tv_sec = 3 };
    char address[64];
    const char *colon = strrchr(where, ':');
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (!colon || (size_t)(colon - where) >= sizeof(address))
        return probe_say(false, "the argument");
    memcpy(address, where, (size_t)(colon - where));
    address[colon - where] = '\0';
    a.sin_port = htons((uint16_t)atoi(colon + 1));
    if (inet_pton(AF_INET, address, &a.sin_addr) != 1)
        return probe_say(false, "the argument");
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
    return probe_say(connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0, where);
}

/* A socket of the host that stands in no file system: its name is the argument. */
static bool connects_abstract(const char *name)
{
    struct sockaddr_un a = { .sun_family = AF_UNIX };
    size_t len = strlen(name);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (len + 1 > sizeof(a.sun_path))
        return probe_say(false, "the argument");
    memcpy(a.sun_path + 1, name, len);
    return probe_say(connect(fd, (struct sockaddr *)&a,
                             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len)) == 0,
                     "an abstract socket of the host");
}

const struct probe probes_net[] = {
    { "raw-socket", raw },
    { "packet-socket", packet },
    { "vsock", vsock },
    { "interface", sets_interface },
    { "audit", audits },
    { "connect", connects },
    { "abstract-socket", connects_abstract },
    { NULL, NULL },
};
