/* ws_handshake.h: the HTTP exchange that opens a WebSocket (RFC 6455 section 4), both sides. */
#ifndef AGX_CODEC_WS_HANDSHAKE_H
#define AGX_CODEC_WS_HANDSHAKE_H

#include "codec/http1.h"

enum {
    AGX_WS_NONCE_SIZE = 16,
    AGX_WS_ACCEPT_LEN = 28, /* base64 of a SHA-1 */
};

/* The Sec-WebSocket-Accept that belongs to a Sec-WebSocket-Key; no NUL at its end. */
void agx_ws_accept(struct agx_str key, char ret_accept[AGX_WS_ACCEPT_LEN]);

/* Is this request a proper upgrade to WebSocket version 13? *ret_key is then a view of its key. */
bool agx_ws_is_upgrade(const struct agx_http_head *request, struct agx_str *ret_key);

/* Server: appends the whole "101 Switching Protocols". */
int agx_ws_write_answer(struct agx_buf *out, struct agx_str key) AGX_MUST_CHECK;

/* Client: appends the upgrade headers to a request; `nonce` is random. */
int agx_ws_write_upgrade(struct agx_buf *out,
                         const uint8_t nonce[AGX_WS_NONCE_SIZE]) AGX_MUST_CHECK;

/* Client: does this response accept the upgrade that was requested with `nonce`? */
int agx_ws_check_answer(const struct agx_http_head *answer, const uint8_t nonce[AGX_WS_NONCE_SIZE],
                        struct agx_error **err) AGX_MUST_CHECK;

#endif
