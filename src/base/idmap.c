/* idmap.c: see idmap.h. */
#include "base/idmap.h"

#include <stdio.h>

#include "base/banned.h"

enum { NOBODY = 65534 };

uint32_t agx_idmap_outer(uint32_t own, uint32_t id)
{
    if (id == own)
        return 0;
    if (id >= AGX_IDMAP_IDS)
        id = NOBODY;
    /* Ids below the user's own number are shifted up by one, into the gap at 0. */
    return id < own ? id + 1 : id;
}

size_t agx_idmap_lines(uint32_t own, char ret[AGX_IDMAP_TEXT])
{
    int n = 0;

    if (own >= AGX_IDMAP_IDS)
        return (size_t)snprintf(ret, AGX_IDMAP_TEXT, "0 1 %d\n", AGX_IDMAP_IDS);
    if (own > 0)
        n = snprintf(ret, AGX_IDMAP_TEXT, "0 1 %u\n", own);
    n += snprintf(ret + n, AGX_IDMAP_TEXT - (size_t)n, "%u 0 1\n", own);
    if (own + 1 < AGX_IDMAP_IDS)
        n += snprintf(ret + n, AGX_IDMAP_TEXT - (size_t)n, "%u %u %u\n", own + 1, own + 1,
                      AGX_IDMAP_IDS - own - 1);
    return (size_t)n;
}
