/* cmd_sandbox.c: `agentix sandbox`: the table of its subcommands. */
#include "cli/create_options.h"
#include "cli/sandbox_commands.h"

#include "base/banned.h"

static const struct agx_subcommand subcommands[] = {
    { "create", agx_create_usage, "make a sandbox and print its id", agx_create_help,
      agx_sandbox_create },
    { "list", "[--label KEY=VALUE]... [--include-deleted] [--json]", "show the sandboxes",
      "Shows the sandboxes, newest first.\n"
      "\n"
      "  --label KEY=VALUE    only those with this label (any number: all of them)\n"
      "  --include-deleted    include deleted sandboxes, until they are purged\n"
      "  --json               as JSON\n",
      agx_sandbox_list },
    { "get", "ID [--json]", "show one sandbox",
      "Shows the fields of a sandbox, one per line.\n"
      "\n"
      "  --json               as JSON\n",
      agx_sandbox_get },
    { "stop", "ID [--no-wait] [--timeout TIME]", "stop a sandbox; its files stay",
      "Stops a sandbox that is ready and waits until it is stopped. Its files stay.\n"
      "\n"
      "  --no-wait            do not wait\n"
      "  --timeout TIME       wait no longer than that (30s, 1m30s)\n",
      agx_sandbox_stop },
    { "resume", "ID [--no-wait] [--timeout TIME]", "start a stopped sandbox again",
      "Starts a stopped sandbox again and waits until it is ready.\n"
      "\n"
      "  --no-wait            do not wait\n"
      "  --timeout TIME       wait no longer than that (30s, 1m30s)\n",
      agx_sandbox_resume },
    { "delete", "ID | --label KEY=VALUE... [--no-wait] [--timeout TIME]",
      "delete a sandbox, or all with some labels",
      "Deletes a sandbox, whatever its state, or all that have the labels, and waits until they "
      "are\n"
      "gone.\n"
      "\n"
      "  --label KEY=VALUE    those with this label (any number: all of them)\n"
      "  --no-wait            do not wait\n"
      "  --timeout TIME       wait no longer than that (30s, 1m30s)\n",
      agx_sandbox_delete },
    { "wait", "ID [--state STATE]... [--timeout TIME]", "wait until a sandbox is in a state",
      "Waits until a sandbox is in one of the states, by default in any lasting one, and prints\n"
      "it. Fails when the sandbox can no longer reach one of them.\n"
      "\n"
      "  --state STATE        pending, ready, failed, stopped, deleting or deleted (any number)\n"
      "  --timeout TIME       wait no longer than that (30s, 1m30s)\n",
      agx_sandbox_wait },
    { "events", "[ID] [--follow] [--after NUMBER] [--label KEY=VALUE]... [--json]",
      "show the events of sandboxes",
      "Shows the events of a sandbox so far. Without ID: the events of all sandboxes from "
      "now\n"
      "on.\n"
      "\n"
      "  -f, --follow         show new events, until interrupted\n"
      "  --after NUMBER       only what came after the event of that number; without ID after "
      "that\n"
      "                       position, which --json shows\n"
      "  --label KEY=VALUE    without ID: only sandboxes with this label (any number: all of "
      "them)\n"
      "  --json               one line of JSON per event\n",
      agx_sandbox_events },
    { NULL, NULL, NULL, NULL, NULL },
};

const struct agx_command agx_cmd_sandbox = {
    .name = "sandbox",
    .summary = "create, inspect, stop, resume and delete sandboxes",
    .subcommands = subcommands,
};
