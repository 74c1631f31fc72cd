/* pull.h: how far the pull of an image is. It is told while it goes on and kept nowhere. */
#ifndef AGX_CORE_PULL_H
#define AGX_CORE_PULL_H

#include <stdint.h>

struct agx_pull {
    const char *image; /* borrowed */
    uint32_t layers_done, layers_total;
    uint64_t bytes_done, bytes_total; /* of the layers whose size is known */
};

#endif
