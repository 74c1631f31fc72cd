/*
 * jsonseq.h: splits a stream into JSON objects, however its bytes are cut. Only blanks may stand
 * between the objects.
 *
 *     while ((r = agx_jsonseq_next(&q, &in, &object, err)) > 0)
 *         ... object is the text of one, to be parsed ...
 *
 * This code only looks at strings and brackets; the parser of an object checks that it is valid.
 */
#ifndef AGX_CODEC_JSONSEQ_H
#define AGX_CODEC_JSONSEQ_H

#include "base/buf.h"

struct agx_jsonseq {
    struct agx_buf held; /* the beginning of an object whose end has not come */
    bool given;          /* `held` was the last object returned, and can be dropped */
    bool failed;
    size_t depth; /* open brackets */
    bool in_string, escaped;
};

/* `max`: the largest size of one object. */
void agx_jsonseq_init(struct agx_jsonseq *q, size_t max);

/*
 * Takes bytes from the front of *in up to the end of an object. 1: *ret_object is its text, valid
 * until the next call and as long as `in`; 0: all of *in was taken, feed more.
 * -AGX_INVALID_ARGUMENT: this is not an object; -AGX_RESOURCE_EXHAUSTED: the object is too long.
 * Nothing can be read after either.
 */
int agx_jsonseq_next(struct agx_jsonseq *q, struct agx_str *in, struct agx_str *ret_object,
                     struct agx_error **err) AGX_MUST_CHECK;

/* True between two objects, where the stream may end. */
bool agx_jsonseq_is_whole(const struct agx_jsonseq *q);

/* Accepts NULL. */
void agx_jsonseq_done(struct agx_jsonseq *q);

#endif
