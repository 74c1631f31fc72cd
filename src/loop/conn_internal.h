/* conn_internal.h: what conn.c (one connection) and conn_group.c (all of a loop) share. */
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
    int events;        /* what is polled for */
    bool paused;       /* by the user */
    bool full;         /* `held` has no room: reading waits for agx_conn_resume() */
    bool redeliver;    /* data() is due for what is held */
    bool was_slow;     /* more than out_high bytes were waiting: drained() is due */
    bool eof;          /* the peer's direction has ended */
    bool mute;         /* the peer has closed: what we send is dropped, what it sent is read */
    bool looked;       /* the deadline has passed, and what had come by then is read next */
    uint64_t due_ms;   /* deadline in loop time, 0: none */
    uint64_t armed_ms; /* when the timer fires: not after due_ms */
    struct agx_buf held;
    struct agx_buf out;
    size_t out_at; /* so many bytes of `out` are sent */
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
    uv_prepare_t prepare; /* sends what timers and posts have queued */
    uv_check_t check;     /* sends what the turn's reads have queued */
    uv_idle_t again;      /* keeps the loop from sleeping while somebody is still in `dirty` */
    unsigned n_open;      /* handles, and connections */
    struct agx_list all, dirty; /* of struct agx_conn, the latest first */
    size_t count;
};

/* conn.c: what the connection has marked itself for: data() for what is held, and sending. */
void agx_conn_turn(struct agx_conn *c);

/* conn_group.c */
/* agx_conn_turn() follows in this turn of the loop; a closed connection is not marked. */
void agx_conn_group_mark(struct agx_conn *c);
void agx_conn_group_add(struct agx_conn *c);
/* Its memory still counts: agx_conn_group_released() follows. */
void agx_conn_group_remove(struct agx_conn *c);
/* A handle or a connection of the group is gone; with the last one, the group. */
void agx_conn_group_released(struct agx_conn_group *g);

#endif
