/* challenge.h: parses WWW-Authenticate: which authentication a registry requires. No I/O. */
#ifndef AGX_IMAGE_CHALLENGE_H
#define AGX_IMAGE_CHALLENGE_H

#include "base/error.h"
#include "base/str.h"

enum agx_challenge_kind {
    AGX_CHALLENGE_NONE, /* none that we support */
    AGX_CHALLENGE_BASIC,
    AGX_CHALLENGE_BEARER, /* a token from another server */
};

struct agx_challenge {
    enum agx_challenge_kind kind;
    /* For BEARER: the token server's address, and its parameters. NULL: not given. */
    char *realm, *service, *scope;
};

/* Chooses the best of several challenges that we support. Overwrites `c`; a failure leaves nothing
 * to free. -AGX_DATA_LOSS for malformed text. */
int agx_challenge_parse(struct agx_challenge *c, struct agx_str text,
                        struct agx_error **err) AGX_MUST_CHECK;

/* Accepts NULL. */
void agx_challenge_done(struct agx_challenge *c);

#endif
