/* owner.h: a unique name for each data directory, made once, which marks our objects on this
 * machine. */
#ifndef AGX_BACKEND_OWNER_H
#define AGX_BACKEND_OWNER_H

#include "base/error.h"
#include "base/uuid.h"

/* Reads the file `instance` of that directory, or makes it. */
int agx_owner_read(const char *state_dir, char ret_instance[AGX_UUID_TEXT_SIZE],
                   struct agx_error **err) AGX_MUST_CHECK;

#endif
