/*
 * roll.h: the sandboxes in the order of lists, so that a page costs what it has and no more.
 *
 * A new sandbox is the first of all lists: it stands at the end of an array that is read backwards.
 */
#ifndef AGX_DAEMON_ROLL_H
#define AGX_DAEMON_ROLL_H

#include "core/sandbox.h"

struct agx_roll {
    struct agx_sandbox **items; /* borrowed; the last of the list first */
    size_t len, cap;
};

/* `sb` stays where it is until it is removed. */
void agx_roll_add(struct agx_roll *r, struct agx_sandbox *sb);
/* Many at once: adds without order, which is then made. */
void agx_roll_append(struct agx_roll *r, struct agx_sandbox *sb);
void agx_roll_sort(struct agx_roll *r);
void agx_roll_remove(struct agx_roll *r, const struct agx_sandbox *sb);
/* How many stand in the list behind the place of a sandbox of that time and id: items[0] up to
 * there, to be read backwards. */
size_t agx_roll_behind(const struct agx_roll *r, int64_t created_ns, const char *id);
/* Accepts NULL. */
void agx_roll_done(struct agx_roll *r);

#endif
