#include "codec/ws_handshake.h"
#include "tests/support/test.h"

/* The nonce of the RFC's example. */
static const uint8_t nonce[AGX_WS_NONCE_SIZE] = "the sample nonce";
static const char key[] = "dGhlIHNhbXBsZSBub25jZQ==";
static const char accept_of_key[] = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

static void read_head(enum agx_http_role role, const char *text, struct agx_http_head *ret)
{
    struct agx_http h;
    size_t used;

    agx_http_init(&h, role, 4096, 0);
    ASSERT_INT(1, agx_http_read_head(&h, agx_str_from(text), &used, ret, NULL));
}

TEST(ws_accept_of_the_rfc_example_is_its)
{
    char accept[AGX_WS_ACCEPT_LEN];

    agx_ws_accept(agx_str_from(key), accept);
    ASSERT_STR(agx_str_from(accept_of_key), agx_str_bytes(accept, sizeof(accept)));
}

TEST(ws_upgrade_request_and_answer_of_our_two_sides_fit)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(4096);
    struct agx_http_head head;
    struct agx_str got_key;

    ASSERT_OK(agx_http_write_request(&out, AGX_STR("GET"), AGX_STR("/socket.io/")));
    ASSERT_OK(agx_http_write_header(&out, AGX_STR("Host"), AGX_STR("h")));
    ASSERT_OK(agx_ws_write_upgrade(&out, nonce));
    ASSERT_OK(agx_http_write_end(&out));
    ASSERT_OK(agx_buf_push(&out, 0));
    read_head(AGX_HTTP_SERVER, (const char *)out.data, &head);
    ASSERT_TRUE(agx_ws_is_upgrade(&head, &got_key));
    ASSERT_STR(agx_str_from(key), got_key);
    {
        _cleanup_buf_ struct agx_buf answer = AGX_BUF_INIT(4096);

        ASSERT_OK(agx_ws_write_answer(&answer, got_key));
        ASSERT_OK(agx_buf_push(&answer, 0));
        read_head(AGX_HTTP_CLIENT, (const char *)answer.data, &head);
        ASSERT_OK(agx_ws_check_answer(&head, nonce, NULL));
    }
}

#define UPGRADE " HTTP/1.1\r\nHost: h\r\nUpgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\n"

TEST(ws_request_that_is_no_proper_upgrade_is_told_apart)
{
    static const char *const bad[] = {
        "GET / HTTP/1.1\r\nHost: h\r\n\r\n",
        "POST /" UPGRADE
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        "GET /" UPGRADE
        "Sec-WebSocket-Version: 8\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        "GET /" UPGRADE "Sec-WebSocket-Version: 13\r\n\r\n",
        "GET /" UPGRADE "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: short\r\n\r\n",
        "GET /" UPGRADE
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: !!!!IHNhbXBsZSBub25jZQ==\r\n\r\n",
    };
    struct agx_http_head head;
    struct agx_str got_key;

    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++) {
        read_head(AGX_HTTP_SERVER, bad[i], &head);
        ASSERT_FALSE(agx_ws_is_upgrade(&head, &got_key));
    }
    read_head(AGX_HTTP_SERVER,
              "GET /" UPGRADE
              "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
              &head);
    ASSERT_TRUE(agx_ws_is_upgrade(&head, &got_key));
}

TEST(ws_answer_that_does_not_accept_is_unavailable_with_the_reason)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL, *err2 = NULL;
    struct agx_http_head head;

    read_head(AGX_HTTP_CLIENT, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", &head);
    ASSERT_CODE(AGX_UNAVAILABLE, agx_ws_check_answer(&head, nonce, &err));
    ASSERT_MESSAGE(err, "404");
    read_head(AGX_HTTP_CLIENT,
              "HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
              "Sec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n\r\n",
              &head);
    ASSERT_CODE(AGX_UNAVAILABLE, agx_ws_check_answer(&head, nonce, &err2));
    ASSERT_MESSAGE(err2, "handshake");
}
