/* challenge.h: WWW-Authenticate: how a registry wants to be shown who asks. No I/O. */
#ifndef AGX_IMAGE_CHALLENGE_H
#define AGX_IMAGE_CHALLENGE_H

#include "base/error.h"
#include "base/str.h"

enum agx_challenge_kind {
    AGX_CHALLENGE_NONE, /* nothing that we can do */
    AGX_CHALLENGE_BASIC,
    AGX_CHALLENGE_BEARER, /* a token, which another server gives */
};

struct agx_challenge {
    enum agx_challenge_kind kind;
    /* Of BEARER: the other server's address, and what to say there. NULL: not said. */
    char *realm, *service, *scope;
};

/* Of several challenges the best that we can meet. `c` is overwritten, and there is nothing to free
 * on failure. -AGX_DATA_LOSS for text that is none. */
int agx_challenge_parse(struct agx_challenge *c, struct agx_str text,
                        struct agx_error **err) AGX_MUST_CHECK;

/* Accepts NULL. */
void agx_challenge_done(struct agx_challenge *c);

#endif
