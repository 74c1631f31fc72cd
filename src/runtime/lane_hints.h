/*
 * lane_hints.h: the lane that the worker prefers for a callable, in a cache of fixed size. A
 * missing or evicted entry costs a thread switch in the worker, nothing else.
 */
#ifndef AGX_RUNTIME_LANE_HINTS_H
#define AGX_RUNTIME_LANE_HINTS_H

#include "base/siphash.h"
#include "base/str.h"
#include "codec/remote_call.h"

struct agx_lane_hints;

struct agx_lane_hints *agx_lane_hints_new(struct agx_siphash_key seed);
struct agx_lane_hints *agx_lane_hints_free(struct agx_lane_hints *h);

/* The lane last learned for these bytes, else the loop lane. */
enum agx_remote_lane agx_lane_hints_get(const struct agx_lane_hints *h, struct agx_str callable);
void agx_lane_hints_learn(struct agx_lane_hints *h, struct agx_str callable,
                          enum agx_remote_lane lane);

#endif
