/* conn_internal.h: shared by conn.c (one connection) and conn_group.c (all of a loop). */
#ifndef AGX_LOOP_CONN_INTERNAL_H
#define AGX_LOOP_CONN_INTERNAL_H

#include "base/list.h"
#include "loop/conn.h"

#include <uv.h>

enum conn_state { CONN_OPEN, CONN_FLUSHING, CONN_LINGERING, CONN_CLOSED };

struct agx_conn {
    struct agx_conn_group *group;
    const struct agx_conn_ops *ops;
    void *user;
    int fd;
    enum conn_state state;
    int events;        /* polled events */
    bool paused;       /* by the user */
    bool full;         /* `held` has no room: reading waits for agx_conn_resume() */
    bool redeliver;    /* data() is due for held bytes */
    bool was_slow;     /* more than out_high bytes were waiting: drained() is due */
    bool eof;          /* the peer's direction has ended */
    bool mute;         /* the peer has closed: what we send is dropped, what it sent is read */
    bool looked;       /* the deadline has passed, and what had come by then is read next */
    uint64_t due_ms;   /* deadline in loop time, 0: none */
    uint64_t armed_ms; /* when the timer fires: never after due_ms */
    struct agx_buf held;
    struct agx_buf out;
    size_t out_at; /* sent bytes of `out` */
    struct agx_error *error;
    unsigned n_open; /* handles */
    uv_poll_t poll;
    uv_timer_t timer;
    struct agx_list_node dirty; /* among the group's that are looked at in this turn */
    struct agx_list_node node;  /* in the group's `all` */
};

struct agx_conn_group {
    struct agx_loop *loop;
    struct agx_conn_config config;
    uint8_t *scratch;
    uv_prepare_t prepare;       /* sends data queued by timers and posts */
    uv_check_t check;           /* sends data queued by the turn's reads */
    uv_idle_t again;            /* keeps the loop from sleeping while `dirty` is not empty */
    unsigned n_open;            /* handles, and connections */
    struct agx_list all, dirty; /* of struct agx_conn, the latest first */
    size_t count;
};

/* conn.c: does the marked connection's work: data() for held bytes, and sending. */
void agx_conn_turn(struct agx_conn *c);

/* conn_group.c */
/* agx_conn_turn() follows in this turn of the loop. No effect on a closed connection. */
void agx_conn_group_mark(struct agx_conn *c);
void agx_conn_group_add(struct agx_conn *c);
/* It still counts in n_open: agx_conn_group_released() follows. */
void agx_conn_group_remove(struct agx_conn *c);
/* Call for each closed handle or connection; the last one frees the group. */
void agx_conn_group_released(struct agx_conn_group *g);

#endif
