/*
 * mp_reader.c: a cursor over msgpack.
 *
 * Every value begins with a head: a byte that names its form, and up to 8 bytes (big endian) that
 * hold a number: the value itself, or how many bytes or elements follow. read_head() reads one and
 * checks it against the bytes left and the limits; everything else is built on it. Invariants:
 *  (1) start <= at <= end, and `at` moves only past completely checked values;
 *  (2) a container's count is at most the number of bytes left (every element takes at least one),
 *      so the bytes that the peer has really sent bound the work and memory spent on a count.
 */
#include "codec/mp_reader.h"

#include "base/utf8.h"

#include "base/banned.h"

struct form {
    uint8_t type;  /* enum agx_mp_type */
    uint8_t width; /* bytes of its number */
};

/* The forms 0xc0 to 0xdf; the others have their number in the first byte. */
static const struct form forms[32] = {
    [0x00] = { AGX_MP_NIL, 0 },   [0x02] = { AGX_MP_BOOL, 0 },  [0x03] = { AGX_MP_BOOL, 0 },
    [0x04] = { AGX_MP_BIN, 1 },   [0x05] = { AGX_MP_BIN, 2 },   [0x06] = { AGX_MP_BIN, 4 },
    [0x07] = { AGX_MP_EXT, 1 },   [0x08] = { AGX_MP_EXT, 2 },   [0x09] = { AGX_MP_EXT, 4 },
    [0x0a] = { AGX_MP_FLOAT, 4 }, [0x0b] = { AGX_MP_FLOAT, 8 }, [0x0c] = { AGX_MP_UINT, 1 },
    [0x0d] = { AGX_MP_UINT, 2 },  [0x0e] = { AGX_MP_UINT, 4 },  [0x0f] = { AGX_MP_UINT, 8 },
    [0x10] = { AGX_MP_INT, 1 },   [0x11] = { AGX_MP_INT, 2 },   [0x12] = { AGX_MP_INT, 4 },
    [0x13] = { AGX_MP_INT, 8 },   [0x14] = { AGX_MP_EXT, 0 },   [0x15] = { AGX_MP_EXT, 0 },
    [0x16] = { AGX_MP_EXT, 0 },   [0x17] = { AGX_MP_EXT, 0 },   [0x18] = { AGX_MP_EXT, 0 },
    [0x19] = { AGX_MP_STR, 1 },   [0x1a] = { AGX_MP_STR, 2 },   [0x1b] = { AGX_MP_STR, 4 },
    [0x1c] = { AGX_MP_ARRAY, 2 }, [0x1d] = { AGX_MP_ARRAY, 4 }, [0x1e] = { AGX_MP_MAP, 2 },
    [0x1f] = { AGX_MP_MAP, 4 },
};
enum { FORM_UNUSED = 0xc1, FORM_TRUE = 0xc3, FORM_FIXEXT1 = 0xd4, FORM_FIXEXT16 = 0xd8 };

struct head {
    enum agx_mp_type type;
    uint8_t first, width;
    int8_t ext_type;
    uint64_t number;
    const uint8_t *body; /* the first byte after the head */
};

const char *agx_mp_type_name(enum agx_mp_type type)
{
    static const char *const names[] = {
        [AGX_MP_NIL] = "nil", [AGX_MP_BOOL] = "bool",   [AGX_MP_UINT] = "uint",
        [AGX_MP_INT] = "int", [AGX_MP_FLOAT] = "float", [AGX_MP_STR] = "str",
        [AGX_MP_BIN] = "bin", [AGX_MP_ARRAY] = "array", [AGX_MP_MAP] = "map",
        [AGX_MP_EXT] = "ext",
    };

    return names[type];
}

static inline bool is_container(enum agx_mp_type type)
{
    return type == AGX_MP_ARRAY || type == AGX_MP_MAP;
}

static inline bool has_bytes(enum agx_mp_type type)
{
    return type == AGX_MP_STR || type == AGX_MP_BIN || type == AGX_MP_EXT;
}

