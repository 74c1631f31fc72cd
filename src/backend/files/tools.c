/* tools.c: two tables: the parts of each tool, and the same for compatibility mode. */
#include "backend/files/tools.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/banned.h"
#include "base/log.h"

enum { WARNING_MAX = 4096 };

/* Where a part comes from. */
enum origin {
    ORIGIN_HOME,      /* beneath the home directory */
    ORIGIN_SSH_AGENT, /* the socket of SSH_AUTH_SOCK */
    ORIGIN_PULSE,     /* the sound server's socket */
};

/* How a part is given. */
enum give {
    GIVE_LIVE,  /* the host's own: the sandbox changes it on the host */
    GIVE_READ,  /* the host's own, read-only */
    GIVE_COPY,  /* a private copy of a file */
    GIVE_CACHE, /* a directory below a writable layer; an empty one where there are no layers,
                 * because a read-only cache makes its program fail */
    GIVE_LAYER, /* likewise; read-only where there are no layers */
};

struct row {
    const char *tool;   /* with its part */
    const char *path;   /* beneath the home */
    const char *target; /* absolute; NULL: the same path in the sandbox's home */
    const char *env;    /* is set to the target, which is then the host's path; NULL: none */
    enum origin origin;
    enum give give;
    bool required;
};

struct table {
    const struct row *rows;
    size_t len;
};

#define HOME(tool, path, give)                                                                     \
    {                                                                                              \
        tool, path, NULL, NULL, ORIGIN_HOME, give, false                                           \
    }
#define NEED(tool, path, give)                                                                     \
    {                                                                                              \
        tool, path, NULL, NULL, ORIGIN_HOME, give, true                                            \
    }
#define APT_CACHE ".cache/agents-sandbox-apt", "/var/cache/apt/archives", NULL, ORIGIN_HOME
/* Scripts in environments of uv name their interpreter by its absolute path. */
#define UV_PYTHON ".local/share/uv/python", NULL, "UV_PYTHON_INSTALL_DIR", ORIGIN_HOME

static const struct row rows[] = {
    NEED("claude", ".claude/.credentials.json", GIVE_COPY),
    HOME("claude:settings", ".claude.json", GIVE_COPY), /* servers that it starts; history */
    HOME("claude:settings", ".claude/settings.json", GIVE_COPY), /* hooks */
    HOME("claude:settings", ".claude/settings.local.json", GIVE_COPY),
    HOME("claude:settings", ".claude/CLAUDE.md", GIVE_COPY),
    HOME("claude:agents", ".claude/agents", GIVE_READ),
    HOME("claude:commands", ".claude/commands", GIVE_READ),
    HOME("claude:plugins", ".claude/plugins", GIVE_READ),
    HOME("claude:skills", ".claude/skills", GIVE_READ),
    { "claude:pulse", NULL, "/pulse-audio", NULL, ORIGIN_PULSE, GIVE_LIVE, false },
    NEED("codex", ".codex/auth.json", GIVE_COPY),
    HOME("codex:settings", ".codex/config.toml", GIVE_COPY), /* servers that it starts */
    HOME("codex:settings", ".codex/AGENTS.md", GIVE_COPY),
    HOME("codex:agents", ".agents", GIVE_READ),
    HOME("codex:prompts", ".codex/prompts", GIVE_READ),
    HOME("git", ".config/gh/hosts.yml", GIVE_COPY),
    HOME("git", ".ssh/known_hosts", GIVE_COPY),
    HOME("git:settings", ".gitconfig", GIVE_COPY), /* aliases, filters, hooks: programs */
    HOME("git:settings", ".config/git/config", GIVE_COPY),
    HOME("git:settings", ".config/gh/config.yml", GIVE_COPY),
    { "git:ssh-agent", NULL, "/ssh-agent", NULL, ORIGIN_SSH_AGENT, GIVE_LIVE, false },
    HOME("uv", ".cache/uv", GIVE_CACHE),
    { "uv", UV_PYTHON, GIVE_LAYER, false },
    HOME("npm", ".npm", GIVE_CACHE),
    { "apt", APT_CACHE, GIVE_CACHE, false },
    HOME("opencode", ".local/share/opencode/auth.json", GIVE_COPY),
    HOME("opencode:settings", ".config/opencode/opencode.json", GIVE_COPY),
    HOME("opencode:settings", ".config/opencode/opencode.jsonc", GIVE_COPY),
    HOME("opencode:settings", ".config/opencode/AGENTS.md", GIVE_COPY),
    HOME("opencode:agents", ".config/opencode/agent", GIVE_READ),
    HOME("opencode:commands", ".config/opencode/command", GIVE_READ),
    HOME("opencode:plugins", ".config/opencode/plugin", GIVE_READ),
};

