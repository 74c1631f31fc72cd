/*
 * firewall_text.h: the firewall as nftables text: its rules, and its elements, which are compared.
 * Pure: no I/O.
 *
 * An element is one string: the name of its set and its value, such as `own4 { "br-1" .
 * 10.213.0.0/28 }`. They are sorted, so the difference of two states is a merge.
 */
#ifndef AGX_BACKEND_NET_FIREWALL_TEXT_H
#define AGX_BACKEND_NET_FIREWALL_TEXT_H

#include "backend/net/firewall.h"
#include "backend/net/firewall_host.h"
#include "base/buf.h"
#include "core/text.h"

/* The elements of one member. -AGX_INVALID_ARGUMENT for a bridge that is not a valid interface
 * name, or without a subnet; -AGX_RESOURCE_EXHAUSTED for more than AGX_FIREWALL_EGRESS_MAX entries.
 */
int agx_firewall_text_member(const struct agx_firewall_member *m, struct agx_words *ret,
                             struct agx_error **err) AGX_MUST_CHECK;

/* The elements for the host. */
int agx_firewall_text_host(const struct agx_firewall_host *h, struct agx_words *ret,
                           struct agx_error **err) AGX_MUST_CHECK;

/* Deletes the table of that name, if there is one. */
int agx_firewall_text_drop(struct agx_buf *out, const char *table) AGX_MUST_CHECK;

/* The table, without elements. */
int agx_firewall_text_rules(struct agx_buf *out, const char *table, bool lan_blocked,
                            bool routed) AGX_MUST_CHECK;

/* The commands that turn the elements `from` into `to`, in two halves: a set takes no element that
 * overlaps another, so the deletions must come first. */
int agx_firewall_text_delete(struct agx_buf *out, const char *table, const struct agx_words *from,
                             const struct agx_words *to) AGX_MUST_CHECK;
int agx_firewall_text_add(struct agx_buf *out, const char *table, const struct agx_words *from,
                          const struct agx_words *to) AGX_MUST_CHECK;

#endif
