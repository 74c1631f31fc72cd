/* digest.c: digests by libcrypto, and as text. */
#include "image/digest.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/banned.h"

#define ALGORITHM "sha256"

struct agx_digest_sum {
    EVP_MD_CTX *context;
};

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

/* SHA-256 of plain memory fails for want of memory alone. */
static int digest_fail(struct agx_error **err)
{
    return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "no memory for a SHA-256 digest");
}

static void write_text(const uint8_t digest[AGX_DIGEST_BYTES], char out[AGX_DIGEST_SIZE])
{
    static const char digits[] = "0123456789abcdef";
    char *to = out + strlen(ALGORITHM ":");

    memcpy(out, ALGORITHM ":", strlen(ALGORITHM ":"));
    for (unsigned i = 0; i < AGX_DIGEST_BYTES; i++) {
        *to++ = digits[digest[i] >> 4];
        *to++ = digits[digest[i] & 15];
    }
    *to = '\0';
}

int agx_digest_raw(struct agx_str bytes, uint8_t ret_digest[AGX_DIGEST_BYTES],
                   struct agx_error **err)
{
    return EVP_Digest(bytes.ptr, bytes.len, ret_digest, NULL, EVP_sha256(), NULL)
               ? 0
               : digest_fail(err);
}

int agx_digest_of(struct agx_str bytes, char ret_digest[AGX_DIGEST_SIZE], struct agx_error **err)
{
    uint8_t digest[AGX_DIGEST_BYTES];
    int r = agx_digest_raw(bytes, digest, err);

    if (r == 0)
        write_text(digest, ret_digest);
    return r;
}

int agx_digest_sum_new(struct agx_digest_sum **ret_sum, struct agx_error **err)
{
    struct agx_digest_sum *s = calloc(1, sizeof(*s));

    if (!s || !(s->context = EVP_MD_CTX_new()) ||
        !EVP_DigestInit_ex(s->context, EVP_sha256(), NULL)) {
        agx_digest_sum_free(s);
        return digest_fail(err);
    }
    *ret_sum = s;
    return 0;
}

int agx_digest_sum_add(struct agx_digest_sum *sum, struct agx_str bytes, struct agx_error **err)
{
    return EVP_DigestUpdate(sum->context, bytes.ptr, bytes.len) ? 0 : digest_fail(err);
}

int agx_digest_sum_end(struct agx_digest_sum *sum, char ret_digest[AGX_DIGEST_SIZE],
                       struct agx_error **err)
{
    uint8_t digest[AGX_DIGEST_BYTES];

    if (!EVP_DigestFinal_ex(sum->context, digest, NULL))
        return digest_fail(err);
    write_text(digest, ret_digest);
    return 0;
}

struct agx_digest_sum *agx_digest_sum_free(struct agx_digest_sum *sum)
{
    if (sum)
        EVP_MD_CTX_free(sum->context);
    free(sum);
    return NULL;
}

char *agx_digest_file(const char *digest, char out[AGX_DIGEST_SIZE])
{
    (void)snprintf(out, AGX_DIGEST_SIZE, "%s", digest);
    out[strlen(ALGORITHM)] = '-';
    return out;
}
