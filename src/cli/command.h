/*
 * command.h: the commands of `agentix`, in src/cli/cmd_<name>.c, and the subcommands of a group,
 * such as `agentix sandbox get`.
 */
#ifndef AGX_CLI_COMMAND_H
#define AGX_CLI_COMMAND_H

#include "base/xdg.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    AGX_EXIT_OK = 0,
    AGX_EXIT_FAILED = 1,
    AGX_EXIT_USAGE = 2,
    AGX_EXIT_NOT_RUNNING = 3,   /* `agentix daemon status` */
    AGX_EXIT_NO_CODE = 125,     /* a command ended without an exit code of its own */
    AGX_EXIT_SIGNALLED = 128,   /* plus the signal, as in shells */
    AGX_EXIT_INTERRUPTED = 130, /* by SIGINT */
    AGX_EXIT_GOING = -1,        /* no exit status yet: continue */
};

/* The environment as read by main(): commands do not read it themselves. */
struct agx_cli_env {
    const char *token; /* AGENTIX_TOKEN, or NULL */
    struct agx_xdg xdg;
    bool autostart; /* AGENTIX_AUTOSTART is not 0 */
};

struct agx_subcommand;

struct agx_command {
    const char *name;
    const char *summary; /* one line of `agentix --help` */
    /* `agentix help NAME`; NULL with subcommands, which have their own help */
    const char *help;
    /* argv[0] is the command's name. Returns the exit status. NULL with subcommands. */
    int (*run)(int argc, char **argv, const struct agx_cli_env *env);
    const struct agx_subcommand *subcommands; /* the last has no name; NULL: none */
};

/* The context of a subcommand. */
struct agx_cli {
    const struct agx_cli_env *env;
    const struct agx_command *command;
    const struct agx_subcommand *sub;
};

struct agx_subcommand {
    const char *name;
    const char *usage;   /* the arguments after its name: "ID [--json]" */
    const char *summary; /* one line, without a full stop */
    const char *help;    /* the options and more, whole lines */
    /* argv[0] is its name. Returns the exit status. */
    int (*run)(const struct agx_cli *cli, int argc, char **argv);
};

extern const struct agx_command agx_cmd_call, agx_cmd_daemon, agx_cmd_exec, agx_cmd_image,
    agx_cmd_sandbox, agx_cmd_version;

/* Prints "agentix NAME: message" and how to get help, on stderr; returns AGX_EXIT_USAGE. */
int agx_cli_usage(const char *name, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The same for a subcommand, with its usage. */
int agx_cli_mistake(const struct agx_cli *cli, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Prints its help on stdout. */
void agx_cli_help(const struct agx_cli *cli);

#endif
