/* cmd_daemon.c: `agentix daemon`: the table of its subcommands. */
#include "cli/daemon_commands.h"

#include "base/banned.h"

static const struct agx_subcommand subcommands[] = {
    { "start", "[-- OPTION...]", "start the daemon, if none runs",
      "Starts agentixd in the background with the given options, and returns when it\n"
      "serves. Does nothing if a daemon is already running.\n",
      agx_daemon_start },
    { "stop", "", "stop the daemon; sandboxes keep running",
      "Stops the daemon and waits for its end. Sandboxes and their commands keep running.\n",
      agx_daemon_stop },
    { "status", "[--json]", "show whether the daemon runs, and its figures",
      "Shows whether a daemon runs, and its figures.\n"
      "\n"
      "  --json               print all figures as JSON\n"
      "\n"
      "Exit status: 0 it runs, 3 it does not run, 1 it does not answer correctly.\n",
      agx_daemon_status },
    { "logs", "[--follow] [-n LINES]", "print the daemon's log",
      "Prints the end of the daemon's log.\n"
      "\n"
      "  -f, --follow         print new lines as they are written, until interrupted\n"
      "  -n, --lines LINES    number of lines (100)\n",
      agx_daemon_logs },
    { "backup", "FILE [--force]", "write a copy of the daemon's store",
      "Writes a consistent copy of the daemon's store into FILE, while it runs. FILE is "
      "whole\n"
      "or not there, and only its owner can read it.\n"
      "\n"
      "  --force              replace an existing file\n"
      "\n"
      "To restore it: stop the daemon and put FILE in place of store/data.mdb in its "
      "directory.\n",
      agx_daemon_backup },
    { NULL, NULL, NULL, NULL, NULL },
};

const struct agx_command agx_cmd_daemon = {
    .name = "daemon",
    .summary = "start, stop and inspect the daemon",
    .subcommands = subcommands,
};
