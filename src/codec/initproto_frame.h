/*
 * initproto_frame.h: packets of init on a byte stream that may be cut anywhere: the standard input
 * and output of a container, which outlive the processes attached to them.
 *
 * A packet goes in frames of at most AGX_INIT_FRAME_MAX bytes, each with a keyed checksum. A reader
 * that lost its place looks for the next frame with a valid checksum. A sender without the key
 * cannot make such a frame, whatever bytes it writes into the stream. A writer that starts anew
 * sends AGX_INIT_FRAME_PAD zeros first: they complete a frame that was cut short before it.
 */
#ifndef AGX_CODEC_INITPROTO_FRAME_H
#define AGX_CODEC_INITPROTO_FRAME_H

#include "base/siphash.h"
#include "codec/initproto.h"

#define AGX_INIT_FRAME_HEAD 16
#define AGX_INIT_FRAME_DATA ((size_t)16 << 10)
#define AGX_INIT_FRAME_MAX (AGX_INIT_FRAME_HEAD + AGX_INIT_FRAME_DATA)
#define AGX_INIT_FRAME_PAD AGX_INIT_FRAME_MAX

/* The end of the stream that wrote a frame; a frame that is echoed back is ignored. */
enum agx_init_side { AGX_INIT_FROM_DAEMON = 1, AGX_INIT_FROM_INIT = 2 };

struct agx_init_frame {
    bool first, last; /* of its packet */
    struct agx_str data;
};

/*
 * Makes the head of a frame for the piece of a packet that begins at *at. *ret_data is the piece,
 * which follows the head on the stream; *at moves past it.
 */
void agx_init_frame_seal(const struct agx_siphash_key *key, enum agx_init_side side,
                         struct agx_str packet, size_t *at, uint8_t head[AGX_INIT_FRAME_HEAD],
                         struct agx_str *ret_data);

/*
 * Looks for a frame of that side. True: *ret is one, borrowed from `in`. False: more bytes are
 * needed; fewer than AGX_INIT_FRAME_MAX are left. In both cases *ret_used bytes of `in` are
 * consumed.
 */
bool agx_init_frame_next(const struct agx_siphash_key *key, enum agx_init_side side,
                         struct agx_str in, struct agx_init_frame *ret, size_t *ret_used);

#endif
