/* call_options.h: the command line of `agentix call`. */
#ifndef AGX_CLI_CALL_OPTIONS_H
#define AGX_CLI_CALL_OPTIONS_H

#include "agentix/msgpack.h"
#include "agentix/runtime.h"
#include "cli/command.h"

struct agx_call_command {
    const char *url, *target; /* borrowed from argv */
    enum agx_call_kind kind;
    uint32_t timeout_ms; /* 0: none */
    bool traceback;
    bool help;                        /* was requested: ignore everything else */
    char *token;                      /* owned; NULL: none */
    struct agx_writer *args, *kwargs; /* owned; NULL: none */
};

extern const char agx_call_help[];

/* 0, or the exit status after printing the mistake. Free it in either case. */
int agx_call_command_parse(struct agx_call_command *c, int argc, char **argv,
                           const struct agx_cli_env *env);
void agx_call_command_done(struct agx_call_command *c);

#endif
