/* backends.c: the backends of agentixd. */
#include "daemon/backends.h"

#include "base/banned.h"

const struct agx_backend_kind *const agx_daemon_backends[] = {
    &agx_backend_kind_native,
    &agx_backend_kind_docker,
    NULL,
};
