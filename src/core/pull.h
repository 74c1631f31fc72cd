/* pull.h: the progress of an image pull. It is reported to clients and stored nowhere. */
#ifndef AGX_CORE_PULL_H
#define AGX_CORE_PULL_H

#include <stdint.h>

struct agx_pull {
    const char *image; /* borrowed */
    uint32_t layers_done, layers_total;
    uint64_t bytes_done, bytes_total; /* of the layers whose size is known */
};

#endif
