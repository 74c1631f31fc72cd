/*
 * way.h: by which interface the host reaches the Internet, and the host's addresses there.
 */
#ifndef AGX_BACKEND_NATIVE_WAY_H
#define AGX_BACKEND_NATIVE_WAY_H

#include "core/text.h"

/*
 * The interface's name, then each of its IPv4 addresses; empty: there is no way out. It is the one
 * that the host's own routes and rules choose, a VPN's too. In the network namespace of the calling
 * thread. Nothing is sent. Blocks shortly.
 */
int agx_way_read(struct agx_words *ret, struct agx_error **err) AGX_MUST_CHECK;

#endif
