/*
 * unpack_internal.h: decodes values: protobuf-c parses a message, and this module moves its content
 * into core/'s structs.
 *
 * protobuf-c does not check strings: it accepts any bytes, and cuts a string at a NUL. So every
 * string of a message is checked first (unpack_check.c).
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
    enum agx_code blame; /* the error code for malformed bytes */
    struct agx_error **err;
};

/* `u` need not be initialised. */
void agx_unpack_init(struct agx_unpack *u, enum agx_code blame, struct agx_error **err);
void agx_unpack_done(struct agx_unpack *u);

/* *ret_message points to a pointer of the message's type; it lives as long as `u`. */
int agx_unpack_message(struct agx_unpack *u, const ProtobufCMessageDescriptor *type,
                       struct agx_str bytes, void *ret_message) AGX_MUST_CHECK;

/* Sets the error for that field. */
int agx_unpack_fault(struct agx_unpack *u, const char *field, const char *fault);
/* Fails for more than `max` elements. */
int agx_unpack_count(struct agx_unpack *u, const char *field, size_t n, size_t max) AGX_MUST_CHECK;

/* A copy, never NULL. */
int agx_unpack_id(struct agx_unpack *u, const char *value, char **ret) AGX_MUST_CHECK;
/* A copy; NULL for the empty text. */
int agx_unpack_text(struct agx_unpack *u, const char *value, char **slot) AGX_MUST_CHECK;
/* A copy in a buffer of exactly that maximum. */
int agx_unpack_bytes(struct agx_unpack *u, const ProtobufCBinaryData *value,
                     struct agx_buf *ret) AGX_MUST_CHECK;
/* `words` and `pairs` must be empty; the caller frees them, also after a failure. */
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

/* unpack_check.c: checks that every string, at any depth, is UTF-8 without NUL. */
int agx_unpack_check(const ProtobufCMessageDescriptor *type, struct agx_str bytes,
                     enum agx_code blame, struct agx_error **err) AGX_MUST_CHECK;

#endif
