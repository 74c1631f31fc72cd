#include "backend/files/gpus.h"
#include "backend/files/tools.h"
#include "base/path.h"
#include "tests/support/docker.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

/* A home directory, a runtime directory, and what tests put there. */
struct world {
    char root[64];
    char home[80], runtime[80];
    struct agx_tools_host host;
    struct agx_binds binds;
    struct agx_pairs envs;
    struct agx_tool_files files;
    struct agx_words tools;
};

/* A path beneath the root; good until the fourth call after it. */
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
    *w = (struct world){ .root = "/tmp/agx-docker-XXXXXX" };
    ASSERT_NOT_NULL(mkdtemp(w->root));
    (void)snprintf(w->home, sizeof(w->home), "%s/home", w->root);
    (void)snprintf(w->runtime, sizeof(w->runtime), "%s/run", w->root);
    ASSERT_OK(mkdir(w->home, 0755));
    ASSERT_OK(mkdir(w->runtime, 0755));
    w->host = (struct agx_tools_host){ .home = w->home,
                                       .sandbox_home = "/home/agbox",
                                       .runtime_dir = w->runtime,
                                       .uid = 1000,
                                       .compat = true };
}

static void teardown(struct world *w)
{
    _cleanup_close_ int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    agx_binds_done(&w->binds);
    agx_pairs_done(&w->envs);
    agx_tool_files_done(&w->files);
    agx_words_done(&w->tools);
    ASSERT_OK(agx_path_remove_tree(tmp, w->root + strlen("/tmp/"), NULL));
}

