/* runtime_internal.h: functions of a runtime for call.c. */
#ifndef AGX_CLIENT_RUNTIME_INTERNAL_H
#define AGX_CLIENT_RUNTIME_INTERNAL_H

#include "agentix/runtime.h"
#include "client/session.h"
#include "client/url.h"

struct agx_session *agx_runtime_session(const struct agx_runtime *rt);
/* Sends as much as the socket accepts now. */
void agx_runtime_flush(struct agx_runtime *rt);
/* Waits for events until the deadline at most, and dispatches once. False: it has passed. */
bool agx_runtime_pump(struct agx_runtime *rt, uint64_t deadline_ms);
/* The deadline of a timeout; UINT64_MAX for -1: never. */
uint64_t agx_runtime_deadline(int timeout_ms);

#endif
