/* main.c: agentix: finds the command, and helps. */
#include "base/banned.h"
#include "base/macros.h"
#include "cli/command.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct agx_command *const commands[] = {
    &agx_cmd_call,
};

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

static void print_help(FILE *out)
{
    fputs("usage: agentix COMMAND [ARGUMENT...]\n\n", out);
    for (size_t i = 0; i < AGX_ARRAY_LEN(commands); i++)
        fprintf(out, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
    fputs("  help       what a command does: agentix help COMMAND\n"
          "  version    the version of this program\n",
          out);
}

static const struct agx_command *find(const char *name)
{
    for (size_t i = 0; i < AGX_ARRAY_LEN(commands); i++) {
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    }
    return NULL;
}

static int unknown(const char *name)
{
    fprintf(stderr, "agentix: no command '%s'\n", name);
    print_help(stderr);
    return AGX_EXIT_USAGE;
}

static int help_about(const char *name)
{
    const struct agx_command *c = find(name);

    if (!c)
        return unknown(name);
    fputs(c->help, stdout);
    return AGX_EXIT_OK;
}

int main(int argc, char **argv)
{
    const struct agx_cli_env env = { .token = getenv("AGENTIX_TOKEN") };
    const char *name = argc > 1 ? argv[1] : NULL;
    const struct agx_command *c;

    if (!name) {
        print_help(stderr);
        return AGX_EXIT_USAGE;
    }
    if (strcmp(name, "version") == 0 || strcmp(name, "--version") == 0) {
        puts("agentix " AGX_VERSION);
        return AGX_EXIT_OK;
    }
    if (strcmp(name, "help") == 0 && argc > 2)
        return help_about(argv[2]);
    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        print_help(stdout);
        return AGX_EXIT_OK;
    }
    c = find(name);
    return c ? c->run(argc - 1, argv + 1, &env) : unknown(name);
}
