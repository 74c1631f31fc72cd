/* options.h: agentix-server's options: from its environment, then from its command line. */
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
 * Negative: invalid options; 0: continue; else the exit code plus one, after printing what was
 * requested (such as --help). Logging is not set up yet, so settle() must follow.
 */
int agx_server_options_read(struct agx_server_options *o, int argc, char **argv,
                            struct agx_error **err) AGX_MUST_CHECK;

/* Call after setting up logging: decides where it listens, and whether it may. */
int agx_server_options_settle(struct agx_server_options *o, struct agx_error **err) AGX_MUST_CHECK;

#endif
