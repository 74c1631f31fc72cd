/*
 * inbuf.h: bytes read from a lane, and the frames in them. A frame is parsed where it was read
 * into: one larger than what is left of the buffer makes it grow to that frame's size, so that its
 * bytes are copied once by the kernel and never by us. No I/O here.
 */
#ifndef AGX_PYEXT_INBUF_H
#define AGX_PYEXT_INBUF_H

#include "base/buf.h"

struct agx_inbuf {
    struct agx_buf buf;
    size_t at; /* where the next frame begins */
};

void agx_inbuf_init(struct agx_inbuf *in);

/*
 * 1: *ret_frame is the next frame's map, borrowed until the next call on `in` but _used().
 * 0: more bytes are needed. -AGX_RESOURCE_EXHAUSTED: past AGX_FRAME_MAX.
 */
int agx_inbuf_peek(const struct agx_inbuf *in, struct agx_str *ret_frame,
                   struct agx_error **err) AGX_MUST_CHECK;

/* The frame that agx_inbuf_peek() gave is done with. */
void agx_inbuf_used(struct agx_inbuf *in);

/* Where to read to: at least one byte, the rest of a large frame where one has begun. */
int agx_inbuf_room(struct agx_inbuf *in, uint8_t **ret_at, size_t *ret_len,
                   struct agx_error **err) AGX_MUST_CHECK;

/* `n` bytes were read there. */
void agx_inbuf_read(struct agx_inbuf *in, size_t n);

#endif
