/*
 * field_writer.h: protobuf's wire format, written field by field, for the few messages of which
 * thousands go out at once: no message of protobuf-c is made, and each byte is written once.
 *
 * Writing does not fail: what goes wrong is remembered, and agx_field_writer_end() says it. As
 * proto3 has it, a field with nothing in it is left out, but for messages.
 */
#ifndef AGX_WIRE_FIELD_WRITER_H
#define AGX_WIRE_FIELD_WRITER_H

#include "base/buf.h"

struct agx_field_writer {
    struct agx_buf *out;
    size_t start; /* where the message begins in `out` */
    bool failed;
};

void agx_field_writer_init(struct agx_field_writer *w, struct agx_buf *out);
/* 0, or -AGX_RESOURCE_EXHAUSTED, and `out` is as it was at the start. */
int agx_field_writer_end(struct agx_field_writer *w) AGX_MUST_CHECK;

/* uint32, uint64, bool, enum, and int32 that are not negative. */
void agx_field_write_number(struct agx_field_writer *w, uint32_t field, uint64_t value);
/* NULL is the empty text. */
void agx_field_write_text(struct agx_field_writer *w, uint32_t field, const char *text);
/* google.protobuf.Timestamp, of nanoseconds since 1970; it is there even when it is 0. */
void agx_field_write_time(struct agx_field_writer *w, uint32_t field, int64_t ns);

/* Begins a message inside this one, and ends it with what open() returned. */
size_t agx_field_write_open(struct agx_field_writer *w, uint32_t field);
void agx_field_write_close(struct agx_field_writer *w, size_t opened);

#endif
