/* channel.h: bytes to and from the daemon, over a socket pair or standard input and output; and the
 * one reply that waits for room. */
#ifndef AGX_INIT_CHANNEL_H
#define AGX_INIT_CHANNEL_H

#include "codec/initproto_frame.h"

struct agx_pid1;

/* A reply that belongs to no command; while one is pending, nothing is read from the daemon. */
struct agx_reply {
    bool due;
    struct agx_init_msg msg;
    char id[AGX_INIT_ID_MAX + 1];
    char text[AGX_INIT_TEXT_MAX];
};

struct agx_channel {
    bool stdio;
    int fd;          /* of the daemon that said HELLO (stdio: our input); -1: none */
    int spare_fd;    /* our end of the pair for the next daemon; -1: none */
    bool blocked;    /* a send must wait for room */
    uint32_t events; /* what `fd` is polled for */
    struct agx_siphash_key key;
    uint8_t in[2 * AGX_INIT_FRAME_MAX]; /* a packet; stdio: received bytes */
    size_t in_len;
    uint8_t *packet; /* stdio: assembled from frames */
    size_t packet_len;
    bool in_packet;
    bool more;                           /* stdio: some of `in` is not processed yet */
    uint8_t out[4 * AGX_INIT_FRAME_MAX]; /* stdio: bytes to write */
    size_t out_len;
};

bool agx_channel_open(struct agx_pid1 *p, bool stdio, const char **ret_why);
/* False: not now. It is tried again when there is room. */
bool agx_channel_send(struct agx_pid1 *p, const struct agx_init_msg *m);
/* Reads the daemon's messages and passes them to agx_dispatch(). */
void agx_channel_readable(struct agx_pid1 *p, bool spare);
void agx_channel_writable(struct agx_pid1 *p);
void agx_channel_hung_up(struct agx_pid1 *p);
/* After each turn: sets what to wait for. */
void agx_channel_rest(struct agx_pid1 *p);

#endif
