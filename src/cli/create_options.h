/* create_options.h: the command line of `agentix sandbox create`, as a request. */
#ifndef AGX_CLI_CREATE_OPTIONS_H
#define AGX_CLI_CREATE_OPTIONS_H

#include "cli/args.h"
#include "wire/sandbox_request.h"

struct agx_create_options {
    struct agx_create_request request;
    int64_t timeout_ns; /* 0: none */
    bool json, no_wait;
};

extern const char agx_create_usage[], agx_create_help[];

/* AGX_EXIT_GOING, or the exit status after printing the help or the mistake. Free it in either
 * case.
 */
int agx_create_options_read(struct agx_create_options *o, const struct agx_cli *cli, int argc,
                            char **argv);
void agx_create_options_done(struct agx_create_options *o);

#endif
