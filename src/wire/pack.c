/* pack.c: makes protobuf-c messages from core/'s structs. */
#include "wire/pack_internal.h"

#include "core/spec.h"

#include "google_protobuf_duration.pb-c.h"
#include "google_protobuf_timestamp.pb-c.h"

#include "base/banned.h"

#define SECOND_NS INT64_C(1000000000)

void agx_pack_init(struct agx_pack *p)
{
    agx_arena_init(&p->arena, SIZE_MAX); /* our own data is already limited */
}

int agx_pack_plain(const ProtobufCMessage *m, struct agx_buf *out)
{
    size_t size = protobuf_c_message_get_packed_size(m);
    int r = agx_buf_reserve(out, size);

    if (r == 0 && size > 0) /* an empty buffer has no pointer */
        out->len += protobuf_c_message_pack(m, out->data + out->len);
    return r;
}

int agx_pack(struct agx_pack *p, const ProtobufCMessage *m, struct agx_buf *out)
{
    int r = p->arena.exhausted ? -AGX_RESOURCE_EXHAUSTED : agx_pack_plain(m, out);

    agx_arena_done(&p->arena);
    return r;
}

void *agx_pack_messages(struct agx_pack *p, const ProtobufCMessageDescriptor *type, size_t n,
                        size_t *ret_n)
{
    ProtobufCMessage **pointers;
    char *messages;

    *ret_n = 0;
    if (n == 0)
        return NULL;
    pointers = agx_arena_alloc(&p->arena, n * sizeof(void *));
    messages = agx_arena_alloc(&p->arena, n * type->sizeof_message);
    if (!pointers || !messages)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        pointers[i] = (ProtobufCMessage *)(void *)(messages + i * type->sizeof_message);
        protobuf_c_message_init(type, pointers[i]);
    }
    *ret_n = n;
    return pointers;
}

void *agx_pack_pairs(struct agx_pack *p, const ProtobufCMessageDescriptor *entry,
                     const struct agx_pairs *pairs, size_t *ret_n)
{
    ProtobufCMessage **entries = agx_pack_messages(p, entry, pairs->len, ret_n);

    for (size_t i = 0; i < *ret_n; i++) {
        memcpy((char *)entries[i] + entry->fields[0].offset, &pairs->items[i].key, sizeof(char *));
        memcpy((char *)entries[i] + entry->fields[1].offset, &pairs->items[i].value,
               sizeof(char *));
    }
    return entries;
}

Google__Protobuf__Duration *agx_pack_duration(struct agx_pack *p, int64_t ns)
{
    Google__Protobuf__Duration *d;

    if (ns == AGX_NS_UNSET)
        return NULL;
    d = agx_arena_alloc(&p->arena, sizeof(*d));
    if (!d)
        return NULL;
    google__protobuf__duration__init(d);
    d->seconds = ns / SECOND_NS;
    d->nanos = (int32_t)(ns % SECOND_NS);
    return d;
}

void agx_pack_time(Google__Protobuf__Timestamp *t, int64_t ns)
{
    google__protobuf__timestamp__init(t);
    t->seconds = ns / SECOND_NS;
    t->nanos = (int32_t)(ns % SECOND_NS);
    if (t->nanos < 0) { /* nanos are positive, also before 1970 */
        t->seconds--;
        t->nanos += (int32_t)SECOND_NS;
    }
}
