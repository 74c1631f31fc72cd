/*
 * change.h: what the inputs of one turn changed of a unit, on its way to the store, and what
 * follows when it is there, or could not be stored.
 */
#ifndef AGX_DAEMON_CHANGE_H
#define AGX_DAEMON_CHANGE_H

#include "daemon/unit.h"

struct agx_change {
    struct agx_unit *unit;
    struct agx_stamp now;
    struct agx_list inputs; /* of struct agx_input: taken, in order */
    struct agx_change_event {
        struct agx_event event; /* owned */
        uint64_t position;
    } * events;
    size_t events_len;
    bool changed;      /* there is something to store */
    enum agx_do start; /* then, at the backend; */
    bool cancel;       /* end what runs; behind a `start`: end that before it begins */
    bool purge;
};

/* Begins: what is committed is kept beside. -AGX_RESOURCE_EXHAUSTED. */
int agx_change_begin(struct agx_unit *u, struct agx_change **ret,
                     struct agx_error **err) AGX_MUST_CHECK;
/* Each takes the event, if there is one. */
void agx_change_take(struct agx_change *c, struct agx_sandbox_output *out);
void agx_change_take_exec(struct agx_change *c, struct agx_active *x, struct agx_exec_output *out);
/* Before the first step of an exec. */
void agx_change_touch(struct agx_change *c, struct agx_active *x);
/* Stores it, or, where there is nothing to store, goes on at once. Frees the change, sooner or
 * later. */
void agx_change_end(struct agx_change *c);

#endif
