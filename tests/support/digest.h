/* digest.h: digests in tests; a digest that cannot be computed fails the test. */
#ifndef AGX_TESTS_DIGEST_H
#define AGX_TESTS_DIGEST_H

#include "image/digest.h"
#include "tests/support/test.h"

/* Returns `out`. */
static inline char *test_digest_of(struct agx_str bytes, char out[AGX_DIGEST_SIZE])
{
    ASSERT_OK(agx_digest_of(bytes, out, NULL));
    return out;
}

#endif
