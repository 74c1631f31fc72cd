/*
 * hello.h: the handshake of client and server in Socket.IO's CONNECT
 * (docs/design/runtime-protocol.md, section 2).
 */
#ifndef AGX_CLIENT_HELLO_H
#define AGX_CLIENT_HELLO_H

#include "base/buf.h"

/* 128 bits in hex, with room for longer ones of later servers. */
enum { AGX_HELLO_SESSION_MAX = 128 };

struct agx_hello {
    struct agx_str session;
    bool resumed;
    uint64_t resume_ms, max_message;
};

/* Appends the auth map. Empty strings: no token, a new session. */
int agx_hello_encode(struct agx_buf *out, struct agx_str token, struct agx_str session,
                     uint64_t max_message) AGX_MUST_CHECK;

/*
 * Reads the server's answer. -AGX_FAILED_PRECONDITION when it has no `agentix` map of protocol 1:
 * then it is another program. *ret borrows from `json`.
 */
int agx_hello_decode(struct agx_str json, struct agx_hello *ret,
                     struct agx_error **err) AGX_MUST_CHECK;

#endif
