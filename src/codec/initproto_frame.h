/*
 * initproto_frame.h: packets of init on a byte stream that may be cut anywhere: the standard input
 * and output of a container, which outlive whoever is attached to them.
 *
 * A packet goes in frames of at most AGX_INIT_FRAME_MAX bytes, each with a keyed checksum. A reader
 * that lost its place looks for the next frame whose checksum holds, and nobody without the key can
 * make one, whatever bytes of his stand in the stream. A writer that begins anew sends
 * AGX_INIT_FRAME_PAD zeros first: they fill up a frame that was cut short before it.
 */
#ifndef AGX_CODEC_INITPROTO_FRAME_H
#define AGX_CODEC_INITPROTO_FRAME_H

#include "base/siphash.h"
#include "codec/initproto.h"

#define AGX_INIT_FRAME_HEAD 16
#define AGX_INIT_FRAME_DATA ((size_t)16 << 10)
#define AGX_INIT_FRAME_MAX (AGX_INIT_FRAME_HEAD + AGX_INIT_FRAME_DATA)
#define AGX_INIT_FRAME_PAD AGX_INIT_FRAME_MAX

/* Which end of the stream wrote it: a frame that is sent back does not count. */
enum agx_init_side { AGX_INIT_FROM_DAEMON = 1, AGX_INIT_FROM_INIT = 2 };

struct agx_init_frame {
    bool first, last; /* of its packet */
    struct agx_str data;
};

/*
 * The head of a frame for the next piece of a packet that is at *at; moves *at behind the piece,
 * which follows the head on the stream: *ret_data.
 */
void agx_init_frame_seal(const struct agx_siphash_key *key, enum agx_init_side side,
                         struct agx_str packet, size_t *at, uint8_t head[AGX_INIT_FRAME_HEAD],
                         struct agx_str *ret_data);

/*
 * Looks for a frame of that side. True: *ret, borrowed from `in`. Either way *ret_used bytes of
 * `in` are done with; false with less than AGX_INIT_FRAME_MAX left: more are needed.
 */
bool agx_init_frame_next(const struct agx_siphash_key *key, enum agx_init_side side,
                         struct agx_str in, struct agx_init_frame *ret, size_t *ret_used);

#endif
