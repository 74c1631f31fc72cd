/*
 * roll.h: things in the order of a list, so that a page of it costs what it has and no more.
 *
 * The array is read backwards: what is new is often the first of a list, and is then added at the
 * array's end.
 */
#ifndef AGX_DAEMON_ROLL_H
#define AGX_DAEMON_ROLL_H

#include <stddef.h>

/* Negative: `a` stands in front of `b`. No two are the same. */
typedef int (*agx_roll_order_fn)(const void *a, const void *b);

struct agx_roll {
    agx_roll_order_fn order;
    void **items; /* borrowed; the last of the list first */
    size_t len, cap;
};

void agx_roll_init(struct agx_roll *r, agx_roll_order_fn order);
/* `item` stays where it is, and does not change what `order` looks at, until it is removed. */
void agx_roll_add(struct agx_roll *r, void *item);
/* Many at once: adds without order, which is then made. */
void agx_roll_append(struct agx_roll *r, void *item);
void agx_roll_sort(struct agx_roll *r);
/* Nothing for what is not in it. */
void agx_roll_remove(struct agx_roll *r, const void *item);
/* How many stand in the list behind the place of something like `place`: items[0] up to there, to
 * be read backwards. */
size_t agx_roll_behind(const struct agx_roll *r, const void *place);
/* Accepts NULL. */
void agx_roll_done(struct agx_roll *r);

#endif
