/*
 * background.h: puts a program into the background once it is ready. The process that started it
 * waits until then and learns whether the start worked.
 *
 *     agx_background_start(&bg, err);     the starter waits here and exits; we are its child
 *     ... steps that may fail: exit() with a message on stderr; the starter exits the same way
 *     agx_background_ready(&bg, err);     the starter exits with 0; stderr is closed from here on
 *
 * Call both before the process has threads.
 */
#ifndef AGX_DAEMON_BACKGROUND_H
#define AGX_DAEMON_BACKGROUND_H

#include "base/error.h"

struct agx_background {
    int fd; /* to the waiting starter; -1: none */
};
#define AGX_BACKGROUND_INIT                                                                        \
    {                                                                                              \
        .fd = -1                                                                                   \
    }

int agx_background_start(struct agx_background *bg, struct agx_error **err) AGX_MUST_CHECK;

/* No effect when it was not started. */
int agx_background_ready(struct agx_background *bg, struct agx_error **err) AGX_MUST_CHECK;

#endif
