/* sandbox_commands.h: the subcommands of `agentix sandbox`, by file. */
#ifndef AGX_CLI_SANDBOX_COMMANDS_H
#define AGX_CLI_SANDBOX_COMMANDS_H

#include "cli/command.h"

/* sandbox_make.c */
int agx_sandbox_create(const struct agx_cli *cli, int argc, char **argv);

/* sandbox_read.c */
int agx_sandbox_list(const struct agx_cli *cli, int argc, char **argv);
int agx_sandbox_get(const struct agx_cli *cli, int argc, char **argv);

/* sandbox_change.c: requests that are executed later, and the wait for them */
int agx_sandbox_stop(const struct agx_cli *cli, int argc, char **argv);
int agx_sandbox_resume(const struct agx_cli *cli, int argc, char **argv);
int agx_sandbox_delete(const struct agx_cli *cli, int argc, char **argv);
int agx_sandbox_wait(const struct agx_cli *cli, int argc, char **argv);

/* sandbox_events.c */
int agx_sandbox_events(const struct agx_cli *cli, int argc, char **argv);

#endif
