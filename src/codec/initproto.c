/*
 * initproto.c: packets by a table of fields, which both directions walk: a field that is written is
 * one that is read.
 */
#include "codec/initproto.h"

#include <endian.h>

#include "base/banned.h"

enum { HEAD = 4, FIELDS_MAX = 15, KINDS = AGX_INIT_OUTPUT + 1 };

/* END closes a row; a kind without a row is none of ours. */
enum type { END, U32, U64, ID, TEXT, DATA, WORDS, LIMITS };

struct field {
    enum type type;
    size_t at; /* in struct agx_init_msg */
};

#define F(type, name)                                                                              \
    {                                                                                              \
        type, offsetof(struct agx_init_msg, name)                                                  \
    }

static const struct field fields[KINDS][FIELDS_MAX] = {
    [AGX_INIT_HELLO] = { F(U64, nonce) },
    [AGX_INIT_START] = { F(ID, id), F(U32, flags), F(TEXT, user), F(TEXT, cwd), F(U32, umask),
                         F(U32, rows), F(U32, cols), F(U64, out_head), F(U64, out_tail),
                         F(U64, err_head), F(U64, err_tail), F(WORDS, argv), F(WORDS, env),
                         F(LIMITS, rlimits) },
    [AGX_INIT_QUERY] = { F(ID, id), F(U64, offset), F(U64, err_offset) },
    [AGX_INIT_KILL] = { F(ID, id), F(U64, grace_ms) },
    [AGX_INIT_SIGNAL] = { F(ID, id), F(U32, signo) },
    [AGX_INIT_INPUT] = { F(ID, id), F(U32, flags), F(DATA, data) },
    [AGX_INIT_RESIZE] = { F(ID, id), F(U32, rows), F(U32, cols) },
    [AGX_INIT_FORGET] = { F(ID, id) },
    [AGX_INIT_STOP] = { F(U64, grace_ms) },
    [AGX_INIT_LARGE] = { F(ID, id) },
    [AGX_INIT_WELCOME] = { F(U64, nonce), F(U32, pid), F(U32, running), F(U32, held) },
    [AGX_INIT_STARTED] = { F(ID, id) },
    [AGX_INIT_REFUSED] = { F(ID, id), F(U32, code), F(TEXT, data) },
    [AGX_INIT_UNKNOWN] = { F(ID, id) },
    [AGX_INIT_EXITED] = { F(ID, id), F(U32, exit_code), F(U32, signo), F(U64, usage.user_us),
                          F(U64, usage.system_us), F(U64, usage.max_rss_kib) },
    [AGX_INIT_GONE] = { F(ID, id) },
    [AGX_INIT_TAKEN] = { F(ID, id), F(U32, code) },
    [AGX_INIT_OUTPUT] = { F(ID, id), F(U32, flags), F(U64, offset), F(DATA, data) },
};

static int malformed(struct agx_error **err, const char *what)
{
    return agx_error_set(err, AGX_INVALID_ARGUMENT, "a packet of init: %s", what);
}

static uint32_t load_u32(const char *p)
{
    uint32_t le;

    memcpy(&le, p, sizeof(le));
    return le32toh(le);
}

static uint64_t load_u64(const char *p)
{
    uint64_t le;

    memcpy(&le, p, sizeof(le));
    return le64toh(le);
}

static bool take(struct agx_str *in, size_t n, const char **ret)
{
    if (in->len < n)
        return false;
    *ret = in->ptr;
    *in = agx_str_skip(*in, n);
    return true;
}

static bool take_u32(struct agx_str *in, uint32_t *ret)
{
    const char *p;

    if (!take(in, 4, &p))
        return false;
    *ret = load_u32(p);
    return true;
}

static bool take_data(struct agx_str *in, struct agx_str *ret)
{
    uint32_t len;

    if (!take_u32(in, &len) || !take(in, len, &ret->ptr))
        return false;
    ret->len = len;
    return true;
}

/* Its length, its bytes without a NUL among them, a NUL. */
static bool take_text(struct agx_str *in, struct agx_str *ret)
{
    const char *end;

    return take_data(in, ret) && take(in, 1, &end) && *end == '\0' &&
           memchr(ret->ptr, '\0', ret->len) == NULL;
}

static int take_words(struct agx_str *in, struct agx_init_list *ret, struct agx_error **err)
{
    struct agx_str word;

    if (!take_u32(in, &ret->count))
        return malformed(err, "it ends too early");
    if (ret->count > AGX_INIT_WORDS_MAX)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED,
                             "a packet of init: %u words, the limit is %d", ret->count,
                             AGX_INIT_WORDS_MAX);
    ret->bytes.ptr = in->ptr;
    for (uint32_t i = 0; i < ret->count; i++) {
        if (!take_text(in, &word))
            return malformed(err, "a list has a bad string");
    }
    ret->bytes.len = (size_t)(in->ptr - ret->bytes.ptr);
    return 0;
}

static int take_limits(struct agx_str *in, struct agx_init_list *ret, struct agx_error **err)
{
    if (!take_u32(in, &ret->count))
        return malformed(err, "it ends too early");
    if (ret->count > AGX_INIT_RLIMITS_MAX)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED,
                             "a packet of init: %u resource limits, at most %d", ret->count,
                             AGX_INIT_RLIMITS_MAX);
    ret->bytes.len = (size_t)ret->count * AGX_INIT_RLIMIT_SIZE;
    if (!take(in, ret->bytes.len, &ret->bytes.ptr))
        return malformed(err, "it ends too early");
    return 0;
}

