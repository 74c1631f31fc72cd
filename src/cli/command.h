/* command.h: one subcommand of `agentix`: src/cli/cmd_<name>.c. */
#ifndef AGX_CLI_COMMAND_H
#define AGX_CLI_COMMAND_H

enum {
    AGX_EXIT_OK = 0,
    AGX_EXIT_FAILED = 1,
    AGX_EXIT_USAGE = 2,
    AGX_EXIT_INTERRUPTED = 130, /* as shells say for SIGINT */
};

/* What main() read of the environment: commands do not look there themselves. */
struct agx_cli_env {
    const char *token; /* AGENTIX_TOKEN, or NULL */
};

struct agx_command {
    const char *name;
    const char *summary; /* one line of `agentix --help` */
    const char *help;    /* `agentix help NAME` */
    /* argv[0] is the command's name. Returns the exit status. */
    int (*run)(int argc, char **argv, const struct agx_cli_env *env);
};

extern const struct agx_command agx_cmd_call;

/* Prints "agentix NAME: message" and how to get help, on stderr; returns AGX_EXIT_USAGE. */
int agx_cli_usage(const char *name, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
