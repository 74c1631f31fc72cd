/* report.c: reports to the daemon, one packet each. */
#include "init/report.h"

#include "base/fdpass.h"
#include "base/macros.h"

#include <sys/socket.h>

#include "base/banned.h"

enum { EXIT_FAILED = 125 }; /* as an engine reports that it could not even begin */

bool agx_report_send(int fd, const struct agx_plan_report *r, const int *fds, size_t n_fds)
{
    uint8_t packet[AGX_PLAN_REPORT_MAX];
    size_t n = agx_plan_report_encode(r, packet, sizeof(packet));

    return agx_fdpass_send(fd, packet, n, fds, n_fds, 0) >= 0;
}

_Noreturn void agx_report_fail(int fd, enum agx_plan_stage stage, const char *what)
{
    struct agx_plan_report r = {
        .kind = AGX_PLAN_FAILED,
        .stage = stage,
        .sys_errno = (uint32_t)errno,
        .what = agx_str_from(what ? what : ""),
    };

    r.what.len = AGX_MIN(r.what.len, (size_t)AGX_PLAN_WHAT_MAX);
    (void)agx_report_send(fd, &r, NULL, 0);
    _exit(EXIT_FAILED);
}

void agx_report_await_go(int fd)
{
    uint8_t packet[AGX_PLAN_REPORT_MAX];
    struct agx_plan_report r;
    ssize_t n;

    do {
        n = recv(fd, packet, sizeof(packet), 0);
        if (n == 0 || (n < 0 && errno != EINTR))
            _exit(EXIT_FAILED);
    } while (n <= 0 || agx_plan_report_decode(agx_str_bytes(packet, (size_t)n), &r, NULL) < 0 ||
             r.kind != AGX_PLAN_GO);
}
