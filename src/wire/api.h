/* api.h: the descriptors of our .proto files, for server reflection and for tools. */
#ifndef AGX_WIRE_API_H
#define AGX_WIRE_API_H

#include "base/str.h"

/* A serialized FileDescriptorSet of agbox.v1, agentix.v1 and google.rpc with all their imports,
 * made by protoc from api/proto/. Static. */
struct agx_str agx_api_descriptor_set(void);

#endif
