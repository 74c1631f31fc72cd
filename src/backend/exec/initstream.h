/*
 * initstream.h: a link to an agentix-init whose control channel is its standard input and output
 * (--control stdio). The transport is pluggable, such as an engine that attaches to a container.
 * docs/design/init.md
 *
 * A kind of initlink that carries no logs. It reconnects for ever: its owner must find out whether
 * the sandbox still runs, unless the transport reports that the other end does not exist any more.
 * Loop thread only.
 */
#ifndef AGX_BACKEND_EXEC_INITSTREAM_H
#define AGX_BACKEND_EXEC_INITSTREAM_H

#include "backend/exec/initlink.h"

struct agx_initstream;

/* The transport; `user` is the config's. */
struct agx_initstream_wire {
    /*
     * Begins to connect. One of the two reports follows, never inside the call. Called again after
     * each agx_initstream_closed() and close().
     */
    int (*connect)(void *user, struct agx_initstream *s, struct agx_error **err);
    /* Copies and sends all of the bytes or, with an error, none. */
    int (*write)(void *user, struct agx_str bytes, struct agx_error **err);
    /* Ends the connection, if there is one: no further report comes from it. */
    void (*close)(void *user);
    /* The link is gone and does not use `user` any more; comes after close(). May be NULL. */
    void (*release)(void *user);
};

/* Reports of the transport. A report may close the link, so the transport must check for its own
 * close() afterwards. */
void agx_initstream_opened(struct agx_initstream *s);
void agx_initstream_data(struct agx_initstream *s, struct agx_str bytes);
/* Refused, broken or ended. Takes the error, which may be NULL. -AGX_NOT_FOUND: the other end does
 * not exist any more, and the link is lost. */
void agx_initstream_closed(struct agx_initstream *s, struct agx_error *error);

struct agx_initstream_config {
    const struct agx_initstream_wire *wire;
    void *user;
    const char *key;     /* value of init's AGENTIX_INIT_KEY; borrowed for the call of open */
    uint64_t connect_ms; /* from connecting to init's answer; then it reconnects */
    uint64_t retry_ms, retry_max_ms; /* pauses between attempts: first, and maximum */
};

#define AGX_INITSTREAM_CONFIG_INIT                                                                 \
    {                                                                                              \
        .connect_ms = AGX_INITLINK_CONNECT_MS, .retry_ms = AGX_INITLINK_RETRY_MS,                  \
        .retry_max_ms = AGX_INITSTREAM_RETRY_MAX_MS                                                \
    }

/* The length of a key, and a function that makes a random one with its NUL. */
#define AGX_INITSTREAM_KEY_LEN 32
int agx_initstream_make_key(char ret_key[AGX_INITSTREAM_KEY_LEN + 1],
                            struct agx_error **err) AGX_MUST_CHECK;

/* -AGX_INVALID_ARGUMENT for an invalid key; `release` is not called then. */
int agx_initstream_open(struct agx_loop *loop, const struct agx_initstream_config *config,
                        const struct agx_initlink_ops *ops, void *user,
                        struct agx_initlink **ret_link, struct agx_error **err) AGX_MUST_CHECK;

#endif
