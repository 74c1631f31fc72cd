/*
 * plan_build.c: see plan_build.h.
 *
 * Lists are collected in buffers in init's format. Appending fails only for lack of space or
 * memory, so the results are checked once at the end.
 */
#include "backend/native/plan_build.h"

#include "backend/native/limits/caps.h"
#include "base/limits_native.h"

#include <limits.h>
#include <stdio.h>
#include <sys/resource.h>

#include "base/banned.h"

#define AGBOX_USER "agbox"
#define AGBOX_WORKDIR "/workspace"
/* Ends at once on TERM: a shell runs its trap during `wait`, but not during a foreground child. */
#define IDLE "trap 'exit 0' TERM INT; while :; do sleep 3600 & wait $!; done"
#define DEFAULT_PATH "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* Files that reveal more of the host than a sandbox needs, or give it more power: they are
 * hidden. */
static const char *const masked[] = { "/proc/acpi",        "/proc/asound",
                                      "/proc/interrupts",  "/proc/kcore",
                                      "/proc/keys",        "/proc/latency_stats",
                                      "/proc/sched_debug", "/proc/scsi",
                                      "/proc/timer_list",  "/proc/timer_stats",
                                      "/sys/firmware",     "/sys/devices/virtual/powercap",
                                      "/sys/kernel/debug", "/sys/kernel/tracing" };
/* Files that the sandbox's root could otherwise write. */
static const char *const frozen[] = { "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys",
                                      "/proc/sysrq-trigger" };

/* A list that is being built. */
struct list {
    struct agx_buf bytes;
    uint32_t n;
};

struct lists {
    struct list tasks, layers, mounts, masked, frozen, rlimits, argv, env;
};

/* ---- lists ---- */

static int add_word(struct list *l, const char *word)
{
    const struct agx_str w = agx_str_from(word);
    const size_t n = agx_init_word_put(NULL, 0, w);
    int r = agx_buf_reserve(&l->bytes, n);

    if (r < 0)
        return r;
    l->bytes.len += agx_init_word_put(l->bytes.data + l->bytes.len, n, w);
    l->n++;
    return 0;
}

static int add_words(struct list *l, const struct agx_words *w)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < w->len; i++)
        r = add_word(l, w->items[i]);
    return r;
}

static int add_number(struct list *l, uint32_t number)
{
    const size_t n = agx_plan_number_put(NULL, 0, number);
    int r = agx_buf_reserve(&l->bytes, n);

    if (r < 0)
        return r;
    l->bytes.len += agx_plan_number_put(l->bytes.data + l->bytes.len, n, number);
    l->n++;
    return 0;
}

static int add_mount(struct list *l, const char *source, const char *target, uint32_t flags,
                     uint32_t fd)
{
    const struct agx_plan_mount m = {
        .flags = flags, .source = agx_str_from(source), .target = agx_str_from(target), .fd = fd
    };
    const size_t n = agx_plan_mount_put(NULL, 0, &m);
    int r = agx_buf_reserve(&l->bytes, n);

    if (r < 0)
        return r;
    l->bytes.len += agx_plan_mount_put(l->bytes.data + l->bytes.len, n, &m);
    l->n++;
    return 0;
}

static int add_rlimit(struct list *l, uint32_t resource, uint64_t soft, uint64_t hard)
{
    const struct agx_init_rlimit x = { resource, soft, hard };
    int r = agx_buf_reserve(&l->bytes, AGX_INIT_RLIMIT_SIZE);

    if (r < 0)
        return r;
    agx_init_rlimit_put(l->bytes.data + l->bytes.len, &x);
    l->bytes.len += AGX_INIT_RLIMIT_SIZE;
    l->n++;
    return 0;
}

static struct agx_init_list peek(const struct list *l)
{
    return (struct agx_init_list){ .count = l->n, .bytes = agx_buf_peek(&l->bytes) };
}

static void lists_init(struct lists *x)
{
    struct list *all = (struct list *)x;

    for (size_t i = 0; i < sizeof(*x) / sizeof(*all); i++)
        all[i] = (struct list){ .bytes = AGX_BUF_INIT(AGX_INIT_PACKET_MAX) };
}

