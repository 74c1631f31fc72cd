/*
 * msgpack.h: reads and writes msgpack, the format of arguments and results, and converts it to
 * and from JSON.
 *
 *     struct agx_writer *w = agx_writer_new();
 *
 *     agx_writer_map(w, 1);                       {"name": "Ada"}
 *     agx_writer_cstr(w, "name");
 *     agx_writer_cstr(w, "Ada");
 *     r = agx_writer_bytes(w, &bytes, &len, &err);
 *
 * A writer's failure is sticky: later calls have no effect and agx_writer_bytes() reports it, so a
 * value is written as a list of calls with one check. agx_writer_new() may return NULL; that is
 * reported there too, because every function of a writer accepts NULL.
 */
#ifndef AGENTIX_MSGPACK_H
#define AGENTIX_MSGPACK_H

#include <agentix/error.h>

#include <stdint.h>

AGX_BEGIN_DECLS

struct agx_writer;

AGX_PUBLIC struct agx_writer *agx_writer_new(void);
AGX_PUBLIC struct agx_writer *agx_writer_free(struct agx_writer *w);
/* Empties it and clears its failure. */
AGX_PUBLIC void agx_writer_clear(struct agx_writer *w);

AGX_PUBLIC void agx_writer_nil(struct agx_writer *w);
AGX_PUBLIC void agx_writer_bool(struct agx_writer *w, bool v);
AGX_PUBLIC void agx_writer_int(struct agx_writer *w, int64_t v);
AGX_PUBLIC void agx_writer_uint(struct agx_writer *w, uint64_t v);
AGX_PUBLIC void agx_writer_double(struct agx_writer *w, double v);
/* Text must be UTF-8, else the writer fails. */
AGX_PUBLIC void agx_writer_str(struct agx_writer *w, const char *text, size_t len);
AGX_PUBLIC void agx_writer_cstr(struct agx_writer *w, const char *text);
AGX_PUBLIC void agx_writer_bin(struct agx_writer *w, const void *bytes, size_t len);
/* `count` values, or pairs of key and value, must follow. */
AGX_PUBLIC void agx_writer_array(struct agx_writer *w, size_t count);
AGX_PUBLIC void agx_writer_map(struct agx_writer *w, size_t count);
AGX_PUBLIC void agx_writer_ext(struct agx_writer *w, int8_t type, const void *bytes, size_t len);
/* Bytes that are already msgpack. */
AGX_PUBLIC void agx_writer_raw(struct agx_writer *w, const void *bytes, size_t len);
/*
 * One JSON value. {"$bytes": "<base64>"} becomes bin, {"$float": "nan"} (or "inf", "-inf") that
 * number. Invalid JSON fails with its offset, and the writer is unchanged.
 */
AGX_PUBLIC int agx_writer_json(struct agx_writer *w, const char *json, size_t len,
                               struct agx_error **err);

/* The bytes written so far; borrowed until the next call for `w`. */
AGX_PUBLIC int agx_writer_bytes(struct agx_writer *w, const void **ret_bytes, size_t *ret_len,
                                struct agx_error **err);

enum agx_value_type {
    AGX_VALUE_NIL,
    AGX_VALUE_BOOL,
    AGX_VALUE_UINT, /* 0 or more */
    AGX_VALUE_INT,  /* below 0 */
    AGX_VALUE_DOUBLE,
    AGX_VALUE_STR,
    AGX_VALUE_BIN,
    AGX_VALUE_ARRAY,
    AGX_VALUE_MAP,
    AGX_VALUE_EXT
};

/* One value. For a container it is the header; the elements are the values that follow. */
struct agx_value {
    enum agx_value_type type;
    int8_t ext_type; /* EXT */
    union {
        bool boolean;
        uint64_t u;
        int64_t i;
        double f;
        size_t count; /* ARRAY: elements; MAP: pairs */
        struct {
            const char *ptr; /* STR, BIN, EXT: a view of the input, no NUL at its end */
            size_t len;
        } bytes;
    } as;
};

/* On the caller's stack; its fields are the reader's own. */
struct agx_reader {
    const unsigned char *start, *at, *end;
};

/* Borrows the bytes, which must outlive the reader. */
AGX_PUBLIC void agx_reader_init(struct agx_reader *r, const void *bytes, size_t len);
AGX_PUBLIC bool agx_reader_at_end(const struct agx_reader *r);
/* The next value, or header of a container. A failure does not move the reader. */
AGX_PUBLIC int agx_reader_next(struct agx_reader *r, struct agx_value *ret_value,
                               struct agx_error **err);
/* Skips one whole value; its bytes are *ret_bytes (which may be NULL). */
AGX_PUBLIC int agx_reader_skip(struct agx_reader *r, const void **ret_bytes, size_t *ret_len,
                               struct agx_error **err);
/*
 * One whole value as JSON text on one line, ending in NUL; the caller frees it with free(). Bytes,
 * and text that is not UTF-8, become {"$bytes": "<base64>"}. Numbers that JSON lacks become
 * {"$float": "nan"}, arrays of numbers {"$ndarray": {"dtype", "shape", "data": "<base64>"}}, models
 * their fields, other extensions {"$ext": [type, "<base64>"]}. Keys that are not text become text.
 */
AGX_PUBLIC int agx_reader_json(struct agx_reader *r, char **ret_json, struct agx_error **err);

AGX_END_DECLS

#endif
