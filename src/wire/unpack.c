/* unpack.c: moves the content of messages into core/'s structs. */
#include "wire/unpack_internal.h"

#include "base/limits.h"
#include "core/spec.h"

#include "google_protobuf_duration.pb-c.h"
#include "google_protobuf_timestamp.pb-c.h"

#include "base/banned.h"

#define SECOND_NS INT64_C(1000000000)

void agx_unpack_init(struct agx_unpack *u, enum agx_code blame, struct agx_error **err)
{
    agx_arena_init(&u->arena, AGX_WIRE_MEMORY_MAX);
    u->blame = blame;
    u->err = err;
}

void agx_unpack_done(struct agx_unpack *u)
{
    agx_arena_done(&u->arena);
}

static void *arena_alloc(void *arena, size_t n)
{
    return agx_arena_alloc(arena, n);
}

static void arena_free(void *arena, void *p)
{
    (void)arena; /* the arena is freed as a whole */
    (void)p;
}

int agx_unpack_message(struct agx_unpack *u, const ProtobufCMessageDescriptor *type,
                       struct agx_str bytes, void *ret_message)
{
    ProtobufCAllocator allocator = { arena_alloc, arena_free, &u->arena };
    /* protobuf-c needs a non-NULL pointer even for no bytes. */
    const uint8_t *data = bytes.len > 0 ? (const uint8_t *)bytes.ptr : (const uint8_t *)"";
    ProtobufCMessage *m;
    int r = agx_unpack_check(type, bytes, u->blame, u->err);

    if (r < 0)
        return r;
    m = protobuf_c_message_unpack(type, &allocator, bytes.len, data);
    if (!m && u->arena.exhausted)
        return agx_error_set(u->err, AGX_RESOURCE_EXHAUSTED,
                             "no memory for a %s, or more than %zu bytes in memory",
                             type->short_name, AGX_WIRE_MEMORY_MAX);
    if (!m)
        return agx_error_set(u->err, u->blame, "the message is not a %s", type->short_name);
    memcpy(ret_message, &m, sizeof(void *)); /* object pointers are alike here */
    return 0;
}

int agx_unpack_fault(struct agx_unpack *u, const char *field, const char *fault)
{
    return agx_error_set(u->err, u->blame, "%s %s", field, fault);
}

int agx_unpack_count(struct agx_unpack *u, const char *field, size_t n, size_t max)
{
    if (n <= max)
        return 0;
    return agx_error_set(u->err, u->blame, "%s has more than %zu entries", field, max);
}

int agx_unpack_id(struct agx_unpack *u, const char *value, char **ret)
{
    char *copy = strdup(agx_text(value));

    if (!copy)
        return agx_error_no_memory(u->err);
    *ret = copy;
    return 0;
}

int agx_unpack_text(struct agx_unpack *u, const char *value, char **slot)
{
    return agx_text_set(slot, value, u->err);
}

int agx_unpack_bytes(struct agx_unpack *u, const ProtobufCBinaryData *value, struct agx_buf *ret)
{
    struct agx_buf copy = AGX_BUF_INIT(value->len);

    if (agx_buf_append(&copy, agx_str_bytes(value->data, value->len)) < 0)
        return agx_error_no_memory(u->err);
    *ret = copy;
    return 0;
}

int agx_unpack_words(struct agx_unpack *u, const char *field, size_t n, char *const *items,
                     struct agx_words *words)
{
    int r = agx_unpack_count(u, field, n, AGX_WORDS_MAX);

    for (size_t i = 0; r == 0 && i < n; i++)
        r = agx_words_add(words, agx_str_from(items[i]), u->err);
    return r;
}

/* A field of a map's entry: every map has the two fields key and value. */
static struct agx_str entry_text(const ProtobufCMessage *entry, unsigned i)
{
    const char *text;

    memcpy(&text, (const char *)entry + entry->descriptor->fields[i].offset, sizeof(text));
    return agx_str_from(text);
}

int agx_unpack_pairs(struct agx_unpack *u, const char *field, size_t n, const void *entries,
                     struct agx_pairs *pairs)
{
    int r = agx_unpack_count(u, field, n, AGX_PAIRS_MAX);

    for (size_t i = 0; r == 0 && i < n; i++) {
        const ProtobufCMessage *entry;

        memcpy(&entry, (const char *)entries + i * sizeof(void *), sizeof(void *));
        r = agx_pairs_set(pairs, entry_text(entry, 0), entry_text(entry, 1), u->err);
    }
    return r;
}

/* seconds and nanos as nanoseconds; false on overflow of int64_t. */
static bool join_ns(int64_t seconds, int32_t nanos, int64_t *ret)
{
    return !__builtin_mul_overflow(seconds, SECOND_NS, ret) &&
           !__builtin_add_overflow(*ret, (int64_t)nanos, ret) && *ret != AGX_NS_UNSET;
}

int agx_unpack_duration(struct agx_unpack *u, const char *field,
                        const Google__Protobuf__Duration *d, int64_t *ret)
{
    if (!d) {
        *ret = AGX_NS_UNSET;
        return 0;
    }
    if (d->nanos <= -SECOND_NS || d->nanos >= SECOND_NS || (d->seconds < 0 && d->nanos > 0) ||
        (d->seconds > 0 && d->nanos < 0))
        return agx_unpack_fault(u, field, "is no duration: seconds and nanos do not fit together");
    if (!join_ns(d->seconds, d->nanos, ret))
        return agx_unpack_fault(u, field, "is longer than 292 years");
    return 0;
}

int agx_unpack_time(struct agx_unpack *u, const char *field, const Google__Protobuf__Timestamp *t,
                    int64_t *ret)
{
    if (!t) {
        *ret = 0;
        return 0;
    }
    if (t->nanos < 0 || t->nanos >= SECOND_NS || !join_ns(t->seconds, t->nanos, ret))
        return agx_unpack_fault(u, field, "is no time between the years 1678 and 2262");
    return 0;
}
