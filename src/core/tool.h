/*
 * tool.h: names of builtin tools: "claude", or of a part of one, "claude:settings".
 *
 * A tool alone includes only what is harmless to give. Each part is a separate decision: files by
 * which host programs are run or configured, and sockets of host services. The backends define the
 * content of each (backend/files/tools.h).
 */
#ifndef AGX_CORE_TOOL_H
#define AGX_CORE_TOOL_H

#include "base/error.h"

#include <stdbool.h>

/* -AGX_INVALID_ARGUMENT for an unknown name; the message lists the tool's parts. `whole`: tools
 * have no parts. */
int agx_tool_check(const char *name, bool whole, struct agx_error **err) AGX_MUST_CHECK;

/* The names in order, parts after their tool; NULL past the last. */
const char *agx_tool_name(size_t i);

#endif
