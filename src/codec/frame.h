/*
 * frame.h: frames between agentix-server and the worker: the length as u32 little endian,
 * then a msgpack map of that many bytes. Length 0 stands for the empty map.
 *
 *     agx_frame_decoder_init(&d, AGX_MESSAGE_MAX);
 *     on bytes:  while ((r = agx_frame_decoder_next(&d, &in, &frame, err)) > 0)
 *                    handle(frame);
 *     on EOF:    r = agx_frame_decoder_end(&d, err);
 *
 *     agx_frame_begin(&w, out);
 *     agx_mp_write_map(&w, 2);
 *     ...
 *     r = agx_frame_end(&w, AGX_MESSAGE_MAX, err);
 */
#ifndef AGX_CODEC_FRAME_H
#define AGX_CODEC_FRAME_H

#include "codec/mp_writer.h"

#define AGX_FRAME_PREFIX_SIZE 4

struct agx_frame_decoder {
    size_t max; /* of one frame, without its prefix */
    uint8_t prefix[AGX_FRAME_PREFIX_SIZE];
    unsigned prefix_len; /* 0: between two frames */
    bool no_memory;      /* bytes of a frame were lost: reading cannot continue */
    struct agx_buf held; /* the start of a frame that came in several pieces */
};

/* `max` is the longest accepted frame; AGX_MESSAGE_MAX unless configured. */
void agx_frame_decoder_init(struct agx_frame_decoder *d, size_t max);

/*
 * Takes bytes off the front of *in. 1: *ret_frame is the next frame's map, valid until the next
 * call on `d` and no longer than the bytes of `in` (it points into them when they hold it whole).
 * 0: *in is used up.
 * A frame above the maximum is -AGX_RESOURCE_EXHAUSTED; its prefix alone shows it. So is a frame
 * for which there is no memory. The start of the next frame is then unknown, so every further call
 * fails too.
 */
int agx_frame_decoder_next(struct agx_frame_decoder *d, struct agx_str *in,
                           struct agx_str *ret_frame, struct agx_error **err) AGX_MUST_CHECK;

/* The peer closed: -AGX_DATA_LOSS when that was in the middle of a frame. */
int agx_frame_decoder_end(const struct agx_frame_decoder *d, struct agx_error **err) AGX_MUST_CHECK;

/* Accepts NULL. */
void agx_frame_decoder_done(struct agx_frame_decoder *d);

/* Starts `w` on a frame at the end of `out`; writes until agx_frame_end() are its map. */
void agx_frame_begin(struct agx_mp_writer *w, struct agx_buf *out);

/*
 * Ends `w` as agx_mp_writer_end() does and puts the length in front. A frame above `max` is
 * -AGX_RESOURCE_EXHAUSTED. On failure the buffer is as it was at agx_frame_begin().
 */
int agx_frame_end(struct agx_mp_writer *w, size_t max, struct agx_error **err) AGX_MUST_CHECK;

#endif
