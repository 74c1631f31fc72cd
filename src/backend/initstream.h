/*
 * initstream.h: a link to an agentix-init whose control channel is its standard input and output
 * (--control stdio), over whatever carries those bytes: an engine that attaches to a container.
 * docs/design/init.md
 *
 * An initlink of a kind that carries no logs. It connects, breaks and connects again for ever:
 * whether the sandbox still runs is for its owner to find out, unless the wire says that there is
 * no such thing any more. Loop thread only.
 */
#ifndef AGX_BACKEND_INITSTREAM_H
#define AGX_BACKEND_INITSTREAM_H

#include "backend/initlink.h"

struct agx_initstream;

/* What carries the bytes; `user` is the config's. */
struct agx_initstream_wire {
    /*
     * Begins to connect. One of the two reports follows, never inside the call. Called again after
     * each agx_initstream_closed() and close().
     */
    int (*connect)(void *user, struct agx_initstream *s, struct agx_error **err);
    /* All of the bytes or, with an error, none. They are copied. */
    int (*write)(void *user, struct agx_str bytes, struct agx_error **err);
    /* Ends the connection, if there is one: no report comes of it any more. */
    void (*close)(void *user);
    /* The link is gone, and `user` is not used any more; after close(). May be NULL. */
    void (*release)(void *user);
};

/* The wire's reports. A report may close the link: the wire looks for its own close() afterwards.
 */
void agx_initstream_opened(struct agx_initstream *s);
void agx_initstream_data(struct agx_initstream *s, struct agx_str bytes);
/* Refused, broken or ended. Takes the error, which may be NULL. -AGX_NOT_FOUND: there is nothing to
 * connect to any more, and the link is lost. */
void agx_initstream_closed(struct agx_initstream *s, struct agx_error *error);

struct agx_initstream_config {
    const struct agx_initstream_wire *wire;
    void *user;
    const char *key;     /* as init has it in AGENTIX_INIT_KEY; borrowed for the call of open */
    uint64_t connect_ms; /* from the start of a connection to init's answer; then another is made */
    uint64_t retry_ms, retry_max_ms; /* pauses between attempts: at first, and at most */
};

#define AGX_INITSTREAM_CONFIG_INIT                                                                 \
    {                                                                                              \
        .connect_ms = AGX_INITLINK_CONNECT_MS, .retry_ms = AGX_INITLINK_RETRY_MS,                  \
        .retry_max_ms = AGX_INITSTREAM_RETRY_MAX_MS                                                \
    }

/* Characters of a key, and one at random with its NUL. */
#define AGX_INITSTREAM_KEY_LEN 32
int agx_initstream_make_key(char ret_key[AGX_INITSTREAM_KEY_LEN + 1],
                            struct agx_error **err) AGX_MUST_CHECK;

/* -AGX_INVALID_ARGUMENT for a key that is none; the wire is not released then. */
int agx_initstream_open(struct agx_loop *loop, const struct agx_initstream_config *config,
                        const struct agx_initlink_ops *ops, void *user,
                        struct agx_initlink **ret_link, struct agx_error **err) AGX_MUST_CHECK;

#endif
