/* cmd_exec.c: `agentix exec`: the table of its subcommands. */
#include "cli/exec_commands.h"

#include "base/banned.h"

static const struct agx_subcommand subcommands[] = {
    { "run", "SANDBOX [OPTION...] -- COMMAND [ARGUMENT...]", "run a command in a sandbox",
      "Runs a command in a sandbox, prints its output as it comes, and exits with its exit "
      "code.\n"
      "An interruption cancels the command.\n"
      "\n"
      "  --cwd DIR                   its working directory\n"
      "  --env-overrides KEY=VALUE   added to the sandbox's environment (any number)\n"
      "  --deadline TIME             kill it after this time (30s, 1m30s)\n"
      "  -i, --stdin                 connect our standard input; otherwise it has none\n"
      "  --exec-id ID                its id; by default the daemon chooses one\n"
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
      "  -f, --follow         keep printing until the command ends\n"
      "  --offset BYTES       skip this many bytes at the start\n",
      agx_exec_logs },
    { "get", "EXEC [--json]", "show one command",
      "Shows the fields of a command, one per line.\n"
      "\n"
      "  --json               as JSON\n",
      agx_exec_get },
    { "cancel", "EXEC", "end a command",
      "Ends a command and all of its processes: first with TERM, then with KILL. A command "
      "that\n"
      "has already ended is not an error.\n",
      agx_exec_cancel },
    { "list", "[SANDBOX] [--json]", "show the running commands",
      "Shows the running commands, in one sandbox or in all.\n"
      "\n"
      "  --json               as JSON\n",
      agx_exec_list },
    { NULL, NULL, NULL, NULL, NULL },
};

const struct agx_command agx_cmd_exec = {
    .name = "exec",
    .summary = "run commands in sandboxes, and inspect them",
    .subcommands = subcommands,
};