static void lists_done(struct lists *x)
{
    struct list *all = (struct list *)x;

    for (size_t i = 0; i < sizeof(*x) / sizeof(*all); i++)
        agx_buf_done(&all[i].bytes);
}

/* ---- what runs ---- */

const char *agx_plan_build_user(const struct agx_plan_build *c)
{
    if (c->compat && !c->companion)
        return AGBOX_USER;
    return c->image->config.user ? c->image->config.user : "0";
}

const char *agx_plan_build_cwd(const struct agx_plan_build *c)
{
    if (c->compat && !c->companion)
        return AGBOX_WORKDIR;
    return c->image->config.workdir ? c->image->config.workdir : "/";
}

/* Without a command in the spec, nothing of the image runs and init idles by itself. In
 * compatibility mode the image's entrypoint is given an idle shell. */
static int put_primary(const struct agx_plan_build *c, struct list *argv)
{
    int r;

    if (c->spec->command.len == 0 && !c->compat)
        return 0;
    r = add_words(argv, &c->image->config.entrypoint);
    if (r < 0 || c->spec->command.len > 0)
        return r < 0 ? r : add_words(argv, &c->spec->command);
    if ((r = add_word(argv, "sh")) < 0 || (r = add_word(argv, "-lc")) < 0)
        return r;
    return add_word(argv, IDLE);
}

static int put_companion(const struct agx_plan_build *c, struct list *argv)
{
    const struct agx_words *own = &c->companion->command;
    int r = add_words(argv, &c->image->config.entrypoint);

    return r < 0 ? r : add_words(argv, own->len > 0 ? own : &c->image->config.command);
}

static int put_argv(const struct agx_plan_build *c, struct list *argv, struct agx_error **err)
{
    if (!c->companion)
        return put_primary(c, argv);
    if (c->companion->command.len == 0 && c->image->config.command.len == 0 &&
        c->image->config.entrypoint.len == 0)
        return agx_error_set(err, AGX_FAILED_PRECONDITION,
                             "companion_containers[%s]: image '%s' has no command, and none is "
                             "given",
                             c->companion->name, c->companion->image);
    return put_companion(c, argv);
}

/* ---- the environment ---- */

/* "NAME=value". A name without a value in the image gets an empty one. */
static int set_line(struct agx_pairs *envs, const char *line, struct agx_error **err)
{
    struct agx_str rest = agx_str_from(line), name = { 0 };

    if (!agx_str_split(&rest, '=', &name) || name.len == 0)
        return 0;
    return agx_pairs_set(envs, name, rest.ptr ? rest : AGX_STR(""), err);
}

/* Later ones override: the image's, ours, the caller's. */
static int gather_envs(const struct agx_plan_build *c, struct agx_pairs *envs,
                       struct agx_error **err)
{
    const struct agx_words *of_image = &c->image->config.env;
    int r = set_line(envs, DEFAULT_PATH, err);

    for (size_t i = 0; r == 0 && i < of_image->len; i++)
        r = set_line(envs, of_image->items[i], err);
    if (r == 0 && !c->companion)
        r = agx_host_view_envs(&c->host_view->binds, &c->host_view->envs, c->host_uid, c->host_gid,
                               envs, err);
    if (r < 0)
        return r;
    return agx_pairs_merge(envs, c->companion ? &c->companion->envs : &c->spec->envs, err);
}

static int put_envs(const struct agx_pairs *envs, struct list *out)
{
    _cleanup_buf_ struct agx_buf line = AGX_BUF_INIT(AGX_INIT_PACKET_MAX);
    int r = 0;

    for (size_t i = 0; r == 0 && i < envs->len; i++) {
        agx_buf_clear(&line);
        r = agx_buf_printf(&line, "%s=%s%c", envs->items[i].key, envs->items[i].value, '\0');
        if (r == 0)
            r = add_word(out, (const char *)line.data);
    }
    return r;
}

/* ---- what it sees ---- */

uint32_t agx_plan_build_bind_fd(const struct agx_cgroup_entry *cgroup, size_t bind)
{
    return AGX_PLAN_BUILD_FD_CGROUP + (cgroup->dir_fd >= 0) + (uint32_t)(cgroup->n_tasks + bind);
}

