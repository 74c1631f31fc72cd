/* gpus.h: which groups own the host's GPU devices: a command needs them to use the devices. */
#ifndef AGX_BACKEND_FILES_GPUS_H
#define AGX_BACKEND_FILES_GPUS_H

#include "base/error.h"

#include <stdint.h>

#define AGX_GPU_GROUPS_MAX 16 /* a host has two or three */

struct agx_gpus {
    uint32_t groups[AGX_GPU_GROUPS_MAX]; /* ascending, each once */
    size_t len;
};

/* Of the device nodes nvidia* and dri/renderD* in `dev` ("/dev"). May block. */
int agx_gpus_find(struct agx_gpus *ret, const char *dev, struct agx_error **err) AGX_MUST_CHECK;

#endif
