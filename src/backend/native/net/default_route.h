/*
 * default_route.h: the host's default route: its interface, and the host's addresses there.
 */
#ifndef AGX_BACKEND_NATIVE_NET_DEFAULT_ROUTE_H
#define AGX_BACKEND_NATIVE_NET_DEFAULT_ROUTE_H

#include "core/text.h"

/*
 * The interface's name, then each of its IPv4 addresses; empty: there is no default route. It is
 * the interface that the host's own routes and rules choose, also a VPN's. In the network namespace
 * of the calling thread. Sends nothing. Blocks briefly.
 */
int agx_default_route_read(struct agx_words *ret, struct agx_error **err) AGX_MUST_CHECK;

#endif
