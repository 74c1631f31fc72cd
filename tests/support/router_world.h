/*
 * router_world.h: a router whose clients and worker are buffers, and functions to drive it. Each
 * test ends with router_world_done(); under ASan memory that the router did not free is a finding.
 */
#ifndef AGX_TESTS_ROUTER_WORLD_H
#define AGX_TESTS_ROUTER_WORLD_H

#include "codec/frame.h"
#include "codec/mp_fields.h"
#include "runtime/router.h"
#include "tests/support/test.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUTER_EVENTS = 512 };

struct router_event {
    void *conn;
    enum agx_remote_event ev;
    char *payload; /* owned */
    size_t len;
};

struct router_world {
    struct agx_router *rt;
    struct agx_buf lanes[AGX_LANE_COUNT];
    size_t queued; /* bytes that every connection reports as queued */
    struct router_event seen[ROUTER_EVENTS];
    size_t n_seen;
};

extern int conn_one, conn_two; /* their addresses identify connections */

void router_world_init(struct router_world *w, const struct agx_router_config *config);
void router_world_done(struct router_world *w);
struct agx_client *router_join(struct router_world *w, bool proto1, void *conn);
bool router_rejoin(struct router_world *w, const char *session, void *conn,
                   struct agx_client **ret);
/* Sends an event whose payload is {call_id, key: number, ...}, keys up to the NULL. */
void router_say(struct router_world *w, struct agx_client *c, const char *event,
                const char *call_id, const char *key1, uint64_t value1, const char *key2,
                uint64_t value2);
/* Sends a request by reference. */
void router_call(struct router_world *w, struct agx_client *c, const char *event,
                 const char *call_id, uint64_t timeout_ms);
/* Sends the acknowledgement or resume of one call. */
void router_say_calls(struct router_world *w, struct agx_client *c, const char *event,
                      const char *call_id, uint64_t seq);
/* Sends a frame {type, id[, key: number][, key: number]} of the worker. */
int router_frame2(struct router_world *w, const char *type, uint64_t id, const char *key1,
                  uint64_t value1, const char *key2, uint64_t value2);
int router_frame(struct router_world *w, const char *type, uint64_t id, const char *key,
                 uint64_t value);
/* The number of frames of that type in the lane; the last one's field `key` is *ret. */
size_t router_frames(struct router_world *w, enum agx_remote_lane lane, const char *type,
                     const char *key, uint64_t *ret);
const struct router_event *router_last(struct router_world *w);
/* A field of the last event. */
struct agx_mp_field router_field(struct router_world *w, const char *key);
/* Asserts that the last event is this error for this call. */
void router_assert_error(struct router_world *w, enum agx_remote_event ev, const char *call_id,
                         const char *type);

#endif
