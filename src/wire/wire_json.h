/* wire_json.h: any message of agbox.v1 and agentix.v1 as JSON, for `--json`. */
#ifndef AGX_WIRE_WIRE_JSON_H
#define AGX_WIRE_WIRE_JSON_H

#include "base/buf.h"

/*
 * Appends the message as protobuf's JSON, indented by two blanks, without a final newline: names as
 * in the .proto, every field except unset oneof fields, null for unset messages, enums by name,
 * 64-bit numbers as strings, times as RFC 3339, bytes as base64. `message` is its full name
 * ("agbox.v1.GetSandboxResponse"); -AGX_INVALID_ARGUMENT for an unknown message, -AGX_INTERNAL for
 * malformed bytes. On failure `out` is unchanged.
 */
int agx_wire_json(struct agx_buf *out, const char *message, struct agx_str bytes,
                  struct agx_error **err) AGX_MUST_CHECK;

#endif
