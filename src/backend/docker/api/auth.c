/* auth.c: X-Registry-Auth. */
#include "backend/docker/api/auth.h"

#include "base/json.h"
#include "codec/base64.h"

#include "base/banned.h"

char *agx_docker_auth(const struct agx_credentials *c)
{
    _cleanup_buf_ struct agx_buf json = AGX_BUF_INIT(AGX_CREDENTIALS_MAX),
                                 text = AGX_BUF_INIT(2 * AGX_CREDENTIALS_MAX);
    _cleanup_json_ json_t *value =
        c->user ? json_pack("{s:s,s:s,s:s}", "username", c->user, "password", c->secret,
                            "serveraddress", c->server)
                : json_pack("{s:s,s:s}", "identitytoken", c->secret, "serveraddress", c->server);

    if (!value || agx_json_write(value, &json, NULL) < 0 ||
        agx_base64_encode(&text, agx_buf_peek(&json), true) < 0)
        return NULL;
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] == '+')
            text.data[i] = '-';
        if (text.data[i] == '/')
            text.data[i] = '_';
    }
    return agx_buf_take_cstr(&text);
}
