/*
 * conn.h: a connected stream socket on the loop: reading with back-pressure, writing with one
 * send() a turn, deadlines, an orderly end.
 *
 * Raw system calls on a polled descriptor instead of uv_stream: no request and no copy for each
 * write, one read buffer for all connections of a group, and large messages are read straight to
 * where they will stay.
 */
#ifndef AGX_LOOP_CONN_H
#define AGX_LOOP_CONN_H

#include "base/buf.h"
#include "base/limits.h"

struct agx_loop;
struct agx_conn;
struct agx_conn_group;

struct agx_conn_config {
    size_t read_bytes;       /* read at most so much of one connection in a turn */
    size_t held_max;         /* bytes that its user has not taken yet; then reading pauses */
    size_t out_max;          /* bytes to be sent; more is refused */
    size_t out_high;         /* from here on it counts as slow: see `drained` */
    int socket_buffer_bytes; /* SO_SNDBUF and SO_RCVBUF; 0: the kernel's */
    uint64_t linger_ms;      /* how long a closed connection may take to send the rest */
};
#define AGX_CONN_CONFIG_INIT                                                                       \
    {                                                                                              \
        .read_bytes = AGX_CONN_READ_BYTES, .held_max = 2 * AGX_HTTP_HEAD_MAX,                      \
        .out_max = 2 * AGX_MESSAGE_MAX, .out_high = AGX_CONN_OUT_HIGH,                             \
        .linger_ms = AGX_CONN_LINGER_MS                                                            \
    }

/* What a connection tells its user. All on the loop thread, none inside a call of the user. */
struct agx_conn_ops {
    /* Bytes came, which may be changed. Returns how many are used up; the others come again with
     * more behind them, or after agx_conn_resume(). */
    size_t (*data)(void *user, uint8_t *data, size_t len);
    /* Optional pair: where the next bytes should go (len 0: nowhere special); so many went there.
     * data() follows, perhaps with no bytes. */
    void (*want)(void *user, uint8_t **ret_room, size_t *ret_len);
    void (*filled)(void *user, size_t n);
    /* The peer sends no more. Optional: without it the connection is closed. */
    void (*eof)(void *user);
    /* After more than out_high bytes had been waiting, all are sent. Optional. */
    void (*drained)(void *user);
    /* The deadline has passed, and data() has had what came before. Required where one is set. */
    void (*expired)(void *user);
    /* The end; the connection is gone. The callee owns `error` (NULL: an orderly end). */
    void (*closed)(void *user, struct agx_error *error);
};

/* One for each loop; its connections share a read buffer. */
int agx_conn_group_open(struct agx_loop *l, const struct agx_conn_config *config,
                        struct agx_conn_group **ret_group, struct agx_error **err) AGX_MUST_CHECK;
/* Aborts what is still connected; closed() of each follows. Returns NULL and accepts it. */
struct agx_conn_group *agx_conn_group_close(struct agx_conn_group *g);

/* Takes *take_fd (non-blocking, a stream socket) on success and sets it to -1. */
int agx_conn_open(struct agx_conn_group *g, int *take_fd, const struct agx_conn_ops *ops,
                  void *user, struct agx_conn **ret_conn, struct agx_error **err) AGX_MUST_CHECK;

/* Another user from now on: an HTTP connection that became a WebSocket. Bytes that the old one did
 * not take go to the new one. Allowed inside a callback. */
void agx_conn_hand_over(struct agx_conn *c, const struct agx_conn_ops *ops, void *user);

/*
 * The buffer to append to; what is in it leaves at the end of the present turn. Never take bytes
 * out of it. After agx_conn_close() it may still be used and leads nowhere.
 */
struct agx_buf *agx_conn_out(struct agx_conn *c);
/* Bytes that wait to be sent. */
size_t agx_conn_queued(const struct agx_conn *c);

/* No data() until agx_conn_resume(); the kernel's buffer fills and the peer has to wait. */
void agx_conn_pause(struct agx_conn *c);
/* Reading goes on, and data() comes for what was not taken, in a later turn. */
void agx_conn_resume(struct agx_conn *c);

/* expired() comes in `ms`; 0: no deadline. Cheap: may be set for every message. */
void agx_conn_deadline(struct agx_conn *c, uint64_t ms);

/* Sends what is queued, ends our direction, waits for the peer's end (at most linger_ms), closes.
 */
void agx_conn_close(struct agx_conn *c);
/* Closes at once; what is queued is lost. `*take_error` (or NULL) is what closed() gets. */
void agx_conn_abort(struct agx_conn *c, struct agx_error **take_error);

#endif