static const struct row compat_rows[] = {
    NEED("claude", ".claude", GIVE_LIVE),
    NEED("claude", ".claude.json", GIVE_LIVE),
    { "claude", NULL, "/pulse-audio", NULL, ORIGIN_PULSE, GIVE_LIVE, false },
    NEED("codex", ".codex", GIVE_LIVE),
    HOME("codex", ".agents", GIVE_LIVE),
    { "git", NULL, "/ssh-agent", NULL, ORIGIN_SSH_AGENT, GIVE_LIVE, false },
    HOME("git", ".config/gh", GIVE_READ),
    HOME("git", ".ssh/known_hosts", GIVE_LIVE),
    HOME("uv", ".cache/uv", GIVE_LIVE),
    { "uv", UV_PYTHON, GIVE_LIVE, false },
    HOME("npm", ".npm", GIVE_LIVE),
    { "apt", APT_CACHE, GIVE_LIVE, false },
    HOME("opencode", ".config/opencode", GIVE_LIVE),
    HOME("opencode", ".local/share/opencode", GIVE_LIVE),
};

static struct table table_of(const struct agx_tools_host *host)
{
    return host->compat ? (struct table){ compat_rows, AGX_ARRAY_LEN(compat_rows) }
                        : (struct table){ rows, AGX_ARRAY_LEN(rows) };
}

/* How it is given on this backend: there may be no layers. */
static enum give give_of(const struct row *row, const struct agx_tools_host *host)
{
    return row->give == GIVE_LAYER && !host->layers ? GIVE_READ : row->give;
}

/* Writes the host path; false: there is none, or it is too long. */
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

static int print_target(const struct row *row, const struct agx_tools_host *host,
                        const char *source, char out[PATH_MAX], struct agx_error **err)
{
    int n;

    if (row->target || row->env)
        n = snprintf(out, PATH_MAX, "%s", row->target ? row->target : source);
    else
        n = snprintf(out, PATH_MAX, "%s/%s", host->sandbox_home, row->path);
    return n >= 0 && n < PATH_MAX ? 0
                                  : agx_error_set(err, AGX_INVALID_ARGUMENT,
                                                  "the path of tool '%s' is too long", row->tool);
}

static bool is_fit(const struct row *row, const struct agx_tools_host *host, mode_t mode)
{
    if (row->origin != ORIGIN_HOME)
        return S_ISSOCK(mode);
    return host->compat || S_ISDIR(mode);
}

/* Opens what links lead to. 1: it is open; 0: it is missing, or of the wrong kind. */
static int open_source(const struct row *row, const struct agx_tools_host *host, const char *path,
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
    if (is_fit(row, host, ret->mode))
        return 1;
    agx_hostpath_done(ret);
    return 0;
}

/* As agx_tool_files_take(). */
static int add_mount(const struct row *row, const struct agx_tools_host *host,
                     const struct agx_sources_asker *asker, const char *path,
                     const struct agx_tools_given *given, struct agx_error **err)
{
    _cleanup_(agx_hostpath_done) struct agx_hostpath source = AGX_HOSTPATH_INIT;
    const enum give give = give_of(row, host);
    char target[PATH_MAX];
    int r = path[0] ? open_source(row, host, path, asker, &source, err) : 0;

    if (r <= 0)
        return r;
    r = print_target(row, host, path, target, err);
    if (r == 0)
        r = agx_binds_take(given->binds, &source, target, give == GIVE_LIVE, err);
    if (r == 0)
        given->binds->items[given->binds->len - 1].layered =
            give == GIVE_CACHE || give == GIVE_LAYER;
    if (r == 0 && row->env)
        r = agx_pairs_set(given->envs, agx_str_from(row->env), agx_str_from(target), err);
    return r < 0 ? r : 1;
}

/* 1: it is given, or is optional; 0: the host lacks it. */
static int add_row(const struct row *row, const struct agx_tools_host *host,
                   const struct agx_sources_asker *asker, const struct agx_tools_given *given,
                   struct agx_error **err)
{
    const enum give give = give_of(row, host);
    char path[PATH_MAX] = "";
    int r;

