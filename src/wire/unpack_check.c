/* unpack_check.c: checks the strings of an encoded message. */
#include "wire/unpack_internal.h"

#include "base/utf8.h"
#include "wire/field.h"

#include "base/banned.h"

/* Deeper than any of our types; none is recursive. */
enum { LEVELS_MAX = 8, PATH_MAX_BYTES = 256 };

struct walk {
    enum agx_code blame;
    const char *names[LEVELS_MAX]; /* the path of fields to the current position */
    size_t levels;
};

static int fault(const struct walk *w, const char *what, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf path = AGX_BUF_INIT(PATH_MAX_BYTES);
    int r = 0;

    for (size_t i = 0; r == 0 && i < w->levels; i++)
        r = agx_buf_printf(&path, "%s%s", i > 0 ? "." : "", w->names[i]);
    if (path.len == 0)
        return agx_error_set(err, w->blame, "the message is %s", what);
    return agx_error_set(err, w->blame, "%.*s is %s", AGX_STR_ARG(agx_buf_peek(&path)), what);
}

static int check_message(struct walk *w, const ProtobufCMessageDescriptor *type,
                         struct agx_str bytes, struct agx_error **err);

static int check_field(struct walk *w, const ProtobufCFieldDescriptor *type, struct agx_str bytes,
                       struct agx_error **err)
{
    int r = 0;

    w->names[w->levels++] = type->name;
    if (type->type == PROTOBUF_C_TYPE_MESSAGE)
        r = check_message(w, type->descriptor, bytes, err);
    else if (type->type == PROTOBUF_C_TYPE_STRING && !agx_utf8_valid(bytes))
        r = fault(w, "not UTF-8", err);
    else if (type->type == PROTOBUF_C_TYPE_STRING && bytes.len > 0 &&
             memchr(bytes.ptr, 0, bytes.len))
        r = fault(w, "text with a NUL in it", err);
    w->levels--;
    return r;
}

static int check_message(struct walk *w, const ProtobufCMessageDescriptor *type,
                         struct agx_str bytes, struct agx_error **err)
{
    struct agx_field field;
    int r = 0;

    while (r == 0 && agx_field_next(&bytes, &field)) {
        const ProtobufCFieldDescriptor *known =
            protobuf_c_message_descriptor_get_field(type, field.number);

        if (known && field.type == AGX_FIELD_BYTES && w->levels < LEVELS_MAX)
            r = check_field(w, known, field.bytes, err);
    }
    return r == 0 && bytes.len > 0 ? fault(w, "malformed", err) : r;
}

int agx_unpack_check(const ProtobufCMessageDescriptor *type, struct agx_str bytes,
                     enum agx_code blame, struct agx_error **err)
{
    return check_message(&(struct walk){ .blame = blame }, type, bytes, err);
}
