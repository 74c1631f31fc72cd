/* main.c: agentix: dispatches to the command, and prints help. */
#include "base/banned.h"
#include "base/macros.h"
#include "cli/command.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct agx_command *const commands[] = {
    &agx_cmd_sandbox, &agx_cmd_exec, &agx_cmd_image,
    &agx_cmd_daemon,  &agx_cmd_call, &agx_cmd_version,
};

static void print_help(FILE *out)
{
    fputs("usage: agentix COMMAND [ARGUMENT...]\n\n", out);
    for (size_t i = 0; i < AGX_ARRAY_LEN(commands); i++)
        fprintf(out, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
    fputs("  help       describe a command: agentix help COMMAND\n"
          "\n"
          "AGENTIX_SOCKET names the daemon's socket. When no daemon runs, one is started, unless\n"
          "AGENTIX_AUTOSTART is 0.\n",
          out);
}

static void print_group_help(FILE *out, const struct agx_command *c)
{
    fprintf(out, "usage: agentix %s COMMAND [ARGUMENT...]\n\n", c->name);
    for (const struct agx_subcommand *s = c->subcommands; s->name; s++)
        fprintf(out, "  %-10s %s\n", s->name, s->summary);
    fprintf(out, "\nagentix help %s COMMAND says more\n", c->name);
}

static const struct agx_command *main_find(const char *name)
{
    for (size_t i = 0; i < AGX_ARRAY_LEN(commands); i++) {
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    }
    return NULL;
}

static const struct agx_subcommand *find_sub(const struct agx_command *c, const char *name)
{
    for (const struct agx_subcommand *s = c->subcommands; s->name; s++) {
        if (strcmp(s->name, name) == 0)
            return s;
    }
    return NULL;
}

static int unknown(const char *name)
{
    fprintf(stderr, "agentix: no command '%s'\n", name);
    print_help(stderr);
    return AGX_EXIT_USAGE;
}

static int unknown_sub(const struct agx_command *c, const char *name)
{
    fprintf(stderr, "agentix %s: no command '%s'\n", c->name, name);
    print_group_help(stderr, c);
    return AGX_EXIT_USAGE;
}

static bool asks_for_help(const char *word)
{
    return strcmp(word, "help") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

/* agentix help NAME [SUBCOMMAND]; `sub` may be NULL. */
static int help_about(const char *name, const char *sub)
{
    struct agx_cli cli = { .command = main_find(name) };

    if (!cli.command)
        return unknown(name);
    if (!cli.command->subcommands) {
        fputs(cli.command->help, stdout);
        return AGX_EXIT_OK;
    }
    if (!sub) {
        print_group_help(stdout, cli.command);
        return AGX_EXIT_OK;
    }
    cli.sub = find_sub(cli.command, sub);
    if (!cli.sub)
        return unknown_sub(cli.command, sub);
    agx_cli_help(&cli);
    return AGX_EXIT_OK;
}

static int main_run(const struct agx_command *c, int argc, char **argv,
                    const struct agx_cli_env *env)
{
    struct agx_cli cli = { .env = env, .command = c };

    if (!c->subcommands)
        return c->run(argc, argv, env);
    if (argc < 2) {
        print_group_help(stderr, c);
        return AGX_EXIT_USAGE;
    }
    if (asks_for_help(argv[1]))
        return help_about(c->name, argc > 2 ? argv[2] : NULL);
    cli.sub = find_sub(c, argv[1]);
    return cli.sub ? cli.sub->run(&cli, argc - 1, argv + 1) : unknown_sub(c, argv[1]);
}

static struct agx_cli_env read_env(void)
{
    const char *autostart = getenv("AGENTIX_AUTOSTART");

    return (struct agx_cli_env){
        .token = getenv("AGENTIX_TOKEN"),
        .autostart = !autostart || strcmp(autostart, "0") != 0,
        .xdg = {
            .runtime_dir = getenv("XDG_RUNTIME_DIR"),
            .data_home = getenv("XDG_DATA_HOME"),
            .config_home = getenv("XDG_CONFIG_HOME"),
            .home = getenv("HOME"),
            .socket = getenv("AGENTIX_SOCKET"),
            .uid = getuid(),
        },
    };
}

/* Fills descriptors 0 to 2, or the connection to the daemon would become one of them. */
static void fill_standard_fds(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        (void)close(fd);
}

/* Flushes stdout: a full disk is a failure. */
static int main_finish(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    fprintf(stderr, "agentix: standard output: it could not be written\n");
    return status == AGX_EXIT_OK ? AGX_EXIT_FAILED : status;
}

int main(int argc, char **argv)
{
    const struct agx_cli_env env = read_env();
    const char *name = argc > 1 ? argv[1] : NULL;
    const struct agx_command *c;

    fill_standard_fds();
    /* A closed output becomes a write error. */
    (void)signal(SIGPIPE, SIG_IGN);
    if (!name) {
        print_help(stderr);
        return AGX_EXIT_USAGE;
    }
    if (strcmp(name, "--version") == 0)
        name = "version";
    if (strcmp(name, "help") == 0 && argc > 2)
        return main_finish(help_about(argv[2], argc > 3 ? argv[3] : NULL));
    if (asks_for_help(name)) {
        print_help(stdout);
        return main_finish(AGX_EXIT_OK);
    }
    c = main_find(name);
    return main_finish(c ? main_run(c, argc - 1, argv + 1, &env) : unknown(name));
}