static uint32_t flags_of_bind(const struct agx_bind *b)
{
    if (b->layered)
        return AGX_PLAN_LAYERED | AGX_PLAN_READ_ONLY;
    if (!b->writable)
        return AGX_PLAN_RECURSIVE | AGX_PLAN_READ_ONLY;
    return AGX_PLAN_RECURSIVE | (b->suid ? 0 : AGX_PLAN_NO_SUID);
}

/* Its own files come first, so that a mount of the spec may cover them. */
static int put_mounts(const struct agx_plan_build *c, struct list *out)
{
    static const char *const names[] = { "hosts", "resolv.conf", "hostname" };
    const struct agx_binds *binds = c->companion ? NULL : &c->host_view->binds;
    char source[PATH_MAX], target[64];
    int r = 0;

    for (size_t i = 0; r == 0 && i < AGX_ARRAY_LEN(names); i++) {
        (void)snprintf(source, sizeof(source), "%s/fs/etc/%s", c->dir, names[i]);
        (void)snprintf(target, sizeof(target), "/etc/%s", names[i]);
        r = add_mount(out, source, target, AGX_PLAN_OVER_LINK, AGX_PLAN_NO_FD);
    }
    for (size_t i = 0; r == 0 && binds && i < binds->len; i++)
        r = add_mount(out, binds->items[i].source, binds->items[i].target,
                      (c->shifted ? 0 : AGX_PLAN_IDMAP) | flags_of_bind(&binds->items[i]),
                      agx_plan_build_bind_fd(c->cgroup, i));
    return r;
}

static int put_texts(const char *const *texts, size_t n, struct list *out)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < n; i++)
        r = add_word(out, texts[i]);
    return r;
}

/* The highest file limit that we may set, up to what engines set. No core dumps: 1 byte is too
 * small for a file, and exactly this limit stops the kernel from starting the host's core handler
 * (a pipe in core_pattern). */
static int put_rlimits(struct list *out)
{
    struct rlimit ours = { AGX_NATIVE_NOFILE, AGX_NATIVE_NOFILE };
    uint64_t files;
    int r;

    (void)getrlimit(RLIMIT_NOFILE, &ours);
    files = AGX_MIN((uint64_t)ours.rlim_max, AGX_NATIVE_NOFILE);
    r = add_rlimit(out, RLIMIT_NOFILE, files, files);
    return r < 0 ? r : add_rlimit(out, RLIMIT_CORE, 1, 1);
}

static int put_tasks(const struct agx_cgroup_entry *e, struct list *out)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < e->n_tasks; i++)
        r = add_number(out, AGX_PLAN_BUILD_FD_CGROUP + (uint32_t)i);
    return r;
}

static int put_layers(const struct agx_plan_build *c, struct list *out)
{
    int r = add_words(out, &c->image->layers);

    return r < 0 || !c->ground ? r : add_word(out, c->ground);
}

/* ---- the whole ---- */

static int plan_build_fill(const struct agx_plan_build *c, const struct agx_pairs *envs,
                           struct lists *l, struct agx_error **err)
{
    int r = put_argv(c, &l->argv, err);

    if (r < 0 && err && *err)
        return r;
    if (r == 0 && (r = put_envs(envs, &l->env)) == 0 && (r = put_layers(c, &l->layers)) == 0 &&
        (r = put_mounts(c, &l->mounts)) == 0 &&
        (r = put_texts(masked, AGX_ARRAY_LEN(masked), &l->masked)) == 0 &&
        (r = put_texts(frozen, AGX_ARRAY_LEN(frozen), &l->frozen)) == 0 &&
        (r = put_rlimits(&l->rlimits)) == 0)
        r = put_tasks(c->cgroup, &l->tasks);
    return r < 0 ? agx_error_set(err, AGX_RESOURCE_EXHAUSTED,
                                 "command, environment and mounts take more than %zu bytes, or "
                                 "there is no memory for them",
                                 AGX_INIT_PACKET_MAX)
                 : 0;
}

