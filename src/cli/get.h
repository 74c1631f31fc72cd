/* get.h: `agentix sandbox get` and `agentix exec get`: one object by id, as lines or as JSON. */
#ifndef AGX_CLI_GET_H
#define AGX_CLI_GET_H

#include "base/buf.h"
#include "cli/command.h"

struct agx_get {
    const char *method;
    const char *reply; /* the name of its answer, for JSON */
    /* Appends the lines that show an answer. */
    int (*show)(struct agx_buf *out, struct agx_str reply, struct agx_error **err);
};

/* Runs the subcommand; returns its exit status. */
int agx_get(const struct agx_get *g, const struct agx_cli *cli, int argc, char **argv);

#endif
