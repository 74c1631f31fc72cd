/*
 * descriptor_index.c: walks serialized FileDescriptorProtos for the names in them.
 *
 * protobuf-c has no code for google/protobuf/descriptor.proto, and we only need names: so this
 * reads the wire format itself.
 */
#include "wire/descriptor_index.h"

#include "base/buf.h"
#include "wire/field.h"

#include "base/banned.h"

enum { NAME_MAX_BYTES = 1024 };

/* Field numbers of google/protobuf/descriptor.proto. */
enum {
    SET_FILE = 1,
    FILE_NAME = 1,
    FILE_PACKAGE = 2,
    FILE_MESSAGE = 4,
    FILE_ENUM = 5,
    FILE_SERVICE = 6,
    MESSAGE_NESTED = 3,
    MESSAGE_ENUM = 4,
    SERVICE_METHOD = 2,
    ANY_NAME = 1, /* in messages, enums, services and methods */
};

struct agx_descriptor_file {
    struct agx_str bytes;
    struct agx_descriptor_file *next;
};

void agx_descriptors_init(struct agx_descriptors *d)
{
    static const struct agx_siphash_key seed; /* a constant seed: the names are ours */

    *d = (struct agx_descriptors){ 0 };
    agx_map_init(&d->files, seed);
    agx_map_init(&d->symbols, seed);
}

/* Finds the next field with bytes, and skips others. False at the end and on malformed input. */
static bool next_field(struct agx_str *in, uint64_t *ret_number, struct agx_str *ret_bytes)
{
    struct agx_field field;

    while (agx_field_next(in, &field)) {
        *ret_number = field.number;
        *ret_bytes = field.bytes;
        if (field.type == AGX_FIELD_BYTES)
            return true;
    }
    return false;
}

static struct agx_str find_field(struct agx_str in, uint64_t number)
{
    struct agx_str bytes;
    uint64_t found;

    while (next_field(&in, &found, &bytes)) {
        if (found == number)
            return bytes;
    }
    return (struct agx_str){ NULL, 0 };
}

/* Appends ".name" to the scope and enters it; the caller cuts it back. */
static int descriptor_index_enter(struct agx_descriptors *d, struct agx_descriptor_file *file,
                                  struct agx_buf *scope, struct agx_str name)
{
    int r = scope->len > 0 ? agx_buf_push(scope, '.') : 0;

    if (r == 0)
        r = agx_buf_append(scope, name);
    return r < 0 ? r : agx_map_put(&d->symbols, agx_buf_peek(scope), file, NULL);
}

static int add_service(struct agx_descriptors *d, const struct agx_buf *scope)
{
    const char **more = realloc(d->services, (d->service_count + 1) * sizeof(*more));

    if (!more)
        return -AGX_RESOURCE_EXHAUSTED;
    d->services = more;
    more[d->service_count] = agx_str_dup(agx_buf_peek(scope));
    if (!more[d->service_count])
        return -AGX_RESOURCE_EXHAUSTED;
    d->service_count++;
    return 0;
}

/* For each kind of declaration: which fields are nested declarations, and of which kind. */
enum kind { KIND_FILE, KIND_MESSAGE, KIND_ENUM, KIND_SERVICE, KIND_METHOD, KIND_NONE };

static enum kind kind_of(enum kind outer, uint64_t field)
{
    if (outer == KIND_FILE)
        return field == FILE_MESSAGE   ? KIND_MESSAGE
               : field == FILE_ENUM    ? KIND_ENUM
               : field == FILE_SERVICE ? KIND_SERVICE
                                       : KIND_NONE;
    if (outer == KIND_MESSAGE)
        return field == MESSAGE_NESTED ? KIND_MESSAGE
               : field == MESSAGE_ENUM ? KIND_ENUM
                                       : KIND_NONE;
    return outer == KIND_SERVICE && field == SERVICE_METHOD ? KIND_METHOD : KIND_NONE;
}

/* Registers all nested declarations; recursion is as deep as messages nest in our files. */
static int add_inner(struct agx_descriptors *d, struct agx_descriptor_file *file,
                     struct agx_buf *scope, enum kind outer, struct agx_str in)
{
    struct agx_str bytes;
    uint64_t field;
    int r = 0;

    while (r == 0 && next_field(&in, &field, &bytes)) {
        enum kind kind = kind_of(outer, field);
        size_t before = scope->len;

        if (kind == KIND_NONE)
            continue;
        r = descriptor_index_enter(d, file, scope, find_field(bytes, ANY_NAME));
        if (r == 0 && kind == KIND_SERVICE)
            r = add_service(d, scope);
        if (r == 0)
            r = add_inner(d, file, scope, kind, bytes);
        scope->len = before;
    }
    return r;
}

static int add_file(struct agx_descriptors *d, struct agx_str bytes)
{
    _cleanup_buf_ struct agx_buf scope = AGX_BUF_INIT(NAME_MAX_BYTES);
    struct agx_str name = find_field(bytes, FILE_NAME);
    struct agx_descriptor_file *file;
    int r;

    if (agx_map_get(&d->files, name))
        return 0;
    file = malloc(sizeof(*file));
    if (!file)
        return -AGX_RESOURCE_EXHAUSTED;
    *file = (struct agx_descriptor_file){ bytes, d->all };
    d->all = file;
    r = agx_map_put(&d->files, name, file, NULL);
    if (r == 0)
        r = agx_buf_append(&scope, find_field(bytes, FILE_PACKAGE));
    return r < 0 ? r : add_inner(d, file, &scope, KIND_FILE, bytes);
}

int agx_descriptors_add(struct agx_descriptors *d, struct agx_str set, struct agx_error **err)
{
    struct agx_str bytes;
    uint64_t field;

    while (next_field(&set, &field, &bytes)) {
        if (field == SET_FILE && add_file(d, bytes) < 0)
            return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "no memory for file descriptors");
    }
    if (set.len > 0)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "not a set of file descriptors");
    return 0;
}

static struct agx_str bytes_of(const struct agx_descriptor_file *file)
{
    return file ? file->bytes : (struct agx_str){ NULL, 0 };
}

struct agx_str agx_descriptors_by_name(const struct agx_descriptors *d, struct agx_str name)
{
    return bytes_of(agx_map_get(&d->files, name));
}

struct agx_str agx_descriptors_by_symbol(const struct agx_descriptors *d, struct agx_str symbol)
{
    return bytes_of(agx_map_get(&d->symbols, symbol));
}

void agx_descriptors_done(struct agx_descriptors *d)
{
    while (d->all) {
        struct agx_descriptor_file *file = d->all;

        d->all = file->next;
        free(file);
    }
    for (size_t i = 0; i < d->service_count; i++)
        free((void *)d->services[i]);
    free(d->services);
    agx_map_done(&d->files);
    agx_map_done(&d->symbols);
}
