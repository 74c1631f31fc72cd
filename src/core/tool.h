/*
 * tool.h: names of builtin tools: "claude", or of a part of one, "claude:settings".
 *
 * A tool by itself is what can be given without a second thought. A part is a decision of its own:
 * files by which programs of the host are run or told what to do, and sockets of its services. What
 * each is made of is the backends' (backend/tools.h).
 */
#ifndef AGX_CORE_TOOL_H
#define AGX_CORE_TOOL_H

#include "base/error.h"

#include <stdbool.h>

/* -AGX_INVALID_ARGUMENT for a name that there is not, with the parts that the tool has. `whole`:
 * tools have no parts. */
int agx_tool_check(const char *name, bool whole, struct agx_error **err) AGX_MUST_CHECK;

/* The names in order, those of parts behind their tool's; NULL: there is no such number. */
const char *agx_tool_name(size_t i);

#endif
