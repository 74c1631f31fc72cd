/*
 * eio.h: Engine.IO v4 packets, as WebSocket messages carry them.
 *
 * A text message is one digit (the type) and the packet's data; a binary message is the data of a
 * message packet, without a digit. Polling bodies: eio_payload.h. The open packet: eio_open.h.
 */
#ifndef AGX_CODEC_EIO_H
#define AGX_CODEC_EIO_H

#include "base/buf.h"

enum agx_eio_type {
    AGX_EIO_OPEN = 0,
    AGX_EIO_CLOSE = 1,
    AGX_EIO_PING = 2,
    AGX_EIO_PONG = 3,
    AGX_EIO_MESSAGE = 4,
    AGX_EIO_UPGRADE = 5,
    AGX_EIO_NOOP = 6,
};

struct agx_eio_packet {
    enum agx_eio_type type;
    bool binary; /* only a message packet can be */
    struct agx_str data;
};

/* The data of the ping and the pong that test a WebSocket before an upgrade. */
#define AGX_EIO_PROBE AGX_STR("probe")

/* True for the ping ("2probe") or pong ("3probe") of an upgrade. */
static inline bool agx_eio_is_probe(const struct agx_eio_packet *p, enum agx_eio_type type)
{
    return p->type == type && agx_str_eq(p->data, AGX_EIO_PROBE);
}

/* A text message; it must be valid UTF-8. *ret borrows from `text`. */
int agx_eio_decode_text(struct agx_str text, struct agx_eio_packet *ret,
                        struct agx_error **err) AGX_MUST_CHECK;

/* A binary message: any bytes are valid. */
static inline struct agx_eio_packet agx_eio_decode_binary(struct agx_str bytes)
{
    return (struct agx_eio_packet){ AGX_EIO_MESSAGE, true, bytes };
}

/* Appends the WebSocket message that carries `p`: a text or a binary one, as p->binary says. */
int agx_eio_encode(struct agx_buf *out, const struct agx_eio_packet *p) AGX_MUST_CHECK;

#endif
