/*
 * accept.h: what a create passes before it gets a unit: checks of spec, id, backend and limits.
 *
 * A spec with mounts or copies is checked on a thread, because a lookup on a hung file system may
 * block for as long as the file system does. Only creates that name such paths wait then.
 */
#ifndef AGX_DAEMON_MANAGER_ACCEPT_H
#define AGX_DAEMON_MANAGER_ACCEPT_H

#include "daemon/manager/manager.h"

/* The checks that follow the spec's own. Takes the spec's contents. */
void agx_accept_admit(struct agx_manager *e, uid_t uid, const char *id, struct agx_spec *take_spec,
                      agx_answer_fn answer, void *user);

/* For the manager's close: refuses creates whose paths are still being checked. Does not wait for
 * the threads, which may hang. */
void agx_accept_close(struct agx_manager *e);

#endif
