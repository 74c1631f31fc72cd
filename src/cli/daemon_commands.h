/* daemon_commands.h: the subcommands of `agentix daemon`. */
#ifndef AGX_CLI_DAEMON_COMMANDS_H
#define AGX_CLI_DAEMON_COMMANDS_H

#include "cli/command.h"

/* daemon_life.c */
int agx_daemon_start(const struct agx_cli *cli, int argc, char **argv);
int agx_daemon_stop(const struct agx_cli *cli, int argc, char **argv);

/* daemon_status.c */
int agx_daemon_status(const struct agx_cli *cli, int argc, char **argv);

/* daemon_logs.c */
int agx_daemon_logs(const struct agx_cli *cli, int argc, char **argv);

/* daemon_backup.c */
int agx_daemon_backup(const struct agx_cli *cli, int argc, char **argv);

#endif