    if ((give == GIVE_CACHE && !host->layers) || (give == GIVE_COPY && !given->files))
        return 1;
    if (!print_source(row, host, path))
        path[0] = '\0';
    if (give == GIVE_COPY)
        r = agx_tool_files_take(given->files, host->home, row->path, err);
    else
        r = add_mount(row, host, asker, path, given, err);
    if (r < 0)
        return give == GIVE_COPY ? agx_error_wrap(err, r, "the builtin tool '%s'", row->tool) : r;
    if (r == 0 && row->required)
        return agx_error_set(err, AGX_FAILED_PRECONDITION,
                             "the builtin tool '%s' needs '%s', which this host does not have",
                             row->tool, path);
    if (r == 0)
        AGX_LOG(AGX_LOG_DEBUG, "tool.without", AGX_F_STR("tool", row->tool),
                AGX_F_STR("path", path));
    return r;
}

/* Appends the user-visible name of what this row gives. */
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

/* Appends a list of the tool's rows for which `fits` is true. 1: there are any. */
static int name_rows(const char *tool, const struct agx_tools_host *host,
                     bool (*fits)(const struct row *row, const struct agx_tools_host *host),
                     struct agx_buf *out)
{
    const struct table t = table_of(host);
    size_t named = 0;
    int r = 0;

    for (size_t k = 0; r == 0 && k < t.len; k++) {
        if (strcmp(t.rows[k].tool, tool) != 0 || !fits(&t.rows[k], host))
            continue;
        r = named++ > 0 ? agx_buf_append(out, AGX_STR(", ")) : 0;
        if (r == 0)
            r = name_row(&t.rows[k], out);
    }
    return r < 0 ? r : named > 0;
}

static bool fits_all(const struct row *row, const struct agx_tools_host *host)
{
    (void)row;
    (void)host;
    return true;
}

/* A part that was named explicitly must exist. */
static int refuse_empty(const char *tool, const struct agx_tools_host *host, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(WARNING_MAX);

    if (name_rows(tool, host, fits_all, &text) < 0)
        return agx_error_no_memory(err);
    return agx_error_set(err, AGX_FAILED_PRECONDITION,
                         "this host has nothing of the builtin tool '%s': %.*s", tool,
                         AGX_STR_ARG(agx_buf_peek(&text)));
}

static int add_tool(const char *tool, const struct agx_tools_host *host,
                    const struct agx_sources_asker *asker, const struct agx_tools_given *given,
                    struct agx_error **err)
{
    const struct table t = table_of(host);
    bool any = false;

    for (size_t k = 0; k < t.len; k++) {
        int r =
            strcmp(t.rows[k].tool, tool) == 0 ? add_row(&t.rows[k], host, asker, given, err) : 0;

        if (r < 0)
            return r;
        any = any || r > 0;
    }
    return any || !strchr(tool, ':') ? 0 : refuse_empty(tool, host, err);
}

int agx_tools_add(const struct agx_words *tools, const struct agx_tools_host *host,
                  const struct agx_sources_asker *asker, const struct agx_tools_given *given,
                  struct agx_error **err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < tools->len; i++)
        r = add_tool(tools->items[i], host, asker, given, err);
    return r;
}

/* ---- warnings ---- */

static bool is_power(const struct row *row, const struct agx_tools_host *host)
{
    (void)host;
    return row->give == GIVE_LIVE;
}

static bool is_missed(const struct row *row, const struct agx_tools_host *host)
{
    return row->give == GIVE_CACHE && !host->layers;
}

static int warn_of(const char *tool, const struct agx_tools_host *host, const char *words,
                   bool (*fits)(const struct row *row, const struct agx_tools_host *host),
                   struct agx_words *warnings, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(WARNING_MAX);
    int r = agx_buf_printf(&text, "the builtin tool '%s' %s: ", tool, words);

    if (r == 0)
        r = name_rows(tool, host, fits, &text);
    if (r < 0)
        return agx_error_no_memory(err);
    return r > 0 ? agx_words_add(warnings, agx_buf_peek(&text), err) : 0;
}

int agx_tools_warn(const struct agx_words *tools, const struct agx_tools_host *host,
                   struct agx_words *warnings, struct agx_error **err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < tools->len; i++) {
        r = warn_of(tools->items[i], host, "lets the sandbox change or use on the host", is_power,
                    warnings, err);
        if (r == 0)
            r = warn_of(
                tools->items[i], host,
                "gives an empty cache: this backend cannot put a writable layer over the host's",
                is_missed, warnings, err);
    }
    return r;
}
