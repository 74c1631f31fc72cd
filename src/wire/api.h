/* api.h: what our .proto files declare, for server reflection and for tools. */
#ifndef AGX_WIRE_API_H
#define AGX_WIRE_API_H

#include "base/str.h"

/* A serialized FileDescriptorSet of agbox.v1, agentix.v1 and google.rpc with all that they import,
 * as protoc made it of the files in api/proto/. Static. */
struct agx_str agx_api_descriptor_set(void);

#endif
