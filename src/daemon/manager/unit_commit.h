/*
 * unit_commit.h: the changes that one turn's inputs made to a unit, on their way to the store, and
 * what happens once they are stored or could not be stored.
 */
#ifndef AGX_DAEMON_MANAGER_UNIT_COMMIT_H
#define AGX_DAEMON_MANAGER_UNIT_COMMIT_H

#include "daemon/manager/unit.h"

struct agx_unit_commit {
    struct agx_unit *unit;
    struct agx_stamp now;
    struct agx_list inputs; /* of struct agx_input: taken, in order */
    struct agx_unit_commit_event {
        struct agx_event event; /* owned */
        uint64_t position;
    } * events;
    size_t events_len;
    bool changed;      /* there is data to store */
    enum agx_do start; /* starts at the backend after the commit */
    bool cancel;       /* end the running operation; after a `start`: end it before it begins */
    bool purge;
};

/* Begins a change: keeps a copy of the committed state. -AGX_RESOURCE_EXHAUSTED. */
int agx_unit_commit_begin(struct agx_unit *u, struct agx_unit_commit **ret,
                          struct agx_error **err) AGX_MUST_CHECK;
/* Takes the output's event, if any. */
void agx_unit_commit_take(struct agx_unit_commit *c, struct agx_sandbox_output *out);
void agx_unit_commit_take_exec(struct agx_unit_commit *c, struct agx_exec_unit *x,
                               struct agx_exec_output *out);
/* Call before the first step of an exec. */
void agx_unit_commit_touch(struct agx_unit_commit *c, struct agx_exec_unit *x);
/* Stores the change, or goes on at once when there is nothing to store. Frees the change, now or
 * later. */
void agx_unit_commit_end(struct agx_unit_commit *c);

#endif
