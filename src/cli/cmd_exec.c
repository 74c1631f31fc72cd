/* cmd_exec.c: `agentix exec`: what each of its commands is called and takes. */
#include "cli/exec_commands.h"

#include "base/banned.h"

static const struct agx_subcommand subcommands[] = {
    { "run", "SANDBOX [OPTION...] -- COMMAND [ARGUMENT...]", "run a command in a sandbox",
      "Runs a command in a sandbox, prints what it writes as it comes, and ends with its exit "
      "code.\n"
      "An interruption cancels the command.\n"
      "\n"
      "  --cwd DIR                   where it runs\n"
      "  --env-overrides KEY=VALUE   laid over the sandbox's environment (any number)\n"
      "  --deadline TIME             it is killed after so long (30s, 1m30s)\n"
      "  -i, --stdin                 our standard input is its own; otherwise it has none\n"
      "  --exec-id ID                its name; otherwise the daemon chooses\n"
      "  --detach                    print its id and do not wait: see `agentix exec logs`\n"
      "\n"
      "Exit status: the command's own; 125 when it has none (it was cancelled, or could not be "
      "run);\n"
      "130 or 143 after SIGINT or SIGTERM; 1 and 2 also for our own errors and mistakes.\n",
      agx_exec_run },
    { "logs", "EXEC [--stderr] [--follow] [--offset BYTES]", "print what a command wrote",
      "Prints what a command wrote to its standard output.\n"
      "\n"
      "  --stderr             to its standard error instead\n"
      "  -f, --follow         go on until the command ends\n"
      "  --offset BYTES       begin behind so many bytes\n",
      agx_exec_logs },
    { "get", "EXEC [--json]", "show one command",
      "Shows what is known of a command, a line each.\n"
      "\n"
      "  --json               as JSON\n",
      agx_exec_get },
    { "cancel", "EXEC", "end a command",
      "Ends a command and all of its processes: first they are asked to, then killed. A command "
      "that\n"
      "has ended already is no error.\n",
      agx_exec_cancel },
    { "list", "[SANDBOX] [--json]", "show the commands that run",
      "Shows the commands that run, in one sandbox or in all.\n"
      "\n"
      "  --json               as JSON\n",
      agx_exec_list },
    { NULL, NULL, NULL, NULL, NULL },
};

const struct agx_command agx_cmd_exec = {
    .name = "exec",
    .summary = "run commands in sandboxes, and look at them",
    .subcommands = subcommands,
};
