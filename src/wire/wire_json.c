/*
 * wire_json.c: prints messages as JSON, using protobuf-c's descriptors.
 *
 * Recursion is as deep as the types nest; none is recursive.
 */
#include "wire/wire_json.h"

#include "codec/base64.h"
#include "codec/json_text.h"
#include "wire/unpack_internal.h"

#include "agbox_v1_service.pb-c.h"
#include "agentix_v1_control.pb-c.h"
#include "agentix_v1_image.pb-c.h"

#include <inttypes.h>

#include "base/banned.h"

enum { BLANKS_A_LEVEL = 2, NANOS_DIGITS = 9 };

struct writer {
    struct agx_buf *out;
    unsigned level;
    bool no_time; /* a time could not be formatted */
};

static int wire_json_put(struct writer *w, const char *text)
{
    return agx_buf_append(w->out, agx_str_from(text));
}

static int put_line(struct writer *w)
{
    return agx_buf_printf(w->out, "\n%*s", (int)(w->level * BLANKS_A_LEVEL), "");
}

/* The start of element `i` of a list or object. */
static int put_next(struct writer *w, size_t i)
{
    int r = i > 0 ? wire_json_put(w, ",") : 0;

    return r < 0 ? r : put_line(w);
}

static int put_open(struct writer *w, const char *bracket)
{
    w->level++;
    return wire_json_put(w, bracket);
}

static int put_close(struct writer *w, const char *bracket, bool empty)
{
    int r;

    w->level--;
    r = empty ? 0 : put_line(w);
    return r < 0 ? r : wire_json_put(w, bracket);
}

static int put_name(struct writer *w, struct agx_str name)
{
    int r = agx_json_text_quote(w->out, name);

    return r < 0 ? r : wire_json_put(w, ": ");
}

/* Nothing, or a point with three, six or nine digits, as needed. */
static int put_nanos(struct writer *w, uint32_t nanos)
{
    int digits = NANOS_DIGITS;

    if (nanos == 0)
        return 0;
    for (int i = 0; i < 2 && nanos % 1000 == 0; i++) {
        nanos /= 1000;
        digits -= 3;
    }
    return agx_buf_printf(w->out, ".%0*" PRIu32, digits, nanos);
}

/* The years 1 to 9999, the range of RFC 3339. */
static int put_time(struct writer *w, const Google__Protobuf__Timestamp *t)
{
    static const int64_t first = -62135596800, last = 253402300799;
    time_t seconds = (time_t)t->seconds;
    struct tm tm = { 0 };
    int r;

    if (t->seconds < first || t->seconds > last || t->nanos < 0 || t->nanos > 999999999 ||
        !gmtime_r(&seconds, &tm)) {
        w->no_time = true;
        return -AGX_INTERNAL;
    }
    r = agx_buf_printf(w->out, "\"%04d-%02d-%02dT%02d:%02d:%02d", tm.tm_year + 1900, tm.tm_mon + 1,
                       tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
    if (r == 0)
        r = put_nanos(w, (uint32_t)t->nanos);
    return r < 0 ? r : wire_json_put(w, "Z\"");
}

/* "1.500s". */
static int put_duration(struct writer *w, const Google__Protobuf__Duration *d)
{
    bool negative = d->seconds < 0 || d->nanos < 0;
    uint64_t seconds = d->seconds < 0 ? -(uint64_t)d->seconds : (uint64_t)d->seconds;
    uint32_t nanos = d->nanos < 0 ? -(uint32_t)d->nanos : (uint32_t)d->nanos;
    int r;

    if (nanos > 999999999) {
        w->no_time = true;
        return -AGX_INTERNAL;
    }
    r = agx_buf_printf(w->out, "\"%s%" PRIu64, negative ? "-" : "", seconds);
    if (r == 0)
        r = put_nanos(w, nanos);
    return r < 0 ? r : wire_json_put(w, "s\"");
}

static int put_bytes(struct writer *w, const ProtobufCBinaryData *b)
{
    int r = wire_json_put(w, "\"");

    if (r == 0)
        r = agx_base64_encode(w->out, agx_str_bytes(b->data, b->len), true);
    return r < 0 ? r : wire_json_put(w, "\"");
}

static int put_enum(struct writer *w, const ProtobufCEnumDescriptor *type, int number)
{
    const ProtobufCEnumValue *known = protobuf_c_enum_descriptor_get_value(type, number);

    return known ? agx_json_text_quote(w->out, agx_str_from(known->name))
                 : agx_buf_printf(w->out, "%d", number);
}

static int put_message(struct writer *w, const ProtobufCMessage *m);

static int put_any_message(struct writer *w, const ProtobufCMessage *m)
{
    if (!m)
        return wire_json_put(w, "null");
    if (m->descriptor == &google__protobuf__timestamp__descriptor)
        return put_time(w, (const Google__Protobuf__Timestamp *)m);
    if (m->descriptor == &google__protobuf__duration__descriptor)
        return put_duration(w, (const Google__Protobuf__Duration *)m);
    return put_message(w, m);
}

/* Prints one value of the field's type; only types that our messages use. */
static int put_value(struct writer *w, const ProtobufCFieldDescriptor *f, const void *at)
{
    switch (f->type) {
    case PROTOBUF_C_TYPE_INT32:
        return agx_buf_printf(w->out, "%" PRId32, *(const int32_t *)at);
    case PROTOBUF_C_TYPE_UINT32:
        return agx_buf_printf(w->out, "%" PRIu32, *(const uint32_t *)at);
    case PROTOBUF_C_TYPE_UINT64:
        return agx_buf_printf(w->out, "\"%" PRIu64 "\"", *(const uint64_t *)at);
    case PROTOBUF_C_TYPE_BOOL:
        return wire_json_put(w, *(const protobuf_c_boolean *)at ? "true" : "false");
    case PROTOBUF_C_TYPE_ENUM:
        return put_enum(w, f->descriptor, *(const int *)at);
    case PROTOBUF_C_TYPE_STRING:
        return agx_json_text_quote(w->out, agx_str_from(*(char *const *)at));
    case PROTOBUF_C_TYPE_BYTES:
        return put_bytes(w, at);
    case PROTOBUF_C_TYPE_MESSAGE:
        return put_any_message(w, *(ProtobufCMessage *const *)at);
    default:
        return -AGX_UNIMPLEMENTED;
    }
}

static size_t value_size(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    default:
        return sizeof(int); /* enums: the only other type in our lists */
    }
}