#define FAIL_AT(r, p, err, code, fmt, ...)                                                         \
    agx_error_set(err, code, "msgpack: at offset %zu: " fmt, (size_t)((p) - (r)->start),           \
                  ##__VA_ARGS__)

static inline uint64_t big_endian(const uint8_t *p, unsigned width)
{
    uint64_t v = 0;

    for (unsigned i = 0; i < width; i++)
        v = v << 8 | p[i];
    return v;
}

/* The forms with their number in the first byte; false for the others. */
static inline bool fixed_form(uint8_t first, struct head *h)
{
    if (first < 0x80) {
        h->type = AGX_MP_UINT;
        h->number = first;
    } else if (first >= 0xe0) {
        h->type = AGX_MP_INT;
        h->number = (uint64_t)(int64_t)(int8_t)first;
    } else if (first >= 0xc0) {
        return false;
    } else if (first >= 0xa0) {
        h->type = AGX_MP_STR;
        h->number = first & 0x1f;
    } else {
        h->type = first >= 0x90 ? AGX_MP_ARRAY : AGX_MP_MAP;
        h->number = first & 0x0f;
    }
    return true;
}

/* The slow half of check_body(): the same checks, to say what is wrong. */
static __attribute__((cold, noinline)) int body_error(const struct agx_mp_reader *r,
                                                      const uint8_t *p, const struct head *h,
                                                      struct agx_error **err)
{
    const char *name = agx_mp_type_name(h->type), *unit = "bytes";
    size_t left = (size_t)(r->end - h->body), limit = r->limits->length;

    if (is_container(h->type)) {
        unit = h->type == AGX_MP_MAP ? "pairs" : "elements";
        limit = r->limits->count;
    }
    if (h->number > (h->type == AGX_MP_MAP ? left / 2 : left))
        return FAIL_AT(r, p, err, AGX_INVALID_ARGUMENT, "%s of %llu %s in %zu bytes", name,
                       (unsigned long long)h->number, unit, left);
    return FAIL_AT(r, p, err, AGX_RESOURCE_EXHAUSTED, "%s of %llu %s, the limit is %zu", name,
                   (unsigned long long)h->number, unit, limit);
}

/* Are the bytes there, and is the number within the limits? */
static inline int check_body(const struct agx_mp_reader *r, const uint8_t *p, const struct head *h,
                             struct agx_error **err)
{
    size_t left = (size_t)(r->end - h->body);

    if (has_bytes(h->type)) {
        if (h->number > left || h->number > r->limits->length)
            return body_error(r, p, h, err);
        if (r->limits->utf8 && h->type == AGX_MP_STR &&
            !agx_utf8_valid(agx_str_bytes(h->body, (size_t)h->number)))
            return FAIL_AT(r, p, err, AGX_INVALID_ARGUMENT, "str is not UTF-8");
    } else if (is_container(h->type)) {
        if (h->number > (h->type == AGX_MP_MAP ? left / 2 : left) || h->number > r->limits->count)
            return body_error(r, p, h, err);
    }
    return 0;
}

/* A form of 0xc0 to 0xdf: the number's bytes, and the type byte of an ext. */
static inline int wide_form(const struct agx_mp_reader *r, const uint8_t *p, struct head *h,
                            struct agx_error **err)
{
    const struct form *form = &forms[h->first & 0x1f];
    size_t need = form->width + (form->type == AGX_MP_EXT);

    if (h->first == FORM_UNUSED)
        return FAIL_AT(r, p, err, AGX_INVALID_ARGUMENT, "byte 0xc1 does not begin a value");
    h->type = form->type;
    h->width = form->width;
    if ((size_t)(r->end - h->body) < need)
        return FAIL_AT(r, p, err, AGX_INVALID_ARGUMENT, "the input ends inside the head of %s",
                       agx_mp_type_name(form->type));
    h->number = big_endian(h->body, form->width);
    if (form->type == AGX_MP_EXT) {
        if (h->first >= FORM_FIXEXT1 && h->first <= FORM_FIXEXT16)
            h->number = UINT64_C(1) << (h->first - FORM_FIXEXT1);
        h->ext_type = (int8_t)h->body[form->width];
    } else if (form->type == AGX_MP_BOOL) {
        h->number = h->first == FORM_TRUE;
    }
    h->body += need;
    return 0;
}

/* The head at `p`, checked; *h is all zero before. */
static inline int read_head(const struct agx_mp_reader *r, const uint8_t *p, struct head *h,
                            struct agx_error **err)
{
    int k;

    if (p == r->end)
        return FAIL_AT(r, p, err, AGX_INVALID_ARGUMENT,
                       "the input ends where a value should begin");
    h->first = *p;
    h->body = p + 1;
    if (!fixed_form(h->first, h)) {
        k = wide_form(r, p, h, err);
        if (k < 0)
            return k;
    }
    return check_body(r, p, h, err);
}

/* The next head: past the bytes of a str, bin or ext; a container's elements follow directly. */
static inline const uint8_t *past(const struct head *h)
{
    return has_bytes(h->type) ? h->body + h->number : h->body;
}

int agx_mp_reader_init(struct agx_mp_reader *r, struct agx_str bytes,
                       const struct agx_mp_limits *limits, struct agx_error **err)
{
    const uint8_t *p = (const uint8_t *)(bytes.len > 0 ? bytes.ptr : "");

    *r = (struct agx_mp_reader){ .start = p, .at = p, .end = p + bytes.len, .limits = limits };
    if (bytes.len > limits->size)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED,
                             "msgpack: input of %zu bytes, the limit is %zu", bytes.len,
                             limits->size);
    return 0;
}

