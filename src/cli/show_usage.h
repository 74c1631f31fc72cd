/* show_usage.h: prints a sandbox's resource usage for people. */
#ifndef AGX_CLI_SHOW_USAGE_H
#define AGX_CLI_SHOW_USAGE_H

#include "base/buf.h"
#include "core/resource_usage.h"

/*
 * Appends a line for each kind of usage that is known:
 *
 *     cpu=1.500s
 *     memory=64.0 MB of 512.0 MB, peak 80.0 MB
 *     pids=3 of 4096
 *     io=1.2 MB read, 0 B written
 *     disk=20.5 kB of 1.0 GB
 *     network=4.5 kB received (12 packets), 700 B sent (9 packets)
 *
 * Lines of a companion begin with its name: "cache.cpu=1.500s"; NULL: the sandbox itself.
 */
int agx_show_usage(struct agx_buf *out, const char *companion,
                   const struct agx_resource_usage *use) AGX_MUST_CHECK;

#endif