static uint32_t flags_of(const struct agx_plan_build *c, const struct agx_pairs *envs)
{
    return AGX_PLAN_VOLATILE | (c->at_once ? AGX_PLAN_AT_ONCE : 0) |
           (c->first ? AGX_PLAN_LIST_USER : 0) |
           (c->compat ? 0 : AGX_PLAN_NO_NEW_PRIVS) | /* images of agents-sandbox use sudo */
           (agx_pairs_get(envs, "HOME") ? AGX_PLAN_KEEP_HOME : 0) |
           (c->cgroup->dir_fd >= 0 ? AGX_PLAN_CGROUP2 : 0) | (c->shifted ? AGX_PLAN_SHIFTED : 0);
}

/* File capabilities are valid on the host like setuid bits. */
static uint64_t caps_of(const struct agx_plan_build *c)
{
    const bool guarded = !c->companion && agx_binds_need_suid_guard(&c->host_view->binds);

    return guarded ? c->caps & ~agx_caps_of_files() : c->caps;
}

static int encode(const struct agx_plan *p, struct agx_buf *out, struct agx_error **err)
{
    const size_t n = agx_plan_encode(p, NULL, 0);
    int r = agx_buf_reserve(out, n);

    if (r < 0)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED,
                             "the plan of a sandbox takes %zu bytes, which is too much", n);
    out->len += agx_plan_encode(p, out->data + out->len, n);
    return 0;
}

/* Whatever characters an id has: a host name has letters, digits and hyphens, at most 63. */
static struct agx_str hostname_of(const struct agx_plan_build *c)
{
    const struct agx_str name = agx_str_from(c->companion ? c->companion->name : c->sandbox_id);

    return (struct agx_str){ name.ptr, AGX_MIN(name.len, AGX_NATIVE_HOSTNAME_MAX) };
}

static int write_plan(const struct agx_plan_build *c, const struct agx_pairs *envs,
                      const struct lists *l, struct agx_buf *out, struct agx_error **err)
{
    char fs[PATH_MAX];
    int n = snprintf(fs, sizeof(fs), "%s/fs", c->dir);
    const struct agx_plan p = {
        .flags = flags_of(c, envs),
        .report_fd = AGX_PLAN_BUILD_FD_REPORT,
        .user_fd = AGX_PLAN_BUILD_FD_USER,
        .net_fd = AGX_PLAN_BUILD_FD_NET,
        .cgroup_fd = c->cgroup->dir_fd >= 0 ? AGX_PLAN_BUILD_FD_CGROUP : AGX_PLAN_NO_FD,
        .tasks_fds = peek(&l->tasks),
        .layers = peek(&l->layers),
        .writable = { fs, n > 0 ? AGX_MIN((size_t)n, sizeof(fs) - 1) : 0 },
        .devices = agx_str_from(c->devices),
        .shm_bytes = AGX_NATIVE_SHM,
        .ptys = c->companion ? AGX_NATIVE_COMPANION_PTYS : AGX_NATIVE_PTYS,
        .mounts = peek(&l->mounts),
        .masked = peek(&l->masked),
        .frozen = peek(&l->frozen),
        .hostname = hostname_of(c),
        .caps = caps_of(c),
        .seccomp = c->seccomp,
        .rlimits = peek(&l->rlimits),
        .user = agx_str_from(c->image->config.user ? c->image->config.user : "0"),
        .await_user_ms = c->compat ? AGX_NATIVE_AWAIT_USER_MS : 0,
        .cwd = agx_str_from(agx_plan_build_cwd(c)),
        .argv = peek(&l->argv),
        .env = peek(&l->env),
        .log_dir = agx_str_from(l->argv.n > 0 ? c->dir : ""),
        .log_head = AGX_NATIVE_LOG_HEAD,
        .log_tail = AGX_NATIVE_LOG_TAIL,
    };

    return encode(&p, out, err);
}

int agx_plan_build_encode(const struct agx_plan_build *c, struct agx_buf *out,
                          struct agx_error **err)
{
    _cleanup_(agx_pairs_done) struct agx_pairs envs = { 0 };
    struct lists l;
    int r = gather_envs(c, &envs, err);

    if (r < 0)
        return r;
    lists_init(&l);
    r = plan_build_fill(c, &envs, &l, err);
    if (r == 0)
        r = write_plan(c, &envs, &l, out, err);
    lists_done(&l);
    return r;
}
