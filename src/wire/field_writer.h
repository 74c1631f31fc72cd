/*
 * field_writer.h: writes protobuf's wire format field by field, for the few messages that are sent
 * by the thousand: no protobuf-c message is made, and each byte is written once.
 *
 * Writing does not fail: agx_field_writer_end() returns a stored error. As in proto3, fields with
 * default values are left out, except messages.
 */
#ifndef AGX_WIRE_FIELD_WRITER_H
#define AGX_WIRE_FIELD_WRITER_H

#include "base/buf.h"

struct agx_field_writer {
    struct agx_buf *out;
    size_t start; /* the message's start in `out` */
    bool failed;
};

void agx_field_writer_init(struct agx_field_writer *w, struct agx_buf *out);
/* 0, or -AGX_RESOURCE_EXHAUSTED, and `out` is as before the message. */
int agx_field_writer_end(struct agx_field_writer *w) AGX_MUST_CHECK;

/* uint32, uint64, bool, enum, and non-negative int32. */
void agx_field_write_number(struct agx_field_writer *w, uint32_t field, uint64_t value);
/* NULL is the empty text. */
void agx_field_write_text(struct agx_field_writer *w, uint32_t field, const char *text);
/* google.protobuf.Timestamp, from nanoseconds since 1970; written even for 0. */
void agx_field_write_time(struct agx_field_writer *w, uint32_t field, int64_t ns);

/* Begins a nested message; close it with the result of open(). */
size_t agx_field_write_open(struct agx_field_writer *w, uint32_t field);
void agx_field_write_close(struct agx_field_writer *w, size_t opened);

#endif
