/*
 * eio_payload.h: bodies of Engine.IO polling requests and answers.
 *
 * A body is packets with the byte 0x1e between them; a binary packet is the letter 'b' and its
 * bytes in base64. The unchanged client drops the connection when a body has more than
 * AGX_EIO_PAYLOAD_PACKETS_MAX packets, hence the limit in both directions.
 */
#ifndef AGX_CODEC_EIO_PAYLOAD_H
#define AGX_CODEC_EIO_PAYLOAD_H

#include "base/limits.h"
#include "codec/eio.h"

struct agx_eio_limits {
    size_t packets_max; /* in one body */
    size_t bytes_max;   /* of one body */
};

#define AGX_EIO_LIMITS_INIT                                                                        \
    {                                                                                              \
        .packets_max = AGX_EIO_PAYLOAD_PACKETS_MAX, .bytes_max = AGX_MESSAGE_MAX                   \
    }

/* Walks over a body. */
struct agx_eio_reader {
    struct agx_str rest; /* not read yet; ptr is NULL when everything is read */
    size_t packets;      /* packets read so far */
    size_t packets_max;
    struct agx_buf bytes; /* the current binary packet, decoded */
};

/* `body` must outlive the reader. -AGX_RESOURCE_EXHAUSTED when it is larger than the limit. */
int agx_eio_reader_init(struct agx_eio_reader *rd, struct agx_str body,
                        const struct agx_eio_limits *limits, struct agx_error **err) AGX_MUST_CHECK;

/*
 * 1 and the next packet, 0 at the end, negative for a malformed or overlong body. The data of a
 * text packet are borrowed from the body; those of a binary one are valid until the next call.
 */
int agx_eio_reader_next(struct agx_eio_reader *rd, struct agx_eio_packet *ret,
                        struct agx_error **err) AGX_MUST_CHECK;

void agx_eio_reader_done(struct agx_eio_reader *rd);

/* Fills a body. */
struct agx_eio_writer {
    struct agx_buf *out; /* borrowed; the body begins where it ended at init */
    size_t start;
    size_t packets; /* written so far */
    struct agx_eio_limits limits;
};

void agx_eio_writer_init(struct agx_eio_writer *w, struct agx_buf *out,
                         const struct agx_eio_limits *limits);

/*
 * Appends `n` packets that must not be separated, such as a Socket.IO header and its attachments.
 * 1: written. 0: they do not fit behind what `out` has already; send that first. Negative: no body
 * can hold them, or there is no memory. `out` is unchanged except after 1.
 */
int agx_eio_writer_add(struct agx_eio_writer *w, const struct agx_eio_packet *unit, size_t n,
                       struct agx_error **err) AGX_MUST_CHECK;

#endif
