/*
 * mp_fields.h: reads the named fields of a message that is one msgpack map, driven by a table.
 *
 *     enum { CALL_ID, ARGS };
 *     struct agx_mp_field f[] = {
 *         [CALL_ID] = { AGX_STR("call_id"), AGX_MP_BIT(AGX_MP_STR) },
 *         [ARGS] = { AGX_STR("args"), AGX_MP_BIT(AGX_MP_ARRAY) | AGX_MP_BIT(AGX_MP_NIL) },
 *     };
 *     r = agx_mp_read_fields(msg, &limits, f, AGX_ARRAY_LEN(f), err);
 *
 * Values are not decoded: a field gives the first token and the raw bytes of its value. Keys are
 * str or bin, in any order; fields that are not in the table are skipped.
 */
#ifndef AGX_CODEC_MP_FIELDS_H
#define AGX_CODEC_MP_FIELDS_H

#include "codec/mp_reader.h"

#define AGX_MP_BIT(type) (1u << (type))
#define AGX_MP_ANY (~0u)

struct agx_mp_field {
    struct agx_str name;
    unsigned wanted; /* AGX_MP_BIT()s of the accepted types */

    /* Filled in by agx_mp_read_fields(). */
    bool present;
    struct agx_mp_token value; /* a container's header; text is well-formed UTF-8 */
    struct agx_str raw;        /* the whole value; borrowed from the message */
};

/*
 * Fills in `fields` from `msg`, which must be one map with nothing after it. A field of a type that
 * is not accepted, or sent twice, makes the call fail after the whole message was read; malformed
 * bytes make it fail at once. The other fields, as far as read, are filled in even then, so that
 * the caller can answer a failure under the message's call_id.
 */
int agx_mp_read_fields(struct agx_str msg, const struct agx_mp_limits *limits,
                       struct agx_mp_field *fields, size_t n,
                       struct agx_error **err) AGX_MUST_CHECK;

#endif
