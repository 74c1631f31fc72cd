/*
 * initproto_fields.h: packets by a table of fields, which both directions walk: a field that is
 * written is one that is read. What codec/initproto.c and codec/initproto_plan.c share.
 */
#ifndef AGX_CODEC_INITPROTO_FIELDS_H
#define AGX_CODEC_INITPROTO_FIELDS_H

#include "codec/initproto.h"

/* END closes a row; a kind without a row is none of ours. */
enum agx_init_type {
    AGX_FIELD_END,
    AGX_FIELD_U32,
    AGX_FIELD_U64,
    AGX_FIELD_ID,      /* a text of 1 to AGX_INIT_ID_MAX bytes */
    AGX_FIELD_TEXT,    /* no NUL in it, one behind it */
    AGX_FIELD_DATA,    /* any bytes */
    AGX_FIELD_WORDS,   /* a list of texts */
    AGX_FIELD_LIMITS,  /* a list of struct agx_init_rlimit */
    AGX_FIELD_NUMBERS, /* a list of u32 */
    AGX_FIELD_MOUNTS,  /* a list of struct agx_plan_mount: u32, text, text */
};

struct agx_init_field {
    enum agx_init_type type;
    size_t at; /* in the struct that is read or written */
};

/* Its four first bytes. `ret_in`: what follows them. */
int agx_init_head_take(struct agx_str packet, struct agx_str *ret_in, unsigned *ret_kind,
                       struct agx_error **err) AGX_MUST_CHECK;
/* All fields of a row, and nothing behind them. */
int agx_init_fields_take(struct agx_str in, const struct agx_init_field *row, void *to,
                         struct agx_error **err) AGX_MUST_CHECK;
int agx_init_malformed(struct agx_error **err, const char *what);

/* Counts every byte, writes those that fit. */
struct agx_init_out {
    uint8_t *at;
    size_t len, size;
};

void agx_init_packet_put(struct agx_init_out *o, unsigned kind, const struct agx_init_field *row,
                         const void *from);
void agx_init_u32_put(struct agx_init_out *o, uint32_t v);
void agx_init_u64_put(struct agx_init_out *o, uint64_t v);
void agx_init_text_put(struct agx_init_out *o, struct agx_str text);

/* Of a list that was decoded: the caller knows that it is there. */
uint32_t agx_init_u32_next(struct agx_str *in);
uint64_t agx_init_u64_next(struct agx_str *in);
struct agx_str agx_init_text_next(struct agx_str *in);

#endif
