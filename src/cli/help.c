/* help.c: messages about mistakes on the command line. */
#include "cli/command.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/banned.h"

int agx_cli_usage(const char *name, const char *fmt, ...)
{
    va_list ap;

    fprintf(stderr, "agentix %s: ", name);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fprintf(stderr, "\nagentix help %s says more\n", name);
    return AGX_EXIT_USAGE;
}

int agx_cli_mistake(const struct agx_cli *cli, const char *fmt, ...)
{
    const char *group = cli->command->name, *name = cli->sub->name;
    va_list ap;

    fprintf(stderr, "agentix %s %s: ", group, name);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fprintf(stderr, "\nusage: agentix %s %s %s\n", group, name, cli->sub->usage);
    return AGX_EXIT_USAGE;
}

void agx_cli_help(const struct agx_cli *cli)
{
    printf("usage: agentix %s %s %s\n\n%s\n", cli->command->name, cli->sub->name, cli->sub->usage,
           cli->sub->help);
}