/* An int form: sign-extended from its width; 0 and above become UINT. */
static inline void signed_token(const struct head *h, struct agx_mp_token *ret)
{
    unsigned unused = h->width > 0 ? 64 - 8 * h->width : 0;

    ret->i = (int64_t)(h->number << unused) >> unused;
    if (ret->i >= 0)
        ret->type = AGX_MP_UINT;
}

static inline void float_token(const struct head *h, struct agx_mp_token *ret)
{
    if (h->width == 4) {
        uint32_t bits = (uint32_t)h->number;
        float f;

        memcpy(&f, &bits, sizeof(f));
        ret->f = (double)f;
    } else {
        memcpy(&ret->f, &h->number, sizeof(ret->f));
    }
}

int agx_mp_next(struct agx_mp_reader *r, struct agx_mp_token *ret, struct agx_error **err)
{
    struct head h = { 0 };
    int k = read_head(r, r->at, &h, err);

    if (k < 0)
        return k;
    ret->type = h.type;
    switch (h.type) {
    case AGX_MP_NIL:
        break;
    case AGX_MP_BOOL:
        ret->boolean = h.number != 0;
        break;
    case AGX_MP_UINT:
        ret->u = h.number;
        break;
    case AGX_MP_INT:
        signed_token(&h, ret);
        break;
    case AGX_MP_FLOAT:
        float_token(&h, ret);
        break;
    case AGX_MP_EXT:
        ret->ext_type = h.ext_type;
        ret->bytes = agx_str_bytes(h.body, (size_t)h.number);
        break;
    case AGX_MP_STR:
    case AGX_MP_BIN:
        ret->bytes = agx_str_bytes(h.body, (size_t)h.number);
        break;
    case AGX_MP_ARRAY:
    case AGX_MP_MAP:
        ret->count = (uint32_t)h.number;
        break;
    }
    r->at = past(&h);
    return 0;
}

static inline unsigned depth_limit(const struct agx_mp_reader *r)
{
    return AGX_MIN(r->limits->depth, (unsigned)AGX_MP_DEPTH_CEILING);
}

static int too_deep(const struct agx_mp_reader *r, const uint8_t *p, struct agx_error **err)
{
    return FAIL_AT(r, p, err, AGX_RESOURCE_EXHAUSTED, "nested deeper than the limit of %u",
                   depth_limit(r));
}

int agx_mp_enter(struct agx_mp_reader *r, struct agx_error **err)
{
    if (r->depth >= depth_limit(r))
        return too_deep(r, r->at, err);
    r->depth++;
    return 0;
}

int agx_mp_skip(struct agx_mp_reader *r, struct agx_error **err)
{
    /* The heads still to come in each open container, innermost last: twice the pairs for a map. No
     * number is larger than the bytes of the input. */
    size_t left[AGX_MP_DEPTH_CEILING];
    unsigned open = 0, room = depth_limit(r) - AGX_MIN(r->depth, depth_limit(r));
    const uint8_t *p = r->at;

    for (;;) {
        struct head h = { 0 };
        int k = read_head(r, p, &h, err);

        if (k < 0)
            return k;
        if (is_container(h.type)) {
            if (open >= room)
                return too_deep(r, p, err);
            left[open++] = (size_t)(h.type == AGX_MP_MAP ? 2 * h.number : h.number) + 1;
        }
        p = past(&h);
        while (open > 0 && --left[open - 1] == 0)
            open--;
        if (open == 0)
            break;
    }
    r->at = p;
    return 0;
}

int agx_mp_take_raw(struct agx_mp_reader *r, struct agx_str *ret_raw, struct agx_error **err)
{
    const uint8_t *from = r->at;
    int k = agx_mp_skip(r, err);

    if (k < 0)
        return k;
    *ret_raw = agx_str_bytes(from, (size_t)(r->at - from));
    return 0;
}

int agx_mp_expect_end(const struct agx_mp_reader *r, struct agx_error **err)
{
    if (agx_mp_at_end(r))
        return 0;
    return FAIL_AT(r, r->at, err, AGX_INVALID_ARGUMENT, "%zu bytes after the value",
                   (size_t)(r->end - r->at));
}
