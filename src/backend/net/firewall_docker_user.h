/*
 * firewall_docker_user.h: lets members that no engine routes for pass an engine's packet filter.
 *
 * Docker forwards only what its own rules name, and keeps a chain for the rules of others,
 * DOCKER-USER. Where that chain exists, we insert two rules at its head: they accept packets from
 * and to our links. That skips only the rest of Docker's table: our own table still applies. Our
 * rules are recognised by their comment, the name of our table.
 */
#ifndef AGX_BACKEND_NET_FIREWALL_DOCKER_USER_H
#define AGX_BACKEND_NET_FIREWALL_DOCKER_USER_H

#include "base/error.h"

#include <stdint.h>

/* Where the chain is. */
#define AGX_FIREWALL_PASS_TABLE "filter"
#define AGX_FIREWALL_PASS_CHAIN "DOCKER-USER"

struct nft_ctx;

/* Sets both rules, or removes them when not `wanted`. Without the chain, the older packet filter is
 * tried (firewall_legacy.h); if that lacks it too, there is nothing to do. Blocks; for the thread
 * that owns `nft`. */
int agx_firewall_docker_user_set(struct nft_ctx *nft, const char *mark, bool wanted,
                                 struct agx_error **err) AGX_MUST_CHECK;

/* Finds the handles of the rules with that mark in the JSON of the chain, at most `max`; returns
 * how many there are. */
size_t agx_firewall_docker_user_find(const char *json, const char *mark, uint64_t *ret, size_t max);

#endif
