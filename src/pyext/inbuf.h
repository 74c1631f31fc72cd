/*
 * inbuf.h: bytes read from a lane, and the frames in them. A frame is parsed in place. If a frame
 * is larger than the rest of the buffer, the buffer grows to that frame's size, so that the kernel
 * copies its bytes once and we never do. No I/O here.
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

/* Drops the frame that agx_inbuf_peek() returned. */
void agx_inbuf_used(struct agx_inbuf *in);

/* Where to read to: at least one byte; if a large frame has begun, room for its rest. */
int agx_inbuf_room(struct agx_inbuf *in, uint8_t **ret_at, size_t *ret_len,
                   struct agx_error **err) AGX_MUST_CHECK;

/* `n` bytes were read there. */
void agx_inbuf_read(struct agx_inbuf *in, size_t n);

#endif
