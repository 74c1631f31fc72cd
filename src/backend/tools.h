/*
 * tools.h: builtin tools: by a name, what a sandbox gets of what a program of the host keeps there.
 *
 *   login      a private copy: backend/tool_files.h
 *   cache      the host's, below a layer of the sandbox's own, which takes what is written; where
 *              there are no such layers, an empty one
 *   parts      "claude:settings", "git:ssh-agent": what programs of the host are run by, as a copy
 * or read-only, and sockets; each only where it is named
 *
 * So no file of the host changes. In compatibility mode a tool is what agents-sandbox makes of it:
 * the host's own files, writable.
 *
 * Looks at the host, so it may block; from any thread.
 */
#ifndef AGX_BACKEND_TOOLS_H
#define AGX_BACKEND_TOOLS_H

#include "backend/tool_files.h"

/* What tools are found by; all borrowed. */
struct agx_tools_host {
    const char *home;          /* "~" of the daemon's user; absolute */
    const char *sandbox_home;  /* "~" in the sandbox; absolute */
    const char *ssh_auth_sock; /* SSH_AUTH_SOCK; NULL: not set */
    const char *runtime_dir;   /* XDG_RUNTIME_DIR; NULL: /run/user/<uid> */
    uint32_t uid;
    bool compat;
    bool layers; /* the backend can lay a directory below a layer of the sandbox's own */
};

/* What tools add to a sandbox. */
struct agx_tools_given {
    struct agx_binds *binds;
    struct agx_pairs *envs;
    struct agx_tool_files *files; /* NULL: it has its copies already */
};

/*
 * Adds what these tools are made of. Sources of mounts are what links lead to, and open.
 * -AGX_FAILED_PRECONDITION with the path that a tool needs and the host has not: a login, and a
 * part that was named; -AGX_INVALID_ARGUMENT for what `asker` is not given.
 */
int agx_tools_add(const struct agx_words *tools, const struct agx_tools_host *host,
                  const struct agx_sources_asker *asker, const struct agx_tools_given *given,
                  struct agx_error **err) AGX_MUST_CHECK;

/* Adds a warning for each tool that gives a sandbox power over something of the host, or less than
 * it gives elsewhere. Asks nothing: the host may lack what it names. */
int agx_tools_warn(const struct agx_words *tools, const struct agx_tools_host *host,
                   struct agx_words *warnings, struct agx_error **err) AGX_MUST_CHECK;

#endif
