/* test_tools.c: builtin tools: the files of the host that a sandbox gets, and those it does not. */
#include "backend/files/tools.h"
#include "base/path.h"
#include "core/tool.h"
#include "image/unpack.h"
#include "tests/support/docker.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define SECRET "{\"token\":\"s3cret\"}\n"

/* A home directory, and what tools made of it. */
struct world {
    char root[64], home[80], runtime[80];
    struct agx_tools_host host;
    struct agx_binds binds;
    struct agx_pairs envs;
    struct agx_tool_files files;
    struct agx_error *error;
};

/* Good until the fourth call after it. */
static const char *at(const struct world *w, const char *path)
{
    static char rooms[4][PATH_MAX];
    static unsigned turn;
    char *out = rooms[turn++ % 4];

    (void)snprintf(out, PATH_MAX, "%s/%s", w->root, path);
    return out;
}

static void setup(struct world *w)
{
    *w = (struct world){ .root = "/tmp/agx-tools-XXXXXX" };
    ASSERT_NOT_NULL(mkdtemp(w->root));
    (void)snprintf(w->home, sizeof(w->home), "%s/home", w->root);
    (void)snprintf(w->runtime, sizeof(w->runtime), "%s/run", w->root);
    ASSERT_OK(mkdir(w->home, 0755));
    ASSERT_OK(mkdir(w->runtime, 0755));
    w->host = (struct agx_tools_host){ .home = w->home,
                                       .sandbox_home = "/root",
                                       .runtime_dir = w->runtime,
                                       .uid = 1000,
                                       .layers = true };
}

static void forget(struct world *w)
{
    agx_binds_done(&w->binds);
    agx_pairs_done(&w->envs);
    agx_tool_files_done(&w->files);
    agx_error_freep(&w->error);
}

static void teardown(struct world *w)
{
    _cleanup_close_ int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    forget(w);
    ASSERT_OK(agx_path_remove_tree(tmp, w->root + strlen("/tmp/"), NULL));
}

