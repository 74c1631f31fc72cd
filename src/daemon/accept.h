/*
 * accept.h: a create's way to its unit: the spec is checked, then the id, the backend, the limits.
 *
 * A spec with mounts or copies is checked on a thread: looking at a path may hang for as long as
 * the file system under it does. Then only creates that name such paths wait.
 */
#ifndef AGX_DAEMON_ACCEPT_H
#define AGX_DAEMON_ACCEPT_H

#include "daemon/engine.h"

/* The checks behind that of the spec. Takes the spec's contents. */
void agx_accept_admit(struct agx_engine *e, uid_t uid, const char *id, struct agx_spec *take_spec,
                      agx_answer_fn answer, void *user);

/* The engine is closing: creates whose paths are being looked at are refused without waiting for
 * the threads, which may hang. */
void agx_accept_close(struct agx_engine *e);

#endif