static void make_dirs(const struct world *w, const char *path)
{
    _cleanup_close_ int root = open(w->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_close_ int fd = agx_path_mkdirs(root, path, 0755, NULL);

    ASSERT_OK(fd);
}

static void make_file(const struct world *w, const char *path)
{
    _cleanup_close_ int fd = open(at(w, path), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    ASSERT_OK(fd);
}

static void make_socket(const struct world *w, const char *path)
{
    _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un a = { .sun_family = AF_UNIX };

    (void)snprintf(a.sun_path, sizeof(a.sun_path), "%s/%s", w->root, path);
    ASSERT_OK(bind(fd, (struct sockaddr *)&a, sizeof(a)));
}

static int add_tools(struct world *w, struct agx_error **err)
{
    const struct agx_sources_asker asker = { NULL, geteuid() };

    return agx_tools_add(&w->tools, &w->host, &asker,
                         &(struct agx_tools_given){ &w->binds, &w->envs, &w->files }, err);
}

/* That target shows this path beneath the root. */
static void shows(const struct world *w, const char *target, const char *path, bool writable)
{
    const struct agx_bind *b = agx_binds_at(&w->binds, target);

    if (!b)
        FAIL("nothing at %s", target);
    ASSERT_CSTR(at(w, path), b->source);
    ASSERT_INT(writable, b->writable);
}

/* ---- tools in compatibility mode; test_tools.c has the others ---- */

TEST(tools_show_what_the_host_has)
{
    static const char *const tools[] = { "claude", "codex", "git", "uv", "npm", "apt", "opencode" };
    static const char *const dirs[] = {
        "home/.claude",
        "home/.codex",
        "home/.agents",
        "home/.config/gh",
        "home/.ssh",
        "home/.cache/uv",
        "home/.npm",
        "run/pulse",
        "home/.cache/agents-sandbox-apt",
        "home/.config/opencode",
        "home/.local/share/opencode",
        "home/.local/share/uv/python",
    };
    char python[PATH_MAX];
    struct world w;

    setup(&w);
    for (size_t i = 0; i < AGX_ARRAY_LEN(tools); i++)
        word(&w.tools, tools[i]);
    for (size_t i = 0; i < AGX_ARRAY_LEN(dirs); i++)
        make_dirs(&w, dirs[i]);
    make_file(&w, "home/.claude.json");
    make_file(&w, "home/.ssh/known_hosts");
    make_socket(&w, "run/pulse/native");
    make_socket(&w, "agent");
    w.host.ssh_auth_sock = at(&w, "agent");
    ASSERT_OK(add_tools(&w, NULL));
    ASSERT_UINT(14, w.binds.len);
    shows(&w, "/home/agbox/.claude", "home/.claude", true);
    shows(&w, "/home/agbox/.claude.json", "home/.claude.json", true);
    shows(&w, "/pulse-audio", "run/pulse/native", true);
    shows(&w, "/home/agbox/.codex", "home/.codex", true);
    shows(&w, "/home/agbox/.agents", "home/.agents", true);
    shows(&w, "/ssh-agent", "agent", true);
    shows(&w, "/home/agbox/.config/gh", "home/.config/gh", false);
    shows(&w, "/home/agbox/.ssh/known_hosts", "home/.ssh/known_hosts", true);
    shows(&w, "/home/agbox/.cache/uv", "home/.cache/uv", true);
    shows(&w, "/home/agbox/.npm", "home/.npm", true);
    shows(&w, "/var/cache/apt/archives", "home/.cache/agents-sandbox-apt", true);
    shows(&w, "/home/agbox/.config/opencode", "home/.config/opencode", true);
    shows(&w, "/home/agbox/.local/share/opencode", "home/.local/share/opencode", true);
    (void)snprintf(python, sizeof(python), "%s", at(&w, "home/.local/share/uv/python"));
    shows(&w, python, "home/.local/share/uv/python", true);
    ASSERT_UINT(1, w.envs.len);
    ASSERT_CSTR(python, agx_pairs_get(&w.envs, "UV_PYTHON_INSTALL_DIR"));
    teardown(&w);
}

TEST(tools_warn_of_what_of_the_host_can_be_written)
{
    static const char *const expected[] = {
        "the builtin tool 'claude' lets the sandbox change or use on the host: ~/.claude, "
        "~/.claude.json, the sound server (PulseAudio)",
        "the builtin tool 'git' lets the sandbox change or use on the host: the ssh-agent, "
        "~/.ssh/known_hosts",
    };
    struct agx_words warnings = { 0 };
    struct world w;

    setup(&w);
    ASSERT_OK(agx_tools_warn(&w.tools, &w.host, &warnings, NULL));
    ASSERT_UINT(0, warnings.len);
    word(&w.tools, "claude");
    word(&w.tools, "git");
    ASSERT_OK(agx_tools_warn(&w.tools, &w.host, &warnings, NULL));
    ASSERT_UINT(2, warnings.len);
    for (size_t i = 0; i < AGX_ARRAY_LEN(expected); i++)
        ASSERT_CSTR(expected[i], warnings.items[i]);
    agx_words_done(&warnings);
    teardown(&w);
}

TEST(tools_go_without_what_they_can_do_without)
{
    struct world w;

    setup(&w);
    make_dirs(&w, "home/.claude");
    make_file(&w, "home/.claude.json");
    make_file(&w, "agent"); /* no socket */
    w.host.ssh_auth_sock = at(&w, "agent");
    word(&w.tools, "claude");
    word(&w.tools, "git");
    word(&w.tools, "uv");
    ASSERT_OK(add_tools(&w, NULL));
    ASSERT_UINT(2, w.binds.len);
    ASSERT_UINT(0, w.envs.len);
    teardown(&w);
}

TEST(tools_that_need_what_is_not_there_are_refused_by_path)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct world w;

    setup(&w);
    make_dirs(&w, "home/.claude");
    word(&w.tools, "claude");
    ASSERT_CODE(AGX_FAILED_PRECONDITION, add_tools(&w, &err));
    ASSERT_MESSAGE(err, "the builtin tool 'claude' needs '");
    ASSERT_MESSAGE(err, "/home/.claude.json', which this host does not have");
    teardown(&w);
}

TEST(tools_show_what_links_lead_to)
{
    struct world w;

    setup(&w);
    make_dirs(&w, "elsewhere");
    ASSERT_OK(symlink("../elsewhere", at(&w, "home/.codex")));
    word(&w.tools, "codex");
    ASSERT_OK(add_tools(&w, NULL));
    shows(&w, "/home/agbox/.codex", "elsewhere", true);
    teardown(&w);
}

TEST(tools_whose_target_is_mounted_already_are_refused)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct world w;

    setup(&w);
    make_dirs(&w, "home/.npm");
    word(&w.tools, "npm");
    ASSERT_OK(agx_binds_add(&w.binds, "/x", "/home/agbox/.npm", true, NULL));
    ASSERT_CODE(AGX_INVALID_ARGUMENT, add_tools(&w, &err));
    ASSERT_MESSAGE(err, "conflicting mount target '/home/agbox/.npm'");
    teardown(&w);
}

/* ---- the last look at mounts ---- */

static int check(struct world *w, const char *path, bool writable, const char *user,
                 struct agx_error **err)
{
    const char *own = at(w, "run");
    const struct agx_sources_config c = { .private_paths = &own, .n_private_paths = 1 };
    struct agx_sources_asker asker = { NULL, geteuid() };
    int r;

