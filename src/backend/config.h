/* config.h: what every backend that makes real sandboxes is opened with, beside its own. */
#ifndef AGX_BACKEND_CONFIG_H
#define AGX_BACKEND_CONFIG_H

#include "backend/files/tools.h"

struct agx_sources;

/* Embedded in the configuration of each; strings are borrowed for the call of open. */
struct agx_backend_config {
    bool compat;                 /* sandboxes are as agents-sandbox has them */
    bool lan_blocked;            /* private addresses outside the host too */
    uint32_t host_uid, host_gid; /* HOST_UID and HOST_GID of the primary */
    struct agx_tools_host tools; /* where builtin tools are found */
    struct agx_sources *sources; /* what mounts may show; NULL: nothing is private. Shared */
};

#endif
