/* digest.h: names of contents: "sha256:" and 64 small hexadecimal digits. */
#ifndef AGX_IMAGE_DIGEST_H
#define AGX_IMAGE_DIGEST_H

#include "codec/sha256.h"

#include <stdbool.h>

enum { AGX_DIGEST_SIZE = 72 }; /* with the NUL */

/* The text is one: also safe as part of a file name. */
bool agx_digest_is(struct agx_str text);

/* The digest of the bytes. Returns `out`. */
char *agx_digest_of(struct agx_str bytes, char out[AGX_DIGEST_SIZE]);

/* Ends the stream: the digest of what was added to it. Returns `out`. */
char *agx_digest_end(struct agx_sha256_stream *s, char out[AGX_DIGEST_SIZE]);

/* As the name of a file: "sha256-...". Returns `out`. */
char *agx_digest_file(const char *digest, char out[AGX_DIGEST_SIZE]);

#endif
