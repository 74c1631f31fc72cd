/*
 * mp_reader.h: reads msgpack from borrowed bytes, one token at a time, and skips whole values
 * without decoding them.
 *
 * Why not msgpack-c's unpacker: it only builds a whole tree, in a zone whose size the peer chooses,
 * to a fixed depth of 32, and does not report the bytes of a value. This reader allocates nothing,
 * takes every limit as an argument, and can return a value's raw bytes: the server passes arguments
 * and results on without looking inside.
 *
 * A failure does not move the reader; its error has the offset and the reason, for example
 *     msgpack: at offset 12: array of 4294967295 elements in 3 bytes
 * -AGX_INVALID_ARGUMENT is malformed or cut off, -AGX_RESOURCE_EXHAUSTED is past a limit.
 */
#ifndef AGX_CODEC_MP_READER_H
#define AGX_CODEC_MP_READER_H

#include "base/error.h"
#include "base/limits.h"
#include "base/str.h"

enum agx_mp_type {
    AGX_MP_NIL,
    AGX_MP_BOOL,
    AGX_MP_UINT, /* 0 or more, in any of the forms */
    AGX_MP_INT,  /* below 0 */
    AGX_MP_FLOAT,
    AGX_MP_STR,
    AGX_MP_BIN,
    AGX_MP_ARRAY,
    AGX_MP_MAP,
    AGX_MP_EXT,
};

/* What a reader accepts. A limit of 0 allows nothing: start from AGX_MP_LIMITS_INIT. */
struct agx_mp_limits {
    size_t size;    /* bytes of the whole input */
    size_t length;  /* bytes of one str, bin or ext */
    size_t count;   /* elements of one array, pairs of one map */
    unsigned depth; /* nested containers; values above AGX_MP_DEPTH_CEILING mean that */
    bool utf8;      /* every str must be well-formed UTF-8 */
};
#define AGX_MP_LIMITS_INIT                                                                         \
    {                                                                                              \
        .size = AGX_MESSAGE_MAX, .length = AGX_MESSAGE_MAX, .count = AGX_MP_COUNT_MAX,             \
        .depth = AGX_DEPTH_MAX, .utf8 = false                                                      \
    }

struct agx_mp_token {
    enum agx_mp_type type;
    int8_t ext_type; /* EXT */
    union {
        bool boolean;         /* BOOL */
        uint64_t u;           /* UINT */
        int64_t i;            /* INT */
        double f;             /* FLOAT, of either width */
        struct agx_str bytes; /* STR, BIN, EXT: a view into the input */
        uint32_t count;       /* ARRAY: elements that follow; MAP: pairs that follow */
    };
};

struct agx_mp_reader {
    const uint8_t *start, *at, *end;
    const struct agx_mp_limits *limits; /* borrowed */
    unsigned depth;                     /* containers that the caller has entered */
};

/* Reads `bytes`; borrows them and `limits`. Fails only for more than limits->size bytes. */
int agx_mp_reader_init(struct agx_mp_reader *r, struct agx_str bytes,
                       const struct agx_mp_limits *limits, struct agx_error **err) AGX_MUST_CHECK;

static inline bool agx_mp_at_end(const struct agx_mp_reader *r)
{
    return r->at == r->end;
}

/* One token. For a container that is its header; its elements are the tokens that follow. */
int agx_mp_next(struct agx_mp_reader *r, struct agx_mp_token *ret,
                struct agx_error **err) AGX_MUST_CHECK;

/*
 * For callers that walk into containers with agx_mp_next(): one `enter` after each container's
 * header, one `leave` after its last element. `enter` fails if that is deeper than limits->depth.
 */
int agx_mp_enter(struct agx_mp_reader *r, struct agx_error **err) AGX_MUST_CHECK;

static inline void agx_mp_leave(struct agx_mp_reader *r)
{
    r->depth--;
}

/* Skips one whole value, however deep, in constant memory; checks form and limits only. */
int agx_mp_skip(struct agx_mp_reader *r, struct agx_error **err) AGX_MUST_CHECK;

/* The same; *ret_raw are the value's bytes, borrowed from the input. */
int agx_mp_take_raw(struct agx_mp_reader *r, struct agx_str *ret_raw,
                    struct agx_error **err) AGX_MUST_CHECK;

/* Fails when bytes are left. */
int agx_mp_expect_end(const struct agx_mp_reader *r, struct agx_error **err) AGX_MUST_CHECK;

/* "str", "map", ...: for error texts. */
const char *agx_mp_type_name(enum agx_mp_type type);

#endif
