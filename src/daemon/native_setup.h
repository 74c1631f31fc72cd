/*
 * native_setup.h: what the native backend is opened with, from our configuration.
 *
 * Everything that can be wrong with it is found before anything is touched.
 */
#ifndef AGX_DAEMON_NATIVE_SETUP_H
#define AGX_DAEMON_NATIVE_SETUP_H

#include "backend/native/native.h"
#include "daemon/config.h"

struct agx_native_setup {
    struct agx_native_config
        config;       /* but for what subsystems.c adds: places, images, what all backends
                                        have */
    const char *init; /* what the configuration says of it; borrowed */
    char *init_path, *unpack_path, *forward_path;
    bool used;     /* the configuration chose this backend; else all is empty */
    bool rootless; /* by an ordinary user: backend/native/rootless.h */
};

/* -AGX_INVALID_ARGUMENT: the choice has a target, or the pool is none. */
int agx_native_setup_init(struct agx_native_setup *s, const struct agx_config *c,
                          struct agx_error **err) AGX_MUST_CHECK;
/* Accepts NULL. */
void agx_native_setup_done(struct agx_native_setup *s);

/* What the machine must have: our programs and, for root, the right to make rules.
 * -AGX_FAILED_PRECONDITION, with what helps. */
int agx_native_setup_complete(struct agx_native_setup *s, struct agx_error **err) AGX_MUST_CHECK;
/* Hands on `r`, of whatever keeps the daemon from starting; where this backend was chosen, or taken
 * because none was, the error then says that it cannot run here and what can. */
int agx_native_setup_wrap(const struct agx_native_setup *s, int r, struct agx_error **err);

#endif