/* A map is a list of messages with a key and a value. */
static bool is_map(const ProtobufCFieldDescriptor *f)
{
    const ProtobufCMessageDescriptor *entry = f->descriptor;

    return f->type == PROTOBUF_C_TYPE_MESSAGE && entry->n_fields == 2 &&
           strcmp(entry->fields[0].name, "key") == 0 && strcmp(entry->fields[1].name, "value") == 0;
}

static int put_entry(struct writer *w, const ProtobufCMessage *entry)
{
    const ProtobufCFieldDescriptor *f = entry->descriptor->fields;
    char *const *key = (char *const *)(const void *)((const char *)entry + f[0].offset);
    int r = put_name(w, agx_str_from(*key));

    return r < 0 ? r : put_value(w, &f[1], (const char *)entry + f[1].offset);
}

static int put_list(struct writer *w, const ProtobufCFieldDescriptor *f, const ProtobufCMessage *m)
{
    size_t n = *(const size_t *)(const void *)((const char *)m + f->quantifier_offset);
    const char *items = *(char *const *)(const void *)((const char *)m + f->offset);
    bool map = is_map(f);
    int r = put_open(w, map ? "{" : "[");

    for (size_t i = 0; r == 0 && i < n; i++) {
        const void *item = items + i * value_size(f->type);

        r = put_next(w, i);
        if (r == 0)
            r = map ? put_entry(w, *(ProtobufCMessage *const *)item) : put_value(w, f, item);
    }
    return r < 0 ? r : put_close(w, map ? "}" : "]", n == 0);
}

/* A field of a oneof is present only if it is the one that is set. */
static bool is_there(const ProtobufCFieldDescriptor *f, const ProtobufCMessage *m)
{
    return !(f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) ||
           *(const uint32_t *)(const void *)((const char *)m + f->quantifier_offset) == f->id;
}

static int put_message(struct writer *w, const ProtobufCMessage *m)
{
    size_t n = 0;
    int r = put_open(w, "{");

    for (unsigned i = 0; r == 0 && i < m->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &m->descriptor->fields[i];

        if (!is_there(f, m))
            continue;
        if ((r = put_next(w, n++)) < 0 || (r = put_name(w, agx_str_from(f->name))) < 0)
            return r;
        r = f->label == PROTOBUF_C_LABEL_REPEATED ? put_list(w, f, m)
                                                  : put_value(w, f, (const char *)m + f->offset);
    }
    return r < 0 ? r : put_close(w, "}", n == 0);
}

/* Finds a request or response message of any method. */
static const ProtobufCMessageDescriptor *wire_json_find(const char *name)
{
    static const ProtobufCServiceDescriptor *const services[] = {
        &agbox__v1__sandbox_service__descriptor, &agentix__v1__control_service__descriptor,
        &agentix__v1__image_service__descriptor
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(services); i++)
        for (unsigned k = 0; k < services[i]->n_methods; k++) {
            const ProtobufCMethodDescriptor *method = &services[i]->methods[k];

            if (strcmp(method->input->name, name) == 0)
                return method->input;
            if (strcmp(method->output->name, name) == 0)
                return method->output;
        }
    return NULL;
}

static int write_message(struct agx_buf *out, const ProtobufCMessage *m, struct agx_error **err)
{
    struct writer w = { .out = out };
    size_t before = out->len;
    int r = put_message(&w, m);

    if (r == 0)
        return 0;
    out->len = before;
    if (w.no_time)
        return agx_error_set(err, AGX_INTERNAL, "a time in the message is invalid");
    return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "no room for a %s as JSON",
                         m->descriptor->short_name);
}

int agx_wire_json(struct agx_buf *out, const char *message, struct agx_str bytes,
                  struct agx_error **err)
{
    const ProtobufCMessageDescriptor *type = wire_json_find(message);
    struct agx_unpack u;
    ProtobufCMessage *m;
    int r;

    if (!type)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "unknown message '%s'", message);
    agx_unpack_init(&u, AGX_INTERNAL, err);
    r = agx_unpack_message(&u, type, bytes, &m);
    if (r == 0)
        r = write_message(out, m, err);
    agx_unpack_done(&u);
    return r;
}