static int take_field(struct agx_str *in, enum type type, void *to, struct agx_error **err)
{
    const char *p;
    bool ok = true;

    switch (type) {
    case U32:
        ok = take_u32(in, to);
        break;
    case U64:
        ok = take(in, 8, &p);
        if (ok)
            *(uint64_t *)to = load_u64(p);
        break;
    case DATA:
        ok = take_data(in, to);
        break;
    case ID:
    case TEXT:
        ok = take_text(in, to);
        break;
    case WORDS:
        return take_words(in, to, err);
    case LIMITS:
        return take_limits(in, to, err);
    case END:
        break;
    }
    return ok ? 0 : malformed(err, "it ends too early, or a string is none");
}

/* What no type says. */
static int check(const struct agx_init_msg *m, struct agx_error **err)
{
    struct agx_init_list env = m->env;
    const char *word;

    if (fields[m->kind][0].type == ID && (m->id.len == 0 || m->id.len > AGX_INIT_ID_MAX))
        return malformed(err, "the id is empty or too long");
    if (m->data.len > AGX_INIT_DATA_MAX)
        return malformed(err, "too much data");
    if (m->kind != AGX_INIT_START)
        return 0;
    if (m->argv.count == 0)
        return malformed(err, "a command without words");
    if (m->cwd.len > 0 && m->cwd.ptr[0] != '/')
        return malformed(err, "the working directory is not absolute");
    while ((word = agx_init_list_next(&env))) {
        if (word[0] == '=' || !strchr(word, '='))
            return malformed(err, "an environment entry is not NAME=value");
    }
    return 0;
}

int agx_init_decode(struct agx_str packet, struct agx_init_msg *ret, struct agx_error **err)
{
    struct agx_str in = packet;
    unsigned kind;
    const char *head;

    *ret = (struct agx_init_msg){ 0 };
    if (packet.len > AGX_INIT_PACKET_MAX)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED,
                             "a packet of init has %zu bytes, the limit is %zu", packet.len,
                             AGX_INIT_PACKET_MAX);
    if (!take(&in, HEAD, &head) || head[0] != 'A' || head[1] != 'X')
        return malformed(err, "no such protocol");
    if (head[2] != AGX_INIT_VERSION)
        return malformed(err, "another version of the protocol");
    kind = (uint8_t)head[3];
    if (kind >= KINDS || fields[kind][0].type == END)
        return malformed(err, "no such kind");
    ret->kind = (enum agx_init_kind)kind;
    for (const struct field *f = fields[kind]; f->type != END; f++) {
        int r = take_field(&in, f->type, (char *)ret + f->at, err);

        if (r < 0)
            return r;
    }
    if (in.len > 0)
        return malformed(err, "bytes behind its end");
    return check(ret, err);
}

const char *agx_init_list_next(struct agx_init_list *l)
{
    const char *word;
    uint32_t len;

    if (l->count == 0)
        return NULL;
    len = load_u32(l->bytes.ptr);
    word = l->bytes.ptr + 4;
    l->bytes = agx_str_skip(l->bytes, 4 + (size_t)len + 1);
    l->count--;
    return word;
}

bool agx_init_rlimit_next(struct agx_init_list *l, struct agx_init_rlimit *ret)
{
    if (l->count == 0)
        return false;
    ret->resource = load_u32(l->bytes.ptr);
    ret->soft = load_u64(l->bytes.ptr + 4);
    ret->hard = load_u64(l->bytes.ptr + 12);
    l->bytes = agx_str_skip(l->bytes, AGX_INIT_RLIMIT_SIZE);
    l->count--;
    return true;
}

/* Counts every byte, writes those that fit. */
struct out {
    uint8_t *at;
    size_t len, size;
};

static void put(struct out *o, const void *bytes, size_t n)
{
    if (n > 0 && n <= o->size && o->len <= o->size - n)
        memcpy(o->at + o->len, bytes, n);
    o->len += n;
}

static void put_u32(struct out *o, uint32_t v)
{
    uint32_t le = htole32(v);

    put(o, &le, sizeof(le));
}

static void put_u64(struct out *o, uint64_t v)
{
    uint64_t le = htole64(v);

    put(o, &le, sizeof(le));
}

static void put_str(struct out *o, const struct agx_str *s, bool text)
{
    put_u32(o, (uint32_t)s->len);
    put(o, s->ptr, s->len);
    if (text)
        put(o, "", 1);
}

static void put_list(struct out *o, const struct agx_init_list *l)
{
    put_u32(o, l->count);
    put(o, l->bytes.ptr, l->bytes.len);
}

size_t agx_init_encode(const struct agx_init_msg *m, uint8_t *out, size_t size)
{
    const uint8_t head[HEAD] = { 'A', 'X', AGX_INIT_VERSION, (uint8_t)m->kind };
    struct out o = { .at = out, .size = size };

    put(&o, head, HEAD);
    for (const struct field *f = fields[m->kind]; f->type != END; f++) {
        const void *from = (const char *)m + f->at;

        switch (f->type) {
        case U32:
            put_u32(&o, *(const uint32_t *)from);
            break;
        case U64:
            put_u64(&o, *(const uint64_t *)from);
            break;
        case ID:
        case TEXT:
            put_str(&o, from, true);
            break;
        case DATA:
            put_str(&o, from, false);
            break;
        case WORDS:
        case LIMITS:
            put_list(&o, from);
            break;
        case END:
            break;
        }
    }
    return o.len;
}

size_t agx_init_word_put(uint8_t *out, size_t size, struct agx_str word)
{
    struct out o = { .at = out, .size = size };

    put_str(&o, &word, true);
    return o.len;
}

void agx_init_rlimit_put(uint8_t out[AGX_INIT_RLIMIT_SIZE], const struct agx_init_rlimit *x)
{
    struct out o = { .at = out, .size = AGX_INIT_RLIMIT_SIZE };

    put_u32(&o, x->resource);
    put_u64(&o, x->soft);
    put_u64(&o, x->hard);
}
