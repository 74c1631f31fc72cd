/* initsock.c: see initsock.h. */
#include "backend/native/net/initsock.h"

#include "base/fdpass.h"
#include "base/limits_native.h"
#include "loop/child.h"

#include <sys/socket.h>
#include <sys/time.h>

#include "base/banned.h"

int agx_initsock_spawn(const char *const *argv, int *ret_fd, pid_t *ret_pid, struct agx_error **err)
{
    _cleanup_close_ int ours = -1, theirs = -1;
    const struct timeval limit = { .tv_sec = AGX_NSSET_SPAWN_MS / 1000 };
    struct agx_child_fd map = { .theirs = AGX_INITSOCK_REPORT_FD };
    const struct agx_child_params params = {
        .file = argv[0], .argv = argv, .fds = &map, .n_fds = 1, .group = AGX_CHILD_NEW_SESSION
    };
    int pair[2], r;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return agx_error_errno(err, errno, "make a pair of sockets");
    ours = pair[0];
    theirs = pair[1];
    map.ours = theirs;
    (void)setsockopt(ours, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    r = agx_child_spawn(&params, ret_pid, err);
    if (r == 0)
        *ret_fd = AGX_TAKE_FD(ours);
    return r;
}

int agx_initsock_go(int fd, struct agx_error **err)
{
    const struct agx_plan_report go = { .kind = AGX_PLAN_GO };
    uint8_t packet[AGX_PLAN_REPORT_MAX];
    size_t n = agx_plan_report_encode(&go, packet, sizeof(packet));

    if (send(fd, packet, n, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
        return 1;
    if (errno == EPIPE || errno == ECONNRESET)
        return 0;
    return agx_error_errno(err, errno, "tell agentix-init to go on");
}

int agx_initsock_hear(int fd, enum agx_plan_kind want, struct agx_fdpass *in, pid_t *ret_pid,
                      struct agx_error **err)
{
    char packet[AGX_PLAN_REPORT_MAX];
    struct agx_plan_report report;
    ssize_t n;
    int r;

    while ((n = agx_fdpass_receive(fd, packet, sizeof(packet), 0, in)) < 0 && errno == EINTR)
        continue;
    if (n == 0 || (n < 0 && errno == ECONNRESET)) /* with or without having read what we sent */
        return agx_error_set(err, AGX_INTERNAL, "agentix-init ended before it made namespaces");
    if (n < 0)
        return agx_error_errno(err, errno, "wait for agentix-init to make namespaces");
    r = agx_plan_report_decode(agx_str_bytes(packet, (size_t)n), &report, err);
    if (r < 0)
        return r;
    if (report.kind == AGX_PLAN_FAILED)
        return agx_plan_failed(&report, err);
    if (report.kind != want)
        return agx_error_set(err, AGX_INTERNAL, "agentix-init reported %d, not %d", report.kind,
                             want);
    *ret_pid = (pid_t)report.pid;
    return 0;
}
