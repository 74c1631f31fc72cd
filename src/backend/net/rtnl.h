/* rtnl.h: reads links, addresses and routes from the kernel by rtnetlink. Blocking, but fast. */
#ifndef AGX_BACKEND_NET_RTNL_H
#define AGX_BACKEND_NET_RTNL_H

#include "base/error.h"

#include <linux/rtnetlink.h>

/* One message of the dump; a negative result ends it. */
typedef int (*agx_rtnl_fn)(void *user, struct nlmsghdr *m, struct agx_error **err);

/* Dumps one type (RTM_GETROUTE, RTM_GETADDR, RTM_GETLINK), both address families, in the network
 * namespace of the calling thread. */
int agx_rtnl_dump(int type, agx_rtnl_fn each, void *user, struct agx_error **err) AGX_MUST_CHECK;

/* The first attribute of that type, or NULL. `len`: bytes of all attributes. */
const struct rtattr *agx_rtnl_find(struct rtattr *a, size_t len, unsigned short type);

#endif
