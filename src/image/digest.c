/* digest.c: digests as text. */
#include "image/digest.h"

#include <stdio.h>

#include "base/banned.h"

#define ALGORITHM "sha256"

bool agx_digest_is(struct agx_str text)
{
    if (text.len != AGX_DIGEST_SIZE - 1 || !agx_str_starts(text, AGX_STR(ALGORITHM ":")))
        return false;
    for (size_t i = strlen(ALGORITHM ":"); i < text.len; i++)
        if (!(text.ptr[i] >= '0' && text.ptr[i] <= '9') &&
            !(text.ptr[i] >= 'a' && text.ptr[i] <= 'f'))
            return false;
    return true;
}

static char *write_text(const uint8_t digest[AGX_SHA256_SIZE], char out[AGX_DIGEST_SIZE])
{
    char hex[AGX_SHA256_TEXT_SIZE];

    (void)snprintf(out, AGX_DIGEST_SIZE, ALGORITHM ":%s", agx_sha256_hex(digest, hex));
    return out;
}

char *agx_digest_of(struct agx_str bytes, char out[AGX_DIGEST_SIZE])
{
    uint8_t digest[AGX_SHA256_SIZE];

    agx_sha256(bytes, digest);
    return write_text(digest, out);
}

char *agx_digest_end(struct agx_sha256_stream *s, char out[AGX_DIGEST_SIZE])
{
    uint8_t digest[AGX_SHA256_SIZE];

    agx_sha256_end(s, digest);
    return write_text(digest, out);
}

char *agx_digest_file(const char *digest, char out[AGX_DIGEST_SIZE])
{
    (void)snprintf(out, AGX_DIGEST_SIZE, "%s", digest);
    out[strlen(ALGORITHM)] = '-';
    return out;
}
