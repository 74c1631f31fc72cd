/* exec_commands.h: the subcommands of `agentix exec`. */
#ifndef AGX_CLI_EXEC_COMMANDS_H
#define AGX_CLI_EXEC_COMMANDS_H

#include "cli/command.h"

/* exec_run.c */
int agx_exec_run(const struct agx_cli *cli, int argc, char **argv);

/* exec_logs.c */
int agx_exec_logs(const struct agx_cli *cli, int argc, char **argv);

/* exec_read.c */
int agx_exec_get(const struct agx_cli *cli, int argc, char **argv);
int agx_exec_list(const struct agx_cli *cli, int argc, char **argv);
int agx_exec_cancel(const struct agx_cli *cli, int argc, char **argv);

#endif