static void make_dirs(const struct world *w, const char *path)
{
    _cleanup_close_ int root = open(w->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_close_ int fd = agx_path_mkdirs(root, path, 0755, NULL);

    ASSERT_OK(fd);
}

/* With its directory. */
static void make_file(const struct world *w, const char *path, const char *text)
{
    _cleanup_close_ int fd = -1;
    char dir[PATH_MAX];

    (void)snprintf(dir, sizeof(dir), "%.*s", (int)(strrchr(path, '/') - path), path);
    make_dirs(w, dir);
    fd = open(at(w, path), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    ASSERT_INT((intmax_t)strlen(text), write(fd, text, strlen(text)));
}

static void make_socket(const struct world *w, const char *path)
{
    _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un a = { .sun_family = AF_UNIX };

    (void)snprintf(a.sun_path, sizeof(a.sun_path), "%s/%s", w->root, path);
    ASSERT_OK(bind(fd, (struct sockaddr *)&a, sizeof(a)));
}

/* All that any tool or part is made of. */
static void make_everything(struct world *w)
{
    static const char *const files[] = {
        "home/.claude/.credentials.json",
        "home/.claude.json",
        "home/.claude/settings.json",
        "home/.claude/settings.local.json",
        "home/.claude/CLAUDE.md",
        "home/.claude/agents/file",
        "home/.claude/commands/file",
        "home/.claude/plugins/file",
        "home/.claude/skills/file",
        "home/.codex/auth.json",
        "home/.codex/config.toml",
        "home/.codex/AGENTS.md",
        "home/.codex/prompts/file",
        "home/.agents/file",
        "home/.config/gh/hosts.yml",
        "home/.config/gh/config.yml",
        "home/.config/git/config",
        "home/.gitconfig",
        "home/.ssh/known_hosts",
        "home/.ssh/id_ed25519",
        "home/.cache/uv/file",
        "home/.local/share/uv/python/file",
        "home/.npm/file",
        "home/.npmrc",
        "home/.bashrc",
        "home/.cache/agents-sandbox-apt/file",
        "home/.local/share/opencode/auth.json",
        "home/.config/opencode/opencode.json",
        "home/.config/opencode/opencode.jsonc",
        "home/.config/opencode/AGENTS.md",
        "home/.config/opencode/agent/file",
        "home/.config/opencode/command/file",
        "home/.config/opencode/plugin/file",
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(files); i++)
        make_file(w, files[i], SECRET);
    make_dirs(w, "run/pulse");
    make_socket(w, "run/pulse/native");
    make_socket(w, "agent");
    w->host.ssh_auth_sock = at(w, "agent");
}

static int add(struct world *w, const char *tool)
{
    _cleanup_(agx_words_done) struct agx_words tools = { 0 };

    word(&tools, tool);
    return agx_tools_add(&tools, &w->host, &(struct agx_sources_asker){ NULL, geteuid() },
                         &(struct agx_tools_given){ &w->binds, &w->envs, &w->files }, &w->error);
}

/* What was given, in the order of its paths: "=" a copy, "+" layered, "-" to be read, "!" the
 * host's own. */
static const char *given(const struct world *w)
{
    static char out[1024];
    size_t n = 0;

    out[0] = '\0';
    for (size_t i = 0; i < w->files.len; i++)
        n += (size_t)snprintf(out + n, sizeof(out) - n, "=%s ", w->files.items[i].path);
    for (size_t i = 0; i < w->binds.len; i++) {
        const struct agx_bind *b = &w->binds.items[i];

        n += (size_t)snprintf(out + n, sizeof(out) - n, "%s%s ",
                              b->writable  ? "!"
                              : b->layered ? "+"
                                           : "-",
                              b->target);
    }
    return out;
}

/* ---- what there is ---- */

static const struct {
    const char *tool, *given;
} table[] = {
    { "apt", "+/var/cache/apt/archives " },
    { "claude", "=.claude/.credentials.json " },
    { "claude:agents", "-/root/.claude/agents " },
    { "claude:commands", "-/root/.claude/commands " },
    { "claude:plugins", "-/root/.claude/plugins " },
    { "claude:pulse", "!/pulse-audio " },
    { "claude:settings", "=.claude.json =.claude/settings.json =.claude/settings.local.json "
                         "=.claude/CLAUDE.md " },
    { "claude:skills", "-/root/.claude/skills " },
    { "codex", "=.codex/auth.json " },
    { "codex:agents", "-/root/.agents " },
    { "codex:prompts", "-/root/.codex/prompts " },
    { "codex:settings", "=.codex/config.toml =.codex/AGENTS.md " },
    { "git", "=.config/gh/hosts.yml =.ssh/known_hosts " },
    { "git:settings", "=.gitconfig =.config/git/config =.config/gh/config.yml " },
    { "git:ssh-agent", "!/ssh-agent " },
    { "npm", "+/root/.npm " },
    { "opencode", "=.local/share/opencode/auth.json " },
    { "opencode:agents", "-/root/.config/opencode/agent " },
    { "opencode:commands", "-/root/.config/opencode/command " },
    { "opencode:plugins", "-/root/.config/opencode/plugin " },
    { "opencode:settings", "=.config/opencode/opencode.json =.config/opencode/opencode.jsonc "
                           "=.config/opencode/AGENTS.md " },
};

TEST(every_name_gives_what_it_says_and_nothing_else)
{
    struct world w;

    setup(&w);
    make_everything(&w);
    for (size_t i = 0; i < AGX_ARRAY_LEN(table); i++) {
        ASSERT_CSTR(table[i].tool, agx_tool_name(i)); /* all but uv, the last */
        ASSERT_OK(add(&w, table[i].tool));
        ASSERT_CSTR(table[i].given, given(&w));
        ASSERT_UINT(0, w.envs.len);
        forget(&w);
    }
    ASSERT_CSTR("uv", agx_tool_name(AGX_ARRAY_LEN(table)));
    ASSERT_NULL(agx_tool_name(AGX_ARRAY_LEN(table) + 1));
    teardown(&w);
}

TEST(uv_has_its_interpreters_where_the_host_has_them)
{
    char python[PATH_MAX], expected[PATH_MAX + 32];
    struct world w;

    setup(&w);
    make_everything(&w);
    (void)snprintf(python, sizeof(python), "%s", at(&w, "home/.local/share/uv/python"));
    ASSERT_OK(add(&w, "uv"));
    (void)snprintf(expected, sizeof(expected), "+/root/.cache/uv +%s ", python);
    ASSERT_CSTR(expected, given(&w));
    ASSERT_CSTR(python, agx_pairs_get(&w.envs, "UV_PYTHON_INSTALL_DIR"));
    forget(&w);
    w.host.layers = false;
    ASSERT_OK(add(&w, "uv"));
    (void)snprintf(expected, sizeof(expected), "-%s ", python);
    ASSERT_CSTR(expected, given(&w));
    teardown(&w);
}

TEST(where_there_are_no_layers_a_cache_is_not_given)
{
    static const char *const tools[] = { "apt", "npm" };
    struct world w;

    setup(&w);
    make_everything(&w);
    w.host.layers = false;
    for (size_t i = 0; i < AGX_ARRAY_LEN(tools); i++) {
        ASSERT_OK(add(&w, tools[i]));
        ASSERT_CSTR("", given(&w));
    }
    teardown(&w);
}

TEST(copies_hold_what_the_host_s_files_have)
{
    struct world w;

    setup(&w);
    make_everything(&w);
    ASSERT_OK(add(&w, "codex"));
    ASSERT_UINT(1, w.files.len);
    ASSERT_STR(AGX_STR(SECRET), agx_buf_peek(&w.files.items[0].bytes));
    teardown(&w);
}

TEST(copies_are_taken_only_when_a_sandbox_is_made)
{
    _cleanup_(agx_words_done) struct agx_words tools = { 0 };
    struct world w;

    setup(&w); /* the host has nothing, not even a login */
    word(&tools, "claude");
    word(&tools, "git");
    ASSERT_OK(agx_tools_add(&tools, &w.host, &(struct agx_sources_asker){ NULL, geteuid() },
                            &(struct agx_tools_given){ &w.binds, &w.envs, NULL }, &w.error));
    ASSERT_CSTR("", given(&w));
    teardown(&w);
}

/* ---- what there is not ---- */

TEST(tool_goes_without_what_the_host_has_not_but_for_logins_and_named_parts)
{
    static const struct {
        const char *tool, *words;
    } needed[] = {
        { "claude", "the builtin tool 'claude' needs '" },
        { "codex", "/home/.codex/auth.json', which this host does not have" },
        { "git:ssh-agent", "host has nothing of the builtin tool 'git:ssh-agent': the ssh-agent" },
        { "claude:settings", "tool 'claude:settings': ~/.claude.json, ~/.claude/settings.json, " },
        { "claude:agents", "tool 'claude:agents': ~/.claude/agents" },
    };
    static const char *const spared[] = { "git", "uv", "npm", "apt", "opencode" };
    struct world w;

    setup(&w);
    make_file(&w, "home/.claude/agents.md", "");
    for (size_t i = 0; i < AGX_ARRAY_LEN(needed); i++) {
        ASSERT_CODE(AGX_FAILED_PRECONDITION, add(&w, needed[i].tool));
        ASSERT_MESSAGE(w.error, needed[i].words);
        forget(&w);
    }
    for (size_t i = 0; i < AGX_ARRAY_LEN(spared); i++)
        ASSERT_OK(add(&w, spared[i]));
    teardown(&w);
}

TEST(part_of_which_the_host_has_one_file_is_that_file)
{
    struct world w;

    setup(&w);
    make_file(&w, "home/.claude/settings.json", "{}");
    ASSERT_OK(add(&w, "claude:settings"));
    ASSERT_CSTR("=.claude/settings.json ", given(&w));
    teardown(&w);
}

static void put_fifo(const struct world *w)
{
    ASSERT_OK(mkfifo(at(w, "home/.codex/auth.json"), 0600));
}

static void put_dir(const struct world *w)
{
    make_dirs(w, "home/.codex/auth.json");
}

static void put_link(const struct world *w)
{
    make_file(w, "secret/shadow", "root:x\n");
    ASSERT_OK(symlink("../../secret/shadow", at(w, "home/.codex/auth.json")));
}

static void put_link_above(const struct world *w)
{
    make_file(w, "secret/auth.json", SECRET);
    ASSERT_OK(rmdir(at(w, "home/.codex")));
    ASSERT_OK(symlink(at(w, "secret"), at(w, "home/.codex")));
}

static void put_magic_link(const struct world *w)
{
    ASSERT_OK(symlink("/proc/self/environ", at(w, "home/.codex/auth.json")));
}

static void put_huge(const struct world *w)
{
    make_file(w, "home/.codex/auth.json", "");
    ASSERT_OK(truncate(at(w, "home/.codex/auth.json"), (off_t)1 << 30));
}

static void put_socket(const struct world *w)
{
    make_socket(w, "home/.codex/auth.json");
}

TEST(what_is_no_plain_file_of_a_sane_size_is_refused_by_name)
{
    static const struct {
        void (*put)(const struct world *w);
        const char *words;
    } bad[] = {
        { put_fifo, "/home/.codex/auth.json' is not a regular file" },
        { put_dir, "/home/.codex/auth.json' is not a regular file" },
        { put_socket, "/home/.codex/auth.json' is not a regular file" },
        { put_link, "/home/.codex/auth.json' is a symbolic link or is reached through one" },
        { put_link_above, "/home/.codex/auth.json' is a symbolic link or is reached through one" },
        { put_magic_link, "/home/.codex/auth.json' is a symbolic link or is reached through one" },
        { put_huge, "/home/.codex/auth.json' has 1073741824 bytes; a copy has at most 8388608" },
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++) {
        struct world w;

        setup(&w);
        make_dirs(&w, "home/.codex");
        bad[i].put(&w);
        ASSERT_CODE(AGX_FAILED_PRECONDITION, add(&w, "codex"));
        ASSERT_MESSAGE(w.error, bad[i].words);
        ASSERT_MESSAGE(w.error, "the builtin tool 'codex'");
        ASSERT_UINT(0, w.files.len);
        teardown(&w);
    }
}

/* ---- names ---- */

static void check_name(const char *name, bool whole, const char *words)
{
    struct agx_error *err = NULL;

    if (!words) {
        ASSERT_OK(agx_tool_check(name, whole, NULL));
        return;
    }
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_tool_check(name, whole, &err));
    ASSERT_CSTR(words, err->message);
    agx_error_free(err);
}

TEST(unknown_part_names_the_known_ones)
{
    check_name("claude", false, NULL);
    check_name("claude:settings", false, NULL);
    check_name("git:ssh-agent", false, NULL);
    check_name("zz", false, "unknown builtin resource \"zz\"");
    check_name("zz:settings", false, "unknown builtin resource \"zz:settings\"");
    check_name("claude:", false,
               "unknown part of a builtin resource \"claude:\": its parts are: agents, commands, "
               "plugins, pulse, settings, skills");
    check_name("git:zz", false,
               "unknown part of a builtin resource \"git:zz\": its parts are: settings, ssh-agent");
    check_name("uv:cache", false,
               "unknown part of a builtin resource \"uv:cache\": its parts are: none");
    check_name("claude", true, NULL);
    check_name("claude:settings", true, "unknown builtin resource \"claude:settings\"");
}

/* ---- warnings ---- */

static void warns(const struct agx_tools_host *host, const char *tool, const char *words)
{
    _cleanup_(agx_words_done) struct agx_words tools = { 0 }, warnings = { 0 };

    word(&tools, tool);
    ASSERT_OK(agx_tools_warn(&tools, host, &warnings, NULL));
    ASSERT_UINT(words ? 1 : 0, warnings.len);
    if (words)
        ASSERT_CSTR(words, warnings.items[0]);
}

TEST(warnings_are_of_sockets_and_of_caches_that_are_not_given)
{
    struct world w;

    setup(&w);
    warns(&w.host, "claude", NULL);
    warns(&w.host, "claude:settings", NULL);
    warns(&w.host, "npm", NULL);
    warns(&w.host, "git:ssh-agent",
          "the builtin tool 'git:ssh-agent' lets the sandbox change or use on the host: the "
          "ssh-agent");
    w.host.layers = false;
    warns(&w.host, "npm",
          "the builtin tool 'npm' gives an empty cache: this backend cannot put a writable layer "
          "over the host's: ~/.npm");
    w.host.compat = true;
    warns(&w.host, "npm",
          "the builtin tool 'npm' lets the sandbox change or use on the host: ~/.npm");
    teardown(&w);
}

/* ---- the tar ---- */

static const char passwd[] = "root:x:0:0::/root:/bin/sh\nnode:x:1000:1001::/home/node/:/bin/sh\n"
                             "lost:x:7:7::nowhere:/bin/sh\n";

static int find_owner(const char *user, const char *home_env, struct agx_tool_owner *ret,
                      struct agx_error **err)
{
    return agx_tool_files_find_owner(user, agx_str_from(passwd), home_env, ret, err);
}

TEST(owner_is_whom_commands_run_as)
{
    static const struct {
        const char *user, *home_env;
        uint32_t uid, gid;
        const char *home;
    } rows[] = {
        { "0", NULL, 0, 0, "/root" },
        { "", NULL, 0, 0, "/root" },
        { "node", NULL, 1000, 1001, "/home/node" },
        { "1000", NULL, 1000, 1001, "/home/node" },
        { "node:staff", NULL, 1000, 1001, "/home/node" },
        { "node:5", NULL, 1000, 5, "/home/node" },
        { "4242:5", NULL, 4242, 5, "" },
        { "node", "/work", 1000, 1001, "/work" },
    };
    struct agx_error *err = NULL;
    struct agx_tool_owner o;

    for (size_t i = 0; i < AGX_ARRAY_LEN(rows); i++) {
        ASSERT_OK(find_owner(rows[i].user, rows[i].home_env, &o, NULL));
        ASSERT_UINT(rows[i].uid, o.uid);
        ASSERT_UINT(rows[i].gid, o.gid);
        ASSERT_STR(agx_str_from(rows[i].home), o.home);
    }
    ASSERT_CODE(AGX_FAILED_PRECONDITION, find_owner("nobody", NULL, &o, &err));
    ASSERT_MESSAGE(err, "given to 'nobody', the image's user: no such user");
    agx_error_freep(&err);
    ASSERT_CODE(AGX_FAILED_PRECONDITION, find_owner("lost", NULL, &o, &err));
    ASSERT_MESSAGE(err, "the home 'nowhere' of the sandbox's user is not an absolute path");
    agx_error_freep(&err);
    ASSERT_CODE(AGX_FAILED_PRECONDITION, find_owner("node", "", &o, NULL));
}

struct source {
    struct agx_str left;
};

static ssize_t read_source(void *user, void *buf, size_t size, struct agx_error **err)
{
    struct source *s = user;
    const size_t n = AGX_MIN(size, s->left.len);

    (void)err;
    if (n > 0)
        memcpy(buf, s->left.ptr, n);
    s->left = agx_str_skip(s->left, n);
    return (ssize_t)n;
}

/* Unpacks the tar into out/ of the world. */
static void unpack(const struct world *w, const struct agx_buf *tar)
{
    struct source s = { agx_buf_peek(tar) };
    _cleanup_close_ int root = -1;
    struct agx_unpack_result result;
    const struct agx_unpack_params p = { .read = read_source,
                                         .user = &s,
                                         .limits = AGX_UNPACK_LIMITS_INIT };

    make_dirs(w, "out");
    root = open(at(w, "out"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ASSERT_OK(agx_unpack(root, &p, &result, NULL));
}

static void has_mode(const struct world *w, const char *path, mode_t mode)
{
    struct stat st;

    ASSERT_OK(stat(at(w, path), &st));
    ASSERT_UINT(mode, st.st_mode);
}

TEST(tar_has_the_files_and_the_directories_on_their_way)
{
    _cleanup_buf_ struct agx_buf tar = AGX_BUF_INIT(0);
    struct agx_tool_owner owner;
    struct world w;

    setup(&w);
    make_everything(&w);
    ASSERT_OK(add(&w, "git"));
    ASSERT_OK(add(&w, "claude"));
    ASSERT_OK(add(&w, "claude:settings"));
    ASSERT_OK(find_owner("node", NULL, &owner, NULL));
    ASSERT_OK(agx_tool_files_tar(&w.files, &owner, &w.binds, &tar, NULL));
    unpack(&w, &tar);
    has_mode(&w, "out/home/node/.claude", S_IFDIR | 0700);
    has_mode(&w, "out/home/node/.claude/.credentials.json", S_IFREG | 0600);
    has_mode(&w, "out/home/node/.claude.json", S_IFREG | 0600);
    has_mode(&w, "out/home/node/.config", S_IFDIR | 0700);
    has_mode(&w, "out/home/node/.config/gh", S_IFDIR | 0700);
    has_mode(&w, "out/home/node/.config/gh/hosts.yml", S_IFREG | 0600);
    ASSERT_INT(-1, access(at(&w, "out/home/node/.config/gh/config.yml"), F_OK));
    teardown(&w);
}

TEST(file_that_would_come_to_stand_in_a_mount_is_refused)
{
    static const char *const targets[] = { "/home/node", "/home", "/", "/home/node/.codex",
                                           "/home/node/.codex/auth.json" };
    _cleanup_buf_ struct agx_buf tar = AGX_BUF_INIT(0);
    struct agx_tool_owner owner;
    struct world w;

    setup(&w);
    make_everything(&w);
    ASSERT_OK(find_owner("node", NULL, &owner, NULL));
    for (size_t i = 0; i < AGX_ARRAY_LEN(targets); i++) {
        ASSERT_OK(add(&w, "codex"));
        ASSERT_OK(agx_binds_add(&w.binds, "/data", targets[i], false, NULL));
        ASSERT_CODE(AGX_INVALID_ARGUMENT,
                    agx_tool_files_tar(&w.files, &owner, &w.binds, &tar, &w.error));
        ASSERT_MESSAGE(w.error, "conflicting mount target");
        ASSERT_MESSAGE(w.error, "/home/node/.codex/auth.json");
        forget(&w);
    }
    ASSERT_OK(add(&w, "codex"));
    ASSERT_OK(agx_binds_add(&w.binds, "/data", "/home/node/.codex/prompts", false, NULL));
    ASSERT_OK(agx_binds_add(&w.binds, "/data", "/home/nod", false, NULL));
    ASSERT_OK(agx_tool_files_tar(&w.files, &owner, &w.binds, &tar, NULL));
    teardown(&w);
}
