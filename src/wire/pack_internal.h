/*
 * pack_internal.h: encodes values. Messages are made from core/'s structs: strings are borrowed,
 * only arrays of pointers are allocated, in an arena.
 *
 * Making a message does not fail: agx_pack() returns a stored error.
 */
#ifndef AGX_WIRE_PACK_INTERNAL_H
#define AGX_WIRE_PACK_INTERNAL_H

#include "base/buf.h"
#include "core/pairs.h"
#include "wire/arena.h"

#include <protobuf-c/protobuf-c.h>

typedef struct Google__Protobuf__Duration Google__Protobuf__Duration;
typedef struct Google__Protobuf__Timestamp Google__Protobuf__Timestamp;

struct agx_pack {
    struct agx_arena arena;
};

/* `p` need not be initialised. */
void agx_pack_init(struct agx_pack *p);

/* Appends the message, or nothing with -AGX_RESOURCE_EXHAUSTED. Ends `p` in any case. */
int agx_pack(struct agx_pack *p, const ProtobufCMessage *m, struct agx_buf *out) AGX_MUST_CHECK;

/* Appends a message that needs no arena. */
int agx_pack_plain(const ProtobufCMessage *m, struct agx_buf *out) AGX_MUST_CHECK;

/* `n` initialised messages of that type, and an array of pointers to them; without memory *ret_n is
 * 0. */
void *agx_pack_messages(struct agx_pack *p, const ProtobufCMessageDescriptor *type, size_t n,
                        size_t *ret_n);
/* The same as entries of a map. */
void *agx_pack_pairs(struct agx_pack *p, const ProtobufCMessageDescriptor *entry,
                     const struct agx_pairs *pairs, size_t *ret_n);

/* NULL for AGX_NS_UNSET. */
Google__Protobuf__Duration *agx_pack_duration(struct agx_pack *p, int64_t ns);
/* Fills the caller's storage. */
void agx_pack_time(Google__Protobuf__Timestamp *t, int64_t ns);

/* A constant string for a message, which does not modify it. NULL becomes "". */
static inline char *agx_pack_text(const char *s)
{
    return (char *)(s ? s : protobuf_c_empty_string);
}

#endif
