/* wire_json.h: any message of agbox.v1 and agentix.v1 as JSON, for `--json`. */
#ifndef AGX_WIRE_WIRE_JSON_H
#define AGX_WIRE_WIRE_JSON_H

#include "base/buf.h"

/*
 * Appends the message as protobuf's JSON, two blanks a level, without a newline at the end: names
 * as in the .proto, every field but members of a oneof that are not set, null for messages that are
 * not set, enums by name, 64-bit numbers as strings, times as RFC 3339, bytes as base64. `message`
 * is its full name ("agbox.v1.GetSandboxResponse"); -AGX_INVALID_ARGUMENT where we have no such
 * message, -AGX_INTERNAL for bytes that are none. `out` is as before after a failure.
 */
int agx_wire_json(struct agx_buf *out, const char *message, struct agx_str bytes,
                  struct agx_error **err) AGX_MUST_CHECK;

#endif
