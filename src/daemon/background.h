/*
 * background.h: a program that goes into the background once it is ready, so that whoever started
 * it waits no longer than that and learns whether it worked.
 *
 *     agx_background_start(&bg, err);     the starter waits in here and exits; we are its child
 *     ... what may fail: exit() with a message on stderr, and the starter exits like that
 *     agx_background_ready(&bg, err);     the starter exits with 0; stderr is gone from here on
 *
 * Before the process has threads.
 */
#ifndef AGX_DAEMON_BACKGROUND_H
#define AGX_DAEMON_BACKGROUND_H

#include "base/error.h"

struct agx_background {
    int fd; /* to the one who waits; -1: nobody does */
};
#define AGX_BACKGROUND_INIT                                                                        \
    {                                                                                              \
        .fd = -1                                                                                   \
    }

int agx_background_start(struct agx_background *bg, struct agx_error **err) AGX_MUST_CHECK;

/* Nothing when it was not started. */
int agx_background_ready(struct agx_background *bg, struct agx_error **err) AGX_MUST_CHECK;

#endif
