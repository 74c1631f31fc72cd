/*
 * unpack_internal.h: bytes to values: protobuf-c reads a message, and this gives what is in it to
 * the structs of core/.
 *
 * protobuf-c checks no text: it takes any bytes, and cuts a string at a NUL. So every text of a
 * message is looked at first (unpack_check.c).
 */
#ifndef AGX_WIRE_UNPACK_INTERNAL_H
#define AGX_WIRE_UNPACK_INTERNAL_H

#include "base/buf.h"
#include "core/pairs.h"
#include "wire/arena.h"

#include <protobuf-c/protobuf-c.h>

typedef struct Google__Protobuf__Duration Google__Protobuf__Duration;
typedef struct Google__Protobuf__Timestamp Google__Protobuf__Timestamp;

struct agx_unpack {
    struct agx_arena arena;
    enum agx_code blame; /* of what is wrong with the bytes */
    struct agx_error **err;
};

/* Its storage is not initialised before. */
void agx_unpack_init(struct agx_unpack *u, enum agx_code blame, struct agx_error **err);
void agx_unpack_done(struct agx_unpack *u);

/* *ret_message points to a pointer of the message's type; it lives as long as `u`. */
int agx_unpack_message(struct agx_unpack *u, const ProtobufCMessageDescriptor *type,
                       struct agx_str bytes, void *ret_message) AGX_MUST_CHECK;

/* Sets the error for a fault of that field. */
int agx_unpack_fault(struct agx_unpack *u, const char *field, const char *fault);
/* More of them than `max` is a fault. */
int agx_unpack_count(struct agx_unpack *u, const char *field, size_t n, size_t max) AGX_MUST_CHECK;

/* A copy, never NULL. */
int agx_unpack_id(struct agx_unpack *u, const char *value, char **ret) AGX_MUST_CHECK;
/* A copy; NULL for the empty text. */
int agx_unpack_text(struct agx_unpack *u, const char *value, char **slot) AGX_MUST_CHECK;
/* A buffer that may hold just these bytes. */
int agx_unpack_bytes(struct agx_unpack *u, const ProtobufCBinaryData *value,
                     struct agx_buf *ret) AGX_MUST_CHECK;
/* `words` and `pairs` are empty before; what is in them is the caller's also after a failure. */
int agx_unpack_words(struct agx_unpack *u, const char *field, size_t n, char *const *items,
                     struct agx_words *words) AGX_MUST_CHECK;
/* Entries of a map<string, string>. */
int agx_unpack_pairs(struct agx_unpack *u, const char *field, size_t n, const void *entries,
                     struct agx_pairs *pairs) AGX_MUST_CHECK;
/* Nanoseconds; AGX_NS_UNSET for NULL. */
int agx_unpack_duration(struct agx_unpack *u, const char *field,
                        const Google__Protobuf__Duration *d, int64_t *ret) AGX_MUST_CHECK;
/* Nanoseconds since 1970; 0 for NULL. */
int agx_unpack_time(struct agx_unpack *u, const char *field, const Google__Protobuf__Timestamp *t,
                    int64_t *ret) AGX_MUST_CHECK;

/* unpack_check.c: every text in these bytes is UTF-8 without NUL, as deep as the types go. */
int agx_unpack_check(const ProtobufCMessageDescriptor *type, struct agx_str bytes,
                     enum agx_code blame, struct agx_error **err) AGX_MUST_CHECK;

#endif
