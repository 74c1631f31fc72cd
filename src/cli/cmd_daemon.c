/* cmd_daemon.c: `agentix daemon`: what each of its commands is called and takes. */
#include "cli/daemon_commands.h"

#include "base/banned.h"

static const struct agx_subcommand subcommands[] = {
    { "start", "[-- OPTION...]", "start the daemon, if none runs",
      "Starts agentixd in the background, with the options if there are any, and returns when it\n"
      "serves. A daemon that runs already is left as it is.\n",
      agx_daemon_start },
    { "stop", "", "stop the daemon; sandboxes run on",
      "Stops the daemon and waits until it has ended. Sandboxes and the commands in them run on.\n",
      agx_daemon_stop },
    { "status", "[--json]", "say whether the daemon runs, and how it does",
      "Says whether a daemon runs, and how it does.\n"
      "\n"
      "  --json               all its figures, as JSON\n"
      "\n"
      "Exit status: 0 it runs, 3 it does not, 1 it does not answer as it should.\n",
      agx_daemon_status },
    { "logs", "[--follow] [-n LINES]", "print the daemon's log",
      "Prints the end of the daemon's log.\n"
      "\n"
      "  -f, --follow         go on with what is written, until interrupted\n"
      "  -n, --lines LINES    so many lines (100)\n",
      agx_daemon_logs },
    { "backup", "FILE [--force]", "write a copy of the daemon's store",
      "Writes a consistent copy of all that the daemon keeps into FILE, while it runs. FILE is "
      "whole\n"
      "or not there, and only its owner can read it.\n"
      "\n"
      "  --force              replace a file that is there\n"
      "\n"
      "To go back to it: stop the daemon and put FILE in place of store/data.mdb in its "
      "directory.\n",
      agx_daemon_backup },
    { NULL, NULL, NULL, NULL, NULL },
};

const struct agx_command agx_cmd_daemon = {
    .name = "daemon",
    .summary = "start, stop and look at the daemon",
    .subcommands = subcommands,
};
