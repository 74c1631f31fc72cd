/* tools.c: one table: which tool has which mounts. */
#include "backend/tools.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/banned.h"

enum { WARNING_MAX = 4096 };

/* Where a mount comes from. */
enum origin {
    ORIGIN_HOME,      /* beneath the home directory */
    ORIGIN_SSH_AGENT, /* the socket of SSH_AUTH_SOCK */
    ORIGIN_PULSE,     /* the sound server's socket */
};

struct row {
    const char *tool;
    const char *path;   /* beneath the home */
    const char *target; /* absolute, or beneath the sandbox's home; NULL: the same as on the host */
    const char *env;    /* set to the target; NULL: none is */
    enum origin origin;
    bool writable, required;
};

static const struct row rows[] = {
    { "claude", ".claude", ".claude", NULL, ORIGIN_HOME, true, true },
    { "claude", ".claude.json", ".claude.json", NULL, ORIGIN_HOME, true, true },
    { "claude", NULL, "/pulse-audio", NULL, ORIGIN_PULSE, true, false },
    { "codex", ".codex", ".codex", NULL, ORIGIN_HOME, true, true },
    { "codex", ".agents", ".agents", NULL, ORIGIN_HOME, true, false },
    { "git", NULL, "/ssh-agent", NULL, ORIGIN_SSH_AGENT, true, false },
    { "git", ".config/gh", ".config/gh", NULL, ORIGIN_HOME, false, false },
    { "git", ".ssh/known_hosts", ".ssh/known_hosts", NULL, ORIGIN_HOME, true, false },
    { "uv", ".cache/uv", ".cache/uv", NULL, ORIGIN_HOME, true, false },
    /* Scripts in environments of uv name their interpreter by its absolute path. */
    { "uv", ".local/share/uv/python", NULL, "UV_PYTHON_INSTALL_DIR", ORIGIN_HOME, true, false },
    { "npm", ".npm", ".npm", NULL, ORIGIN_HOME, true, false },
    { "apt", ".cache/agents-sandbox-apt", "/var/cache/apt/archives", NULL, ORIGIN_HOME, true,
      false },
    { "opencode", ".config/opencode", ".config/opencode", NULL, ORIGIN_HOME, true, false },
    { "opencode", ".local/share/opencode", ".local/share/opencode", NULL, ORIGIN_HOME, true,
      false },
};

/* Writes the path on the host; false: there is none, or it is too long to be one. */
static bool print_source(const struct row *row, const struct agx_tools_host *host,
                         char out[PATH_MAX])
{
    int n = -1;

    switch (row->origin) {
    case ORIGIN_HOME:
        n = snprintf(out, PATH_MAX, "%s/%s", host->home, row->path);
        break;
    case ORIGIN_SSH_AGENT:
        if (host->ssh_auth_sock && host->ssh_auth_sock[0] == '/')
            n = snprintf(out, PATH_MAX, "%s", host->ssh_auth_sock);
        break;
    case ORIGIN_PULSE:
        if (host->runtime_dir && host->runtime_dir[0] == '/')
            n = snprintf(out, PATH_MAX, "%s/pulse/native", host->runtime_dir);
        else
            n = snprintf(out, PATH_MAX, "/run/user/%" PRIu32 "/pulse/native", host->uid);
    }
    return n >= 0 && n < PATH_MAX;
}

/* What links lead to. 1: it is open; 0: it is not there, or not of the right kind. */
static int open_source(const struct row *row, const char *path,
                       const struct agx_sources_asker *asker, struct agx_hostpath *ret,
                       struct agx_error **err)
{
    struct agx_error *error = NULL;
    int r = agx_sources_open(asker, path, true, ret, &error);

    if (r < 0 && error->sys_errno != 0 && error->sys_errno != ENOMEM) {
        agx_error_free(error);
        return 0;
    }
    if (r < 0) {
        (void)agx_error_wrap(&error, r, "the builtin tool '%s'", row->tool);
        agx_error_propagate(err, &error);
        return r;
    }
    if (row->origin == ORIGIN_HOME || S_ISSOCK(ret->mode))
        return 1;
    agx_hostpath_done(ret);
    return 0;
}

