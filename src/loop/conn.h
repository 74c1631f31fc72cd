/*
 * conn.h: a connected stream socket on the loop: reads with back-pressure, one send() per turn,
 * deadlines, orderly close.
 *
 * It uses system calls on a polled descriptor instead of uv_stream: no request and no copy per
 * write, one read buffer for all connections of a group, and large messages are read directly into
 * their destination.
 */
#ifndef AGX_LOOP_CONN_H
#define AGX_LOOP_CONN_H

#include "base/buf.h"
#include "base/limits.h"

struct agx_loop;
struct agx_conn;
struct agx_conn_group;

struct agx_conn_config {
    size_t read_bytes;       /* most bytes read from one connection in a turn */
    size_t held_max;         /* unconsumed bytes at which reading pauses */
    size_t out_max;          /* most bytes to send; more is refused */
    size_t out_high;         /* with more to send it counts as slow: see `drained` */
    int socket_buffer_bytes; /* SO_SNDBUF and SO_RCVBUF; 0: the kernel's */
    uint64_t linger_ms;      /* how long a closed connection may take to send the rest */
};
#define AGX_CONN_CONFIG_INIT                                                                       \
    {                                                                                              \
        .read_bytes = AGX_CONN_READ_BYTES, .held_max = 2 * AGX_HTTP_HEAD_MAX,                      \
        .out_max = 2 * AGX_MESSAGE_MAX, .out_high = AGX_CONN_OUT_HIGH,                             \
        .linger_ms = AGX_CONN_LINGER_MS                                                            \
    }

/* A connection's callbacks. All on the loop thread, none inside a call of the user. */
struct agx_conn_ops {
    /* Received bytes, which may be modified. Returns how many were consumed; the others are
     * delivered again with more after them, or after agx_conn_resume(). */
    size_t (*data)(void *user, uint8_t *data, size_t len);
    /* Optional pair: where to store the next bytes (len 0: anywhere), and how many were stored
     * there. data() follows, perhaps with no bytes. */
    void (*want)(void *user, uint8_t **ret_room, size_t *ret_len);
    void (*filled)(void *user, size_t n);
    /* The peer's end of stream. Optional: without it the connection is closed. */
    void (*eof)(void *user);
    /* All is sent, after more than out_high bytes had been waiting. Optional. */
    void (*drained)(void *user);
    /* The deadline has passed, and data() got all earlier bytes. Required if one is set. */
    void (*expired)(void *user);
    /* The connection is closed and freed. The callee owns `error` (NULL: an orderly end). */
    void (*closed)(void *user, struct agx_error *error);
};

/* One per loop; its connections share a read buffer. */
int agx_conn_group_open(struct agx_loop *l, const struct agx_conn_config *config,
                        struct agx_conn_group **ret_group, struct agx_error **err) AGX_MUST_CHECK;
/* Aborts what is still connected; closed() of each follows. Returns NULL and accepts it. */
struct agx_conn_group *agx_conn_group_close(struct agx_conn_group *g);

/* Takes *take_fd (non-blocking, a stream socket) on success and sets it to -1. */
int agx_conn_open(struct agx_conn_group *g, int *take_fd, const struct agx_conn_ops *ops,
                  void *user, struct agx_conn **ret_conn, struct agx_error **err) AGX_MUST_CHECK;

/* Changes the user: for an HTTP connection that became a WebSocket. The new user gets the bytes
 * that the old one did not consume. Allowed inside a callback. */
void agx_conn_hand_over(struct agx_conn *c, const struct agx_conn_ops *ops, void *user);

/*
 * The buffer to append to; its content is sent at the end of the current turn. Never remove bytes
 * from it. After agx_conn_close() it may still be used, without effect.
 */
struct agx_buf *agx_conn_out(struct agx_conn *c);
/* Bytes that wait to be sent. */
size_t agx_conn_queued(const struct agx_conn *c);

/* Stops data() until agx_conn_resume(); the kernel's buffer fills and the peer must wait. */
void agx_conn_pause(struct agx_conn *c);
/* Resumes reading; data() gets unconsumed bytes in a later turn. */
void agx_conn_resume(struct agx_conn *c);

/* Calls expired() in `ms`; 0: no deadline. Cheap enough to set for every message. */
void agx_conn_deadline(struct agx_conn *c, uint64_t ms);

/* Sends queued bytes, shuts down our direction, waits for the peer's end (at most linger_ms),
 * closes.
 */
void agx_conn_close(struct agx_conn *c);
/* Closes at once and drops queued bytes. closed() gets `*take_error` (or NULL). */
void agx_conn_abort(struct agx_conn *c, struct agx_error **take_error);

#endif
