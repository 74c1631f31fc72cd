/* uuid.c: version 4 UUIDs from getrandom(2). */
#include "base/uuid.h"

#include "base/banned.h"

#include <errno.h>
#include <stdint.h>
#include <sys/random.h>

int agx_random_bytes(void *out, size_t n, struct agx_error **err)
{
    uint8_t *p = out;

    while (n > 0) {
        ssize_t got = getrandom(p, n, 0);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return agx_error_errno(err, errno, "get %zu random bytes", n);
        p += got;
        n -= (size_t)got;
    }
    return 0;
}

int agx_uuid_new(char out[AGX_UUID_TEXT_SIZE], struct agx_error **err)
{
    static const char hex[] = "0123456789abcdef";
    uint8_t b[16];
    int r = agx_random_bytes(b, sizeof(b), err);

    if (r < 0)
        return r;
    b[6] = (b[6] & 0x0f) | 0x40; /* version 4 */
    b[8] = (b[8] & 0x3f) | 0x80; /* the variant of RFC 4122 */
    for (size_t i = 0; i < sizeof(b); i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *out++ = '-';
        *out++ = hex[b[i] >> 4];
        *out++ = hex[b[i] & 15];
    }
    *out = '\0';
    return 0;
}
