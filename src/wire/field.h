/* field.h: protobuf's wire format: numbered fields, without their meaning. */
#ifndef AGX_WIRE_FIELD_H
#define AGX_WIRE_FIELD_H

#include "base/str.h"

enum agx_field_type {
    AGX_FIELD_VARINT = 0,
    AGX_FIELD_FIXED64 = 1,
    AGX_FIELD_BYTES = 2,
    AGX_FIELD_FIXED32 = 5,
};

struct agx_field {
    uint32_t number;
    enum agx_field_type type;
    struct agx_str bytes; /* AGX_FIELD_BYTES: without its length; others: empty */
};

/* Cuts the next field off `in`. False at the end, where `in` is empty, and on malformed input,
 * where it is not. Groups are malformed: proto3 has none. */
bool agx_field_next(struct agx_str *in, struct agx_field *ret);

#endif
