/* http1_internal.h: what http1.c (heads) and http1_body.c share. */
#ifndef AGX_CODEC_HTTP1_INTERNAL_H
#define AGX_CODEC_HTTP1_INTERNAL_H

#include "codec/http1.h"

/* The state of a chunked body; see http1_body.c. */
enum chunk_state {
    CHUNK_SIZE,
    CHUNK_EXTENSION,
    CHUNK_SIZE_LF,
    CHUNK_DATA,
    CHUNK_DATA_CR,
    CHUNK_DATA_LF,
    CHUNK_TRAILER_START,
    CHUNK_TRAILER,
    CHUNK_TRAILER_LF,
    CHUNK_LAST_LF,
};

/* Sets the status to answer with and the error. */
int agx_http_fail(struct agx_http *h, unsigned status, struct agx_error **err, const char *what);

/* The reader is at the beginning of the body that `head` announces. */
int agx_http_begin_body(struct agx_http *h, const struct agx_http_head *head,
                        struct agx_error **err);

#endif