/* -AGX_FAILED_PRECONDITION, or nothing: then the tool goes without. */
static int miss(const struct row *row, const char *path, struct agx_error **err)
{
    if (row->required)
        return agx_error_set(err, AGX_FAILED_PRECONDITION,
                             "the builtin tool '%s' needs '%s', which this host has not", row->tool,
                             path);
    AGX_LOG(AGX_LOG_DEBUG, "tool.without", AGX_F_STR("tool", row->tool), AGX_F_STR("path", path));
    return 0;
}

static int add_row(const struct row *row, const struct agx_tools_host *host,
                   const struct agx_sources_asker *asker, struct agx_binds *binds,
                   struct agx_pairs *envs, struct agx_error **err)
{
    _cleanup_(agx_hostpath_done) struct agx_hostpath source = AGX_HOSTPATH_INIT;
    char path[PATH_MAX] = "", target[PATH_MAX];
    int r = print_source(row, host, path) ? open_source(row, path, asker, &source, err) : 0;
    int n;

    if (r <= 0)
        return r < 0 ? r : miss(row, path, err);
    if (!row->target || row->target[0] == '/')
        n = snprintf(target, sizeof(target), "%s", row->target ? row->target : path);
    else
        n = snprintf(target, sizeof(target), "%s/%s", host->sandbox_home, row->target);
    if (n < 0 || (size_t)n >= sizeof(target))
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "the path of tool '%s' is too long",
                             row->tool);
    r = agx_binds_take(binds, &source, target, row->writable, err);
    if (r == 0 && row->env)
        r = agx_pairs_set(envs, agx_str_from(row->env), agx_str_from(target), err);
    return r;
}

int agx_tools_add(const struct agx_words *tools, const struct agx_tools_host *host,
                  const struct agx_sources_asker *asker, struct agx_binds *binds,
                  struct agx_pairs *envs, struct agx_error **err)
{
    int r = 0;

    for (size_t i = 0; i < tools->len; i++) {
        for (size_t k = 0; r == 0 && k < AGX_ARRAY_LEN(rows); k++) {
            if (strcmp(rows[k].tool, tools->items[i]) == 0)
                r = add_row(&rows[k], host, asker, binds, envs, err);
        }
    }
    return r;
}

/* ---- warnings ---- */

/* Appends how people call what this row gives. */
static int name_row(const struct row *row, struct agx_buf *out)
{
    switch (row->origin) {
    case ORIGIN_SSH_AGENT:
        return agx_buf_append(out, AGX_STR("the ssh-agent"));
    case ORIGIN_PULSE:
        return agx_buf_append(out, AGX_STR("the sound server (PulseAudio)"));
    default:
        return agx_buf_printf(out, "~/%s", row->path);
    }
}

static int warn_of(const char *tool, struct agx_words *warnings, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(WARNING_MAX);
    size_t named = 0;
    int r = agx_buf_printf(
        &text, "the builtin tool '%s' gives write access to what the host has of: ", tool);

    for (size_t k = 0; r == 0 && k < AGX_ARRAY_LEN(rows); k++) {
        if (strcmp(rows[k].tool, tool) != 0 || !rows[k].writable)
            continue;
        r = named++ > 0 ? agx_buf_append(&text, AGX_STR(", ")) : 0;
        if (r == 0)
            r = name_row(&rows[k], &text);
    }
    if (r < 0)
        return agx_text_no_memory(err);
    return named > 0 ? agx_words_add(warnings, agx_buf_peek(&text), err) : 0;
}

int agx_tools_warn(const struct agx_words *tools, struct agx_words *warnings,
                   struct agx_error **err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < tools->len; i++)
        r = warn_of(tools->items[i], warnings, err);
    return r;
}
