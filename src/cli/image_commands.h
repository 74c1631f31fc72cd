/* image_commands.h: the subcommands of `agentix image`. */
#ifndef AGX_CLI_IMAGE_COMMANDS_H
#define AGX_CLI_IMAGE_COMMANDS_H

#include "cli/command.h"

/* image_pull.c */
int agx_image_pull(const struct agx_cli *cli, int argc, char **argv);

/* image_import.c */
int agx_image_import(const struct agx_cli *cli, int argc, char **argv);

/* image_read.c */
int agx_image_list(const struct agx_cli *cli, int argc, char **argv);
int agx_image_inspect(const struct agx_cli *cli, int argc, char **argv);

/* image_remove.c */
int agx_image_rm(const struct agx_cli *cli, int argc, char **argv);
int agx_image_prune(const struct agx_cli *cli, int argc, char **argv);

#endif
