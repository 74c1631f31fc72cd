/*
 * dockerstream.h: the frames in which the Docker Engine sends the output of a container or command
 * without a terminal: eight bytes of head (stream, three zeros, length in network order), then that
 * many bytes.
 *
 *     struct agx_dockerstream d = { 0 };
 *     while ((r = agx_dockerstream_next(&d, &in, &piece, err)) > 0)
 *         ... piece.stream, piece.bytes ...
 *
 * Nothing is copied, and the only state is the position in the current frame. A frame may have any
 * length, and is returned in as many pieces as its bytes arrive in.
 */
#ifndef AGX_CODEC_DOCKERSTREAM_H
#define AGX_CODEC_DOCKERSTREAM_H

#include "base/error.h"
#include "base/str.h"

enum agx_dockerstream_kind {
    AGX_DOCKERSTREAM_STDIN = 0, /* the engine echoes its input; treat it as stdout */
    AGX_DOCKERSTREAM_STDOUT = 1,
    AGX_DOCKERSTREAM_STDERR = 2,
    AGX_DOCKERSTREAM_SYSTEM = 3, /* not output: the engine's message about a failure */
};

struct agx_dockerstream {
    uint8_t head[8];
    uint8_t head_len; /* received bytes of the next head */
    uint32_t left;    /* bytes of the current frame still to come */
};

struct agx_dockerstream_piece {
    enum agx_dockerstream_kind stream;
    struct agx_str bytes; /* a view of the input; never empty */
};

/*
 * Takes the next piece from the front of *in. 1: *ret_piece is set; 0: all of *in was taken, feed
 * more; -AGX_DATA_LOSS: the frame is malformed, and nothing after it can be read.
 */
int agx_dockerstream_next(struct agx_dockerstream *d, struct agx_str *in,
                          struct agx_dockerstream_piece *ret_piece,
                          struct agx_error **err) AGX_MUST_CHECK;

/* True between two frames, where the stream may end. */
bool agx_dockerstream_is_whole(const struct agx_dockerstream *d);

#endif
