/*
 * fence_text.h: the fence as text for nftables: its rules, and its elements, which are compared.
 * Pure: no I/O.
 *
 * An element is one word: the name of its set and what is put into it, such as
 * `own4 { "br-1" . 10.213.0.0/28 }`. Words are sorted, so that two states differ by a merge.
 */
#ifndef AGX_BACKEND_FENCE_TEXT_H
#define AGX_BACKEND_FENCE_TEXT_H

#include "backend/fence.h"
#include "backend/fence_host.h"
#include "base/buf.h"
#include "core/text.h"

/* The elements of one member. -AGX_INVALID_ARGUMENT for a bridge that is no name of an interface,
 * or without a subnet; -AGX_RESOURCE_EXHAUSTED for more than AGX_FENCE_EGRESS_MAX entries. */
int agx_fence_text_member(const struct agx_fence_member *m, struct agx_words *ret,
                          struct agx_error **err) AGX_MUST_CHECK;

/* The elements that stand for the host. */
int agx_fence_text_host(const struct agx_fence_host *h, struct agx_words *ret,
                        struct agx_error **err) AGX_MUST_CHECK;

/* Takes away a table of that name, if there is one. */
int agx_fence_text_drop(struct agx_buf *out, const char *table) AGX_MUST_CHECK;

/* The table without elements. */
int agx_fence_text_rules(struct agx_buf *out, const char *table, bool lan_blocked,
                         bool routed) AGX_MUST_CHECK;

/* What turns the elements `from` into `to`, in two halves: a set takes no element that overlaps
 * another, so that all that goes has to go first. */
int agx_fence_text_delete(struct agx_buf *out, const char *table, const struct agx_words *from,
                          const struct agx_words *to) AGX_MUST_CHECK;
int agx_fence_text_add(struct agx_buf *out, const char *table, const struct agx_words *from,
                       const struct agx_words *to) AGX_MUST_CHECK;

#endif
