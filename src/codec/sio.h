/*
 * sio.h: Socket.IO v5 packets (the default parser), as Engine.IO message packets carry them:
 *
 *     <type>[<attachments>-][<namespace>,][<ack id>][<JSON>]
 *
 * The JSON of a binary packet has placeholders instead of the bytes, which follow as separate
 * Engine.IO binary packets. sio_assembler.h joins them.
 */
#ifndef AGX_CODEC_SIO_H
#define AGX_CODEC_SIO_H

#include "base/buf.h"
#include "base/limits.h"

enum agx_sio_type {
    AGX_SIO_CONNECT = 0,
    AGX_SIO_DISCONNECT = 1,
    AGX_SIO_EVENT = 2,
    AGX_SIO_ACK = 3,
    AGX_SIO_CONNECT_ERROR = 4,
    AGX_SIO_BINARY_EVENT = 5,
    AGX_SIO_BINARY_ACK = 6,
};

struct agx_sio_packet {
    enum agx_sio_type type;
    bool has_id; /* an event that requests an acknowledgement, or an acknowledgement */
    uint64_t id;
    size_t attachments;  /* binary packets that follow; 0 except for the binary types */
    struct agx_str nsp;  /* begins with '/' */
    struct agx_str data; /* JSON; empty if there is none */
};

struct agx_sio_limits {
    size_t header_max;      /* bytes of a packet's text */
    size_t attachments_max; /* of one packet */
    size_t bytes_max;       /* of one packet's attachments together */
    unsigned depth_max;     /* nesting of its JSON */
};

#define AGX_SIO_LIMITS_INIT                                                                        \
    {                                                                                              \
        .header_max = AGX_SIO_HEADER_MAX, .attachments_max = AGX_SIO_ATTACHMENTS_MAX,              \
        .bytes_max = AGX_MESSAGE_MAX, .depth_max = AGX_DEPTH_MAX                                   \
    }

static inline bool agx_sio_is_binary(enum agx_sio_type t)
{
    return t == AGX_SIO_BINARY_EVENT || t == AGX_SIO_BINARY_ACK;
}

static inline bool agx_sio_is_event(enum agx_sio_type t)
{
    return t == AGX_SIO_EVENT || t == AGX_SIO_BINARY_EVENT;
}

/*
 * Reads a packet's text: the data of an Engine.IO text message. It is strict: no leading zeros, ids
 * only where they mean something, and data of the shape that the type requires (an event: an array
 * that begins with its name). *ret borrows from `text`, which need not be checked for UTF-8 before.
 */
int agx_sio_decode(struct agx_str text, const struct agx_sio_limits *limits,
                   struct agx_sio_packet *ret, struct agx_error **err) AGX_MUST_CHECK;

/* Appends the text of `p`; the caller has encoded its data. An empty nsp stands for "/". */
int agx_sio_encode(struct agx_buf *out, const struct agx_sio_packet *p) AGX_MUST_CHECK;

/*
 * Nearly all packets have this form, so they have a fast path without a JSON parser: an event in
 * namespace "/" without an ack id, whose only argument is one attachment.
 *
 *     51-["<name>",{"_placeholder":true,"num":0}]
 */
int agx_sio_encode_binary_event(struct agx_buf *out, struct agx_str name) AGX_MUST_CHECK;

/*
 * True if `text` (valid UTF-8) has exactly that form and a name without escapes; *ret_name is that
 * name. False says nothing about the packet: use agx_sio_decode().
 */
bool agx_sio_decode_binary_event(struct agx_str text, struct agx_str *ret_name);

/* "event", "connect error", ... for messages and logs. */
const char *agx_sio_type_name(enum agx_sio_type type);

#endif
