/*
 * idmap.h: ids of a sandbox that an ordinary user's daemon made, and what they are to that daemon.
 *
 * The daemon lives in a user namespace in which id 0 is its user and 1..AGX_IDMAP_IDS are ids that
 * were set apart for him. A sandbox has these, in their order, with one exception: the user's own
 * number is himself inside, so that his files are his there too.
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

/* The daemon's user and his group, as the host counts; not `on`: the daemon is root. */
struct agx_idmap {
    bool on;
    uint32_t uid, gid;
};

/* What the sandbox's `id` is to the daemon whose user is `own` on the host. One that the sandbox
 * does not have is nobody's. */
uint32_t agx_idmap_outer(uint32_t own, uint32_t id);

/* The map of a sandbox, for /proc/PID/uid_map and gid_map. The length, without the NUL. */
size_t agx_idmap_lines(uint32_t own, char ret[AGX_IDMAP_TEXT]);

#endif
