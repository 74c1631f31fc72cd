/*
 * tools.h: builtin tools: named sets of a host program's files that a sandbox gets.
 *
 *   login      a private copy: backend/files/tool_files.h
 *   cache      the host's, below a writable layer of the sandbox; an empty one where there are no
 *              such layers
 *   parts      "claude:settings", "git:ssh-agent": what host programs run, as a copy or read-only,
 *              and sockets; each only where it is named
 *
 * So no file of the host changes. In compatibility mode a tool is what agents-sandbox makes of it:
 * the host's own files, writable.
 *
 * Reads the host, so it may block; from any thread.
 */
#ifndef AGX_BACKEND_FILES_TOOLS_H
#define AGX_BACKEND_FILES_TOOLS_H

#include "backend/files/tool_files.h"

/* Where tools are found; all borrowed. */
struct agx_tools_host {
    const char *home;          /* "~" of the daemon's user; absolute */
    const char *sandbox_home;  /* "~" in the sandbox; absolute */
    const char *ssh_auth_sock; /* SSH_AUTH_SOCK; NULL: not set */
    const char *runtime_dir;   /* XDG_RUNTIME_DIR; NULL: /run/user/<uid> */
    uint32_t uid;
    bool compat;
    bool layers; /* the backend can put a writable layer of the sandbox over a directory */
};

/* What tools add to a sandbox. */
struct agx_tools_given {
    struct agx_binds *binds;
    struct agx_pairs *envs;
    struct agx_tool_files *files; /* NULL: the sandbox already has its copies */
};

/*
 * Adds the parts of these tools. Sources of mounts are opened, with links resolved.
 * -AGX_FAILED_PRECONDITION with the path that a tool needs and the host lacks: a login, or a part
 * that was named; -AGX_INVALID_ARGUMENT for a path that `asker` may not be given.
 */
int agx_tools_add(const struct agx_words *tools, const struct agx_tools_host *host,
                  const struct agx_sources_asker *asker, const struct agx_tools_given *given,
                  struct agx_error **err) AGX_MUST_CHECK;

/* Adds a warning for each tool that gives a sandbox power over something of the host, or that gives
 * less than on other backends. Reads nothing: the host may lack what it names. */
int agx_tools_warn(const struct agx_words *tools, const struct agx_tools_host *host,
                   struct agx_words *warnings, struct agx_error **err) AGX_MUST_CHECK;

#endif
