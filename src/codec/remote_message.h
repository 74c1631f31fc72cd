/*
 * remote_message.h: the messages about a call, apart from its request: reads the server's events,
 * writes the client's messages (docs/design/runtime-protocol.md, 1). Values stay raw msgpack.
 */
#ifndef AGX_CODEC_REMOTE_MESSAGE_H
#define AGX_CODEC_REMOTE_MESSAGE_H

#include "codec/mp_reader.h"
#include "codec/mp_writer.h"
#include "codec/remote_flow.h"

/* ---- from the server ---- */

/* Every view is borrowed from the payload. An absent field is empty or 0. */
struct agx_remote_message {
    struct agx_str call_id;
    uint64_t seq;
    struct agx_str value, error; /* raw; the error is a map */
    bool has_totals;             /* of a credit */
    uint64_t n, bytes;
};

/* -AGX_INVALID_ARGUMENT or -AGX_RESOURCE_EXHAUSTED: the message is malformed. */
int agx_remote_message_read(struct agx_str payload, struct agx_remote_message *ret,
                            struct agx_error **err) AGX_MUST_CHECK;

/* resume:done. Both lists borrow from the payload. */
struct agx_resume_done {
    struct agx_mp_reader known, unknown;
    uint32_t n_known, n_unknown; /* elements not yet taken */
};

int agx_resume_done_read(struct agx_str payload, struct agx_resume_done *ret,
                         struct agx_error **err) AGX_MUST_CHECK;
/* 1: the next call, and the number up to which the server has its input; 0: no more. */
int agx_resume_done_known(struct agx_resume_done *d, struct agx_str *ret_id, uint64_t *ret_seq,
                          struct agx_error **err) AGX_MUST_CHECK;
int agx_resume_done_unknown(struct agx_resume_done *d, struct agx_str *ret_id,
                            struct agx_error **err) AGX_MUST_CHECK;

/* ---- from the client ---- */

void agx_remote_write_cancel(struct agx_mp_writer *w, struct agx_str id);
/* The totals that `f` grants. */
void agx_remote_write_credit(struct agx_mp_writer *w, struct agx_str id,
                             const struct agx_remote_flow *f);
/* A piece of input without its item, which must follow unless the piece is the end. */
void agx_remote_write_input(struct agx_mp_writer *w, struct agx_str id, uint64_t seq, bool end);

/* The head of `ack` and `resume`: `n` elements follow. An `ack` has two for each call. */
void agx_remote_write_list(struct agx_mp_writer *w, size_t n);
void agx_remote_write_acked(struct agx_mp_writer *w, struct agx_str id,
                            const struct agx_remote_flow *f);
void agx_remote_write_resumed(struct agx_mp_writer *w, struct agx_str id,
                              const struct agx_remote_flow *f);

#endif
