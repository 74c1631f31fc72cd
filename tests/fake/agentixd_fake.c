/* agentixd_fake.c: the backends of the agentixd for tests and benches, including the fake one. */
#include "daemon/backends.h"
#include "tests/fake/fake.h"

#include "base/banned.h"

const struct agx_backend_kind *const agx_daemon_backends[] = {
    &agx_backend_kind_native,
    &agx_backend_kind_docker,
    &agx_backend_kind_fake,
    NULL,
};
