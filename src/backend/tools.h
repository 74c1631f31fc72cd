/*
 * tools.h: builtin tools: by a name, what of the host's configuration and caches a sandbox sees.
 *
 * Each is a few mounts; one that a tool cannot do without is an error when the host has it not, the
 * others are left out then. Looks at the host, so it may block; from any thread.
 */
#ifndef AGX_BACKEND_TOOLS_H
#define AGX_BACKEND_TOOLS_H

#include "backend/binds.h"

/* What tools are found by; all borrowed. */
struct agx_tools_host {
    const char *home;          /* "~" of the daemon's user; absolute */
    const char *sandbox_home;  /* "~" in the sandbox; absolute */
    const char *ssh_auth_sock; /* SSH_AUTH_SOCK; NULL: not set */
    const char *runtime_dir;   /* XDG_RUNTIME_DIR; NULL: /run/user/<uid> */
    uint32_t uid;
};

/*
 * Adds the mounts of these tools and the variables that go with them. Sources are what links lead
 * to, and open. -AGX_FAILED_PRECONDITION with the path that a tool needs and the host has not;
 * -AGX_INVALID_ARGUMENT for what `asker` is not given.
 */
int agx_tools_add(const struct agx_words *tools, const struct agx_tools_host *host,
                  const struct agx_sources_asker *asker, struct agx_binds *binds,
                  struct agx_pairs *envs, struct agx_error **err) AGX_MUST_CHECK;

/* Adds a warning for each tool that gives a sandbox write access to something of the host. Asks
 * nothing: the host may lack what it names. */
int agx_tools_warn(const struct agx_words *tools, struct agx_words *warnings,
                   struct agx_error **err) AGX_MUST_CHECK;

#endif
