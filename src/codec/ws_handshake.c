/* ws_handshake.c: from HTTP to WebSocket. */
#include "codec/ws_handshake.h"

#include "base/banned.h"
#include "codec/base64.h"
#include "codec/sha1.h"

enum { KEY_LEN = 24 }; /* base64 of AGX_WS_NONCE_SIZE bytes */

/* The RFC prescribes it. */
static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/* Base64 into a buffer of exactly the right size, so it cannot fail. */
static void encode_fixed(char *out, size_t out_len, struct agx_str bytes)
{
    struct agx_buf b = { .data = (uint8_t *)out, .cap = out_len, .max = out_len };

    (void)!agx_base64_encode(&b, bytes, true);
}

void agx_ws_accept(struct agx_str key, char ret_accept[AGX_WS_ACCEPT_LEN])
{
    char text[KEY_LEN + sizeof(guid) - 1];
    uint8_t digest[AGX_SHA1_SIZE];
    size_t n = AGX_MIN(key.len, (size_t)KEY_LEN);

    memcpy(text, key.ptr, n);
    memcpy(text + n, guid, sizeof(guid) - 1);
    agx_sha1(agx_str_bytes(text, n + sizeof(guid) - 1), digest);
    encode_fixed(ret_accept, AGX_WS_ACCEPT_LEN, agx_str_bytes(digest, sizeof(digest)));
}

static bool is_key(struct agx_str key)
{
    uint8_t nonce[AGX_WS_NONCE_SIZE + 2];
    struct agx_buf b = { .data = nonce, .cap = sizeof(nonce), .max = sizeof(nonce) };

    return key.len == KEY_LEN && agx_base64_decode(&b, key, NULL) == 0 &&
           b.len == AGX_WS_NONCE_SIZE;
}

bool agx_ws_is_upgrade(const struct agx_http_head *request, struct agx_str *ret_key)
{
    struct agx_str version;

    return agx_str_eq(request->method, AGX_STR("GET")) && request->minor == 1 && request->upgrade &&
           request->body == AGX_HTTP_NO_BODY &&
           agx_http_header_has(request, AGX_STR("upgrade"), AGX_STR("websocket")) &&
           agx_http_header_get(request, AGX_STR("sec-websocket-version"), &version) &&
           agx_str_eq(version, AGX_STR("13")) &&
           agx_http_header_get(request, AGX_STR("sec-websocket-key"), ret_key) && is_key(*ret_key);
}

int agx_ws_write_answer(struct agx_buf *out, struct agx_str key)
{
    char accept[AGX_WS_ACCEPT_LEN];

    agx_ws_accept(key, accept);
    return agx_buf_printf(out,
                          "HTTP/1.1 101 Switching Protocols\r\n"
                          "Upgrade: websocket\r\n"
                          "Connection: Upgrade\r\n"
                          "Sec-WebSocket-Accept: %.*s\r\n\r\n",
                          AGX_WS_ACCEPT_LEN, accept);
}

int agx_ws_write_upgrade(struct agx_buf *out, const uint8_t nonce[AGX_WS_NONCE_SIZE])
{
    char key[KEY_LEN];

    encode_fixed(key, sizeof(key), agx_str_bytes(nonce, AGX_WS_NONCE_SIZE));
    return agx_buf_printf(out,
                          "Upgrade: websocket\r\n"
                          "Connection: Upgrade\r\n"
                          "Sec-WebSocket-Version: 13\r\n"
                          "Sec-WebSocket-Key: %.*s\r\n",
                          KEY_LEN, key);
}

int agx_ws_check_answer(const struct agx_http_head *answer, const uint8_t nonce[AGX_WS_NONCE_SIZE],
                        struct agx_error **err)
{
    char key[KEY_LEN], want[AGX_WS_ACCEPT_LEN];
    struct agx_str got;

    if (answer->status != 101)
        return agx_error_set(err, AGX_UNAVAILABLE, "websocket: the server answered %u",
                             answer->status);
    encode_fixed(key, sizeof(key), agx_str_bytes(nonce, AGX_WS_NONCE_SIZE));
    agx_ws_accept(agx_str_bytes(key, sizeof(key)), want);
    if (!answer->upgrade ||
        !agx_http_header_has(answer, AGX_STR("upgrade"), AGX_STR("websocket")) ||
        !agx_http_header_get(answer, AGX_STR("sec-websocket-accept"), &got) ||
        !agx_str_eq(got, agx_str_bytes(want, sizeof(want))))
        return agx_error_set(err, AGX_UNAVAILABLE, "websocket: the server's handshake is wrong");
    return 0;
}
