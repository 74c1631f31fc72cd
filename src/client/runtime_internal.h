/* runtime_internal.h: what call.c needs of a runtime. */
#ifndef AGX_CLIENT_RUNTIME_INTERNAL_H
#define AGX_CLIENT_RUNTIME_INTERNAL_H

#include "agentix/runtime.h"
#include "client/session.h"
#include "client/url.h"

struct agx_session *agx_runtime_session(const struct agx_runtime *rt);
/* Sends what the socket takes now. */
void agx_runtime_flush(struct agx_runtime *rt);
/* Waits for one turn of events, at most to the deadline, and dispatches. False: it has passed. */
bool agx_runtime_pump(struct agx_runtime *rt, uint64_t deadline_ms);
/* When a wait of so long is over; UINT64_MAX for -1: never. */
uint64_t agx_runtime_deadline(int timeout_ms);

#endif
