/* initsock.c: see initsock.h. */
#include "backend/native/initsock.h"

#include "codec/initproto_plan.h"

#include <sys/socket.h>

#include "base/banned.h"

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