    ASSERT_OK(agx_sources_new(&c, &asker.sources, NULL));
    agx_binds_done(&w->binds);
    ASSERT_OK(agx_binds_add(&w->binds, at(w, path), "/in", writable, NULL));
    r = agx_binds_open(&w->binds, &asker, user, err);
    agx_sources_unref(asker.sources);
    return r;
}

static void refused(struct world *w, const char *path, enum agx_code code, const char *words)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;

    ASSERT_CODE(code, check(w, path, true, NULL, &err));
    ASSERT_MESSAGE(err, words);
}

TEST(binds_check_refuses_what_is_no_source)
{
    struct world w;

    setup(&w);
    make_file(&w, "file");
    make_socket(&w, "sock");
    make_socket(&w, "run/agentixd.sock");
    ASSERT_OK(symlink("file", at(&w, "link")));
    ASSERT_OK(mkfifo(at(&w, "fifo"), 0600));
    ASSERT_OK(check(&w, "file", true, NULL, NULL));
    ASSERT_OK(check(&w, "sock", true, NULL, NULL));
    ASSERT_OK(check(&w, "home", true, NULL, NULL));
    refused(&w, "link", AGX_INVALID_ARGUMENT, "must not be a symlink");
    refused(&w, "fifo", AGX_INVALID_ARGUMENT, "must be a file, directory, or unix socket");
    refused(&w, "missing", AGX_NOT_FOUND, "mount '/in'");
    refused(&w, "run", AGX_INVALID_ARGUMENT, "is not given to sandboxes");
    refused(&w, "run/agentixd.sock", AGX_INVALID_ARGUMENT, "is not given to sandboxes");
    teardown(&w);
}

TEST(binds_check_refuses_writable_mounts_that_the_user_cannot_write)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct world w;

    setup(&w);
    make_dirs(&w, "work");
    ASSERT_OK(check(&w, "work", true, "0", NULL));
    ASSERT_OK(check(&w, "work", true, "app", NULL));
    ASSERT_OK(check(&w, "work", true, NULL, NULL));
    ASSERT_CODE(AGX_FAILED_PRECONDITION, check(&w, "work", true, "54321", &err));
    ASSERT_MESSAGE(err, "mount '/in' is writable, but the image's user '54321' may not");
    ASSERT_OK(check(&w, "work", false, "54321", NULL));
    ASSERT_OK(chmod(at(&w, "work"), 0775));
    ASSERT_OK(check(&w, "work", true, "54321", NULL)); /* he may be in that group */
    ASSERT_CODE(AGX_FAILED_PRECONDITION, check(&w, "work", true, "54321:54321", NULL));
    ASSERT_OK(chmod(at(&w, "work"), 0777));
    ASSERT_OK(check(&w, "work", true, "54321:54321", NULL));
    if (geteuid() == 0) {
        ASSERT_OK(chmod(at(&w, "work"), 0570));
        ASSERT_OK(chown(at(&w, "work"), 54321, 54322));
        ASSERT_CODE(AGX_FAILED_PRECONDITION, check(&w, "work", true, "54321:54322", NULL));
        ASSERT_OK(check(&w, "work", true, "54320:54322", NULL));
        ASSERT_OK(chmod(at(&w, "work"), 0700));
        ASSERT_OK(check(&w, "work", true, "54321", NULL));
    }
    teardown(&w);
}

/* ---- GPUs ---- */

static void make_device(const struct world *w, const char *path, gid_t group)
{
    if (mknod(at(w, path), S_IFCHR | 0600, makedev(1, 3)) < 0 || chown(at(w, path), 0, group) < 0)
        SKIP("device nodes need root");
}

TEST(gpus_find_gives_the_groups_of_devices_in_order)
{
    struct agx_gpus g;
    struct world w;

    setup(&w);
    ASSERT_OK(agx_gpus_find(&g, w.root, NULL));
    ASSERT_UINT(0, g.len);
    make_dirs(&w, "dri");
    make_dirs(&w, "nvidia-caps");
    make_device(&w, "nvidia0", 105);
    make_device(&w, "nvidiactl", 105);
    make_device(&w, "dri/renderD128", 44);
    make_device(&w, "dri/card0", 7);
    ASSERT_OK(agx_gpus_find(&g, w.root, NULL));
    ASSERT_UINT(2, g.len);
    ASSERT_UINT(44, g.groups[0]);
    ASSERT_UINT(105, g.groups[1]);
    ASSERT_OK(symlink("nowhere", at(&w, "nvidia9")));
    ASSERT_CODE(AGX_NOT_FOUND, agx_gpus_find(&g, w.root, NULL));
    teardown(&w);
}
