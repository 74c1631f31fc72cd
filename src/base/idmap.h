/*
 * idmap.h: maps the ids of a sandbox of an ordinary user's daemon to the ids that the daemon sees.
 *
 * The daemon runs in a user namespace in which id 0 is its user and 1..AGX_IDMAP_IDS are the user's
 * subordinate ids. A sandbox has these ids in the same order, with one exception: the user's own
 * number maps to the user, so that the user's files belong to the same user inside.
 *
 *     on the host   100000 ... 100999   1000   101000 ...    (user 1000, ids from 100000 on)
 *     daemon             1 ...   1000      0     1001 ...
 *     sandbox            0 ...    999   1000     1001 ...
 */
#ifndef AGX_BASE_IDMAP_H
#define AGX_BASE_IDMAP_H

#include "base/macros.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    AGX_IDMAP_IDS = 65536,
    AGX_IDMAP_TEXT = 96, /* three lines of three numbers */
};

/* The daemon's user and group ids on the host; not `on`: the daemon is root. */
struct agx_idmap {
    bool on;
    uint32_t uid, gid;
};

/* The daemon's id for the sandbox's `id`, with `own` the daemon's user on the host. An id that the
 * sandbox does not have maps to nobody's. */
uint32_t agx_idmap_outer(uint32_t own, uint32_t id);

/* The map of a sandbox, for /proc/PID/uid_map and gid_map. Returns the length without NUL. */
size_t agx_idmap_lines(uint32_t own, char ret[AGX_IDMAP_TEXT]);

#endif
