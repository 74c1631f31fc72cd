/*
 * lanes.h: the two sockets of agentix-worker: one thread reads frames from both and never waits for
 * anything else; any thread may send.
 */
#ifndef AGX_WORKER_LANES_H
#define AGX_WORKER_LANES_H

#include "base/error.h"
#include "base/str.h"
#include "codec/remote_call.h"

struct agx_lanes;

struct agx_lanes_handler {
    void *user;
    /* One frame's map. 1: reading ends here; negative: so it does, with an error. */
    int (*frame)(void *user, enum agx_remote_lane lane, struct agx_str frame,
                 struct agx_error **err);
};

/* The descriptors are ours from now on. */
struct agx_lanes *agx_lanes_open(const int fds[AGX_LANE_COUNT]);
struct agx_lanes *agx_lanes_close(struct agx_lanes *l);

/*
 * Sends a whole frame, or queues it: never waits for the socket. With `wait` it first waits until
 * the queue of that lane is short. A lane that is broken swallows it: the reader will see why.
 */
void agx_lanes_send(struct agx_lanes *l, enum agx_remote_lane lane, struct agx_str frame,
                    bool wait);

/* Reads and writes until the handler wants no more (1), the server has closed a lane (0), or
 * something is broken (negative). */
int agx_lanes_run(struct agx_lanes *l, const struct agx_lanes_handler *h,
                  struct agx_error **err) AGX_MUST_CHECK;

/*
 * Without reading: writes what is queued, for at most `ms`, until `done` says that no more will
 * come and all has left. False when the time was not enough.
 */
bool agx_lanes_drain(struct agx_lanes *l, bool (*done)(void *user), void *user, uint64_t ms);

/* Nobody reads any more: what is sent is swallowed, and no thread waits. */
void agx_lanes_break(struct agx_lanes *l);

#endif
