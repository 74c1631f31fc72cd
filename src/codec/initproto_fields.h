/*
 * initproto_fields.h: encodes and decodes packets by a table of fields. Both directions use the
 * same table, so every field that is written is also read. Shared by codec/initproto.c and
 * codec/initproto_plan.c.
 */
#ifndef AGX_CODEC_INITPROTO_FIELDS_H
#define AGX_CODEC_INITPROTO_FIELDS_H

#include "codec/initproto.h"

/* END closes a row; a kind without a row is unknown. */
enum agx_init_type {
    AGX_FIELD_END,
    AGX_FIELD_U32,
    AGX_FIELD_U64,
    AGX_FIELD_ID,      /* a text of 1 to AGX_INIT_ID_MAX bytes */
    AGX_FIELD_TEXT,    /* no NUL in it, one after it */
    AGX_FIELD_DATA,    /* any bytes */
    AGX_FIELD_WORDS,   /* a list of texts */
    AGX_FIELD_LIMITS,  /* a list of struct agx_init_rlimit */
    AGX_FIELD_NUMBERS, /* a list of u32 */
    AGX_FIELD_MOUNTS,  /* a list of struct agx_plan_mount: u32, text, text */
};

struct agx_init_field {
    enum agx_init_type type;
    size_t at; /* offset in the struct that is read or written */
};

/* Reads a packet's first four bytes. `ret_in`: the bytes after them. */
int agx_init_head_take(struct agx_str packet, struct agx_str *ret_in, unsigned *ret_kind,
                       struct agx_error **err) AGX_MUST_CHECK;
/* Reads all fields of a row; bytes after them are an error. */
int agx_init_fields_take(struct agx_str in, const struct agx_init_field *row, void *to,
                         struct agx_error **err) AGX_MUST_CHECK;
int agx_init_malformed(struct agx_error **err, const char *what);

/* Output: counts every byte, writes those that fit. */
struct agx_init_out {
    uint8_t *at;
    size_t len, size;
};

void agx_init_packet_put(struct agx_init_out *o, unsigned kind, const struct agx_init_field *row,
                         const void *from);
void agx_init_u32_put(struct agx_init_out *o, uint32_t v);
void agx_init_u64_put(struct agx_init_out *o, uint64_t v);
void agx_init_text_put(struct agx_init_out *o, struct agx_str text);

/* The next value of a decoded list; the caller knows that there is one. */
uint32_t agx_init_u32_next(struct agx_str *in);
uint64_t agx_init_u64_next(struct agx_str *in);
struct agx_str agx_init_text_next(struct agx_str *in);

#endif
