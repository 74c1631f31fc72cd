/* options.h: what agentix-server is told: its environment first, then its command line. */
#ifndef AGX_RUNTIME_OPTIONS_H
#define AGX_RUNTIME_OPTIONS_H

#include "base/log.h"
#include "runtime/server.h"
#include "runtime/worker_command.h"

enum { AGX_EXIT_USAGE = 2 };

struct agx_server_options {
    struct agx_server_config server;
    struct agx_worker_options worker;
    struct agx_log_config log;
    /* private */
    bool host_given, port_given;
};

/*
 * Negative: what is wrong with them; 0: go on; else the exit code and one: what was asked for (such
 * as --help) is printed. Logging is not set up before it, so settle() has to follow.
 */
int agx_server_options_read(struct agx_server_options *o, int argc, char **argv,
                            struct agx_error **err) AGX_MUST_CHECK;

/* Once logging is set up: where it listens, and whether it may. */
int agx_server_options_settle(struct agx_server_options *o, struct agx_error **err) AGX_MUST_CHECK;

#endif
