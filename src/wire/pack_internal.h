/*
 * pack_internal.h: values to bytes. Messages are made of what core/ has: strings are borrowed, only
 * arrays of pointers are made, in an arena.
 *
 * Making a message does not fail: what goes wrong is remembered, and agx_pack() says it.
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

/* Its storage is not initialised before. */
void agx_pack_init(struct agx_pack *p);

/* Appends the message, or nothing with -AGX_RESOURCE_EXHAUSTED. Ends `p` in any case. */
int agx_pack(struct agx_pack *p, const ProtobufCMessage *m, struct agx_buf *out) AGX_MUST_CHECK;

/* Appends a message that needed nothing of an arena. */
int agx_pack_plain(const ProtobufCMessage *m, struct agx_buf *out) AGX_MUST_CHECK;

/* `n` messages of that type, initialised, and an array of pointers to them; *ret_n is 0 when there
 * is no memory. */
void *agx_pack_messages(struct agx_pack *p, const ProtobufCMessageDescriptor *type, size_t n,
                        size_t *ret_n);
/* The same as entries of a map. */
void *agx_pack_pairs(struct agx_pack *p, const ProtobufCMessageDescriptor *entry,
                     const struct agx_pairs *pairs, size_t *ret_n);

/* NULL for AGX_NS_UNSET. */
Google__Protobuf__Duration *agx_pack_duration(struct agx_pack *p, int64_t ns);
/* In the caller's storage. */
void agx_pack_time(Google__Protobuf__Timestamp *t, int64_t ns);

/* A string of ours in a message, which does not change it. NULL is the empty one. */
static inline char *agx_pack_text(const char *s)
{
    return (char *)(s ? s : protobuf_c_empty_string);
}

#endif
