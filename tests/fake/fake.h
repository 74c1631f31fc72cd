/*
 * fake.h: a backend without sandboxes, for tests and benches: `--backend fake:DIR` of the agentixd
 * that is built here (agentixd_fake.c).
 *
 * Its world is a separate process, agentix-fakeworld, with a socket in DIR. The backend starts one
 * if none runs there; it outlives the process that started it. It keeps a journal of every effect,
 * and simulates on demand what real backends do: waits, failures, deaths. docs/design/backends.md
 * describes its script.
 */
#ifndef AGX_TESTS_FAKE_FAKE_H
#define AGX_TESTS_FAKE_FAKE_H

#include "backend/target.h"

struct agx_fake_config {
    const char *dir;     /* of the world; it is made with mode 0700 if it does not exist */
    const char *program; /* agentix-fakeworld; NULL: found beside this program */
    uint64_t ping_ms;    /* a world that does not answer for so long counts as dead */
    uint64_t retry_first_ms, retry_max_ms; /* between attempts to connect to it again */
};
#define AGX_FAKE_CONFIG_INIT                                                                       \
    {                                                                                              \
        .ping_ms = 30000, .retry_first_ms = 20, .retry_max_ms = 2000                               \
    }

/* Its target is the directory. */
extern const struct agx_backend_kind agx_backend_kind_fake;

/* Returns at once; calls made before the world is reached wait for it. */
int agx_backend_fake_open(struct agx_loop *l, const struct agx_fake_config *c,
                          struct agx_backend **ret_backend, struct agx_error **err) AGX_MUST_CHECK;

#endif
