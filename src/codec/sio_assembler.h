/*
 * sio_assembler.h: joins a Socket.IO packet and the binary packets that follow it.
 *
 * One assembler serves one direction of one session: feed it the Engine.IO message packets in the
 * order in which they came. A header and its attachments must be adjacent. Any other order is an
 * error, after which the session must be closed.
 */
#ifndef AGX_CODEC_SIO_ASSEMBLER_H
#define AGX_CODEC_SIO_ASSEMBLER_H

#include "codec/eio.h"
#include "codec/json_scan.h"
#include "codec/sio.h"

struct agx_sio_attachment {
    struct agx_str bytes;
    bool placed; /* its placeholder was seen; true for each of a complete message */
};

struct agx_sio_message {
    struct agx_sio_packet packet;
    struct agx_str name; /* an event's, without escapes; a number's digits; else empty */
    const struct agx_sio_attachment *attachments; /* packet.attachments of them */
    /* The only argument if that is one attachment (as in all our events), or NULL. */
    const struct agx_sio_attachment *sole;
};

struct agx_sio_assembler {
    struct agx_sio_limits limits;
    bool waiting;                   /* for attachments of `message` */
    size_t got;                     /* received attachments */
    struct agx_sio_message message; /* the message under construction */
    struct agx_buf header, name, bytes;
    struct agx_sio_attachment *attachments;
    size_t attachments_cap;
};

void agx_sio_assembler_init(struct agx_sio_assembler *a, const struct agx_sio_limits *limits);

/*
 * `p` is a message packet that agx_eio_decode_*() made. 1: *ret is complete; it is valid until the
 * next call and while the bytes of `p` are. 0: attachments are still to come. Negative:
 * malformed, out of order or over a limit; the assembler is empty then.
 */
int agx_sio_assembler_feed(struct agx_sio_assembler *a, const struct agx_eio_packet *p,
                           struct agx_sio_message *ret, struct agx_error **err) AGX_MUST_CHECK;

void agx_sio_assembler_done(struct agx_sio_assembler *a);

/* One argument of an event or acknowledgement. */
struct agx_sio_arg {
    struct agx_str json; /* as in the packet; placeholders inside it are unchanged */
    const struct agx_sio_attachment *attachment; /* if the whole argument is one, or NULL */
};

/* Walks over the arguments of a complete message; an event's name is not one. */
struct agx_sio_args {
    const struct agx_sio_message *message;
    struct agx_json_scan scan;
};

void agx_sio_args_init(struct agx_sio_args *it, const struct agx_sio_message *m);

/* False at the end, and for packets that have no arguments. */
bool agx_sio_args_next(struct agx_sio_args *it, struct agx_sio_arg *ret);

#endif
