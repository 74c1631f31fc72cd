/*
 * jsonseq.h: JSON objects one after the other, as a stream brings them: cut apart, however the
 * bytes come. Blanks may stand between them, and nothing else.
 *
 *     while ((r = agx_jsonseq_next(&q, &in, &object, err)) > 0)
 *         ... object is the text of one, to be parsed ...
 *
 * Only strings and brackets are understood here; whether an object is valid is its parser's
 * question.
 */
#ifndef AGX_CODEC_JSONSEQ_H
#define AGX_CODEC_JSONSEQ_H

#include "base/buf.h"

struct agx_jsonseq {
    struct agx_buf held; /* the beginning of an object whose end has not come */
    bool given;          /* `held` was the last answer, and is used up */
    bool failed;
    size_t depth; /* open brackets */
    bool in_string, escaped;
};

/* `max`: bytes of one object. */
void agx_jsonseq_init(struct agx_jsonseq *q, size_t max);

/*
 * Takes bytes from the front of *in up to the end of an object. 1: *ret_object is its text, valid
 * until the next call and as long as `in`; 0: all of *in was taken, feed more.
 * -AGX_INVALID_ARGUMENT for anything but an object, -AGX_RESOURCE_EXHAUSTED for one that is too
 * long; nothing can be read after either.
 */
int agx_jsonseq_next(struct agx_jsonseq *q, struct agx_str *in, struct agx_str *ret_object,
                     struct agx_error **err) AGX_MUST_CHECK;

/* True between two objects: where an orderly end may come. */
bool agx_jsonseq_is_whole(const struct agx_jsonseq *q);

/* Accepts NULL. */
void agx_jsonseq_done(struct agx_jsonseq *q);

#endif
