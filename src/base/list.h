/*
 * list.h: doubly linked lists whose nodes are embedded in what they belong to. Queues too.
 *
 *     struct call { struct agx_list_node node; ... };
 *     struct session { struct agx_list calls; ... };
 *
 *     agx_list_push_back(&s->calls, &c->node);
 *     AGX_LIST_FOR_EACH (struct call, c, &s->calls, node)
 *         ...
 *     agx_list_remove(&c->node);
 *
 * Ownership. A list owns nothing and allocates nothing. Who frees an object removes it before.
 *
 * Invariants:
 *  (1) an empty list is all zero, and so is a node that is in no list: calloc() or `= { 0 }` makes
 *      either. A node that was removed is in no list; to remove it once more does nothing;
 *  (2) the nodes and `ends` are one ring. A node need not know its list to leave it;
 *  (3) a node is in one list at most (asserted). An object that is in two lists has two nodes.
 *  From (2): a list that is not empty, and a node that is in one, cannot be moved in memory.
 *
 * Complexity. All is O(1), but for walking.
 *
 * Walking. AGX_LIST_FOR_EACH reads the next element before its body runs. The body may remove and
 * free the current element; it must not remove the next one. Where a callback may remove others,
 * there are two safe ways:
 *
 *     the current one stays: read its successor after the callback
 *         for (c = AGX_LIST_FIRST(l, struct call, node); c; c = AGX_LIST_NEXT(l, c, node))
 *     each one goes: empty the list from its front, or move all to a list of one's own before, so
 *     that the loop does not meet what is added meanwhile. Whoever leaves leaves that list
 *         while ((c = AGX_LIST_TAKE(l, struct call, node)))
 *
 * Threads. None of its own: a list is its owner's, or under its owner's lock.
 */
#ifndef AGX_BASE_LIST_H
#define AGX_BASE_LIST_H

#include "base/macros.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

struct agx_list_node {
    struct agx_list_node *next, *prev; /* NULL: in no list */
};

struct agx_list {
    struct agx_list_node ends; /* next is the first, prev the last; NULL: empty */
};

static inline bool agx_list_is_empty(const struct agx_list *l)
{
    return !l->ends.next;
}

/* The node is in a list. */
static inline bool agx_list_has(const struct agx_list_node *n)
{
    return n->next;
}

/* Puts `n`, which is in no list, before `at`, which is in one. */
static inline void agx_list_insert_before(struct agx_list_node *at, struct agx_list_node *n)
{
    assert(agx_list_has(at) && !agx_list_has(n));
    n->next = at;
    n->prev = at->prev;
    at->prev->next = n;
    at->prev = n;
}

static inline void agx_list_close_ring_(struct agx_list *l)
{
    if (agx_list_is_empty(l))
        l->ends.next = l->ends.prev = &l->ends;
}

static inline void agx_list_push_front(struct agx_list *l, struct agx_list_node *n)
{
    agx_list_close_ring_(l);
    agx_list_insert_before(l->ends.next, n);
}

static inline void agx_list_push_back(struct agx_list *l, struct agx_list_node *n)
{
    agx_list_close_ring_(l);
    agx_list_insert_before(&l->ends, n);
}

/* Takes it out of its list; nothing happens when it is in none. */
static inline void agx_list_remove(struct agx_list_node *n)
{
    struct agx_list_node *next = n->next, *prev = n->prev;

    if (!next)
        return;
    if (next == prev) { /* both are the list's ends: it was the only one */
        next->next = next->prev = NULL;
    } else {
        prev->next = next;
        next->prev = prev;
    }
    n->next = n->prev = NULL;
}

/* Appends all of `from`, which is empty then, to `to`. */
static inline void agx_list_move(struct agx_list *to, struct agx_list *from)
{
    struct agx_list_node *first = from->ends.next, *last = from->ends.prev;

    assert(to != from);
    if (!first)
        return;
    agx_list_close_ring_(to);
    first->prev = to->ends.prev;
    first->prev->next = first;
    last->next = &to->ends;
    to->ends.prev = last;
    from->ends.next = from->ends.prev = NULL;
}

/* The first node, or NULL. Borrowed. */
static inline struct agx_list_node *agx_list_first(const struct agx_list *l)
{
    return l->ends.next;
}

/* The node after `n`, which is in `l`, or NULL. Borrowed. */
static inline struct agx_list_node *agx_list_next(const struct agx_list *l,
                                                  const struct agx_list_node *n)
{
    assert(agx_list_has(n));
    return n->next == &l->ends ? NULL : n->next;
}

/* Takes out the first node; NULL when there is none. */
static inline struct agx_list_node *agx_list_take(struct agx_list *l)
{
    struct agx_list_node *n = agx_list_first(l);

    if (n)
        agx_list_remove(n);
    return n;
}

static inline void *agx_list_entry_(struct agx_list_node *n, size_t offset)
{
    return n ? (char *)n - offset : NULL;
}

/* The same with the objects that the nodes are embedded in, as member `node`: `type *`, or NULL. */
#define AGX_LIST_FIRST(list, type, node)                                                           \
    ((type *)agx_list_entry_(agx_list_first(list), offsetof(type, node)))
#define AGX_LIST_TAKE(list, type, node)                                                            \
    ((type *)agx_list_entry_(agx_list_take(list), offsetof(type, node)))
#define AGX_LIST_NEXT(list, at, node)                                                              \
    ((__typeof__(*(at)) *)agx_list_entry_(agx_list_next((list), &(at)->node),                      \
                                          offsetof(__typeof__(*(at)), node)))

/* A loop over all of them, from the first on; `it` is declared here. See "Walking" above. A type
 * and a name cannot stand in parentheses. */
/* NOLINTBEGIN(bugprone-macro-parentheses) */
#define AGX_LIST_FOR_EACH(type, it, list, node)                                                    \
    for (type *it = AGX_LIST_FIRST(list, type, node), *it##_next_;                                 \
         it && (it##_next_ = AGX_LIST_NEXT(list, it, node), true); it = it##_next_)
/* NOLINTEND(bugprone-macro-parentheses) */

#endif
