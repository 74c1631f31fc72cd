/*
 * cgroup.c: makes and removes cgroups, in one hierarchy (version 2) or in several at once (version
 * 1).
 *
 * Invariants:
 *  (1) a group that make() returned is in every hierarchy, with all its limits; after a failure it
 *      is in none;
 *  (2) no state is kept about groups: the file system is the only source.
 */
#include "backend/native/limits/cgroup_internal.h"
#include "base/fd.h"
#include "base/limits.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/banned.h"

static int check_name(const char *name, struct agx_error **err)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                  "0123456789-_.";
    size_t len = strlen(name);

    if (len == 0 || len > AGX_CGROUP_NAME_MAX || name[0] == '.' || strspn(name, letters) != len)
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "'%s' is not a valid name of a control group", name);
    return 0;
}

#define PREFIX AGX_CGROUP_PREFIX

struct file_name {
    char text[sizeof(PREFIX) + AGX_CGROUP_NAME_MAX];
};

static struct file_name file_name(const char *name)
{
    struct file_name f;

    (void)snprintf(f.text, sizeof(f.text), PREFIX "%s", name);
    return f;
}

/* -- the whole */

int agx_cgroups_open(const struct agx_cgroups_config *config, struct agx_cgroups **ret_groups,
                     struct agx_error **err)
{
    struct agx_cgroup_mounts *found = calloc(1, sizeof(*found));
    struct agx_cgroups *g = calloc(1, sizeof(*g));
    int r = found && g ? agx_cgroup_find(found, err) : agx_error_no_memory(err);

    if (r >= 0) {
        g->version = found->version;
        (void)snprintf(g->top, sizeof(g->top), "agentix-%.8s", config->instance);
    }
    for (size_t i = 0; r >= 0 && i < found->n; i++) {
        r = agx_cgroup_place(&found->mounts[i], g->version, g->top, err);
        if (r >= 0)
            g->trees[g->n_trees++] = (struct agx_cgroup_tree){ found->mounts[i].controllers, r };
    }
    free(found);
    if (r < 0) {
        agx_cgroups_close(g);
        return r;
    }
    *ret_groups = g;
    return 0;
}

int agx_cgroups_open_none(struct agx_cgroups **ret_groups, struct agx_error **err)
{
    struct agx_cgroups *g = calloc(1, sizeof(*g));

    if (!g)
        return agx_error_no_memory(err);
    *ret_groups = g;
    return 0;
}

/* Fails unless it is empty, which is intended. */
static void remove_top(const struct agx_cgroups *g, int top_fd)
{
    _cleanup_close_ int above = openat(top_fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (above >= 0)
        (void)unlinkat(above, g->top, AT_REMOVEDIR);
}

struct agx_cgroups *agx_cgroups_close(struct agx_cgroups *g)
{
    if (!g)
        return NULL;
    for (size_t i = 0; i < g->n_trees; i++) {
        remove_top(g, g->trees[i].top_fd);
        (void)close(g->trees[i].top_fd);
    }
    free(g);
    return NULL;
}

/* -- limits */

int agx_cgroups_check(const struct agx_cgroups *g, const struct agx_cgroup_limits *limits,
                      struct agx_error **err)
{
    if (limits->cpu_millicores < 0 || limits->memory_bytes < 0 || limits->pids < 1)
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "limits of cpu and memory are not negative, that of pids is at least "
                             "1");
    if (limits->cpu_millicores > AGX_CGROUP_MILLICORES_MAX)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "limits.cpu: more than %d cores",
                             AGX_CGROUP_MILLICORES_MAX / 1000);
    if (limits->io_weight > AGX_CGROUP_IO_WEIGHT_MAX)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "limits.io_weight: more than %d",
                             AGX_CGROUP_IO_WEIGHT_MAX);
    if (g->version == 0 &&
        (limits->cpu_millicores > 0 || limits->memory_bytes > 0 || limits->io_weight > 0))
        return agx_error_set(err, AGX_FAILED_PRECONDITION,
                             "%s: this daemon has no control groups: run it as root, or as a "
                             "service of 'systemctl --user' on a host with version 2 of them",
                             limits->cpu_millicores > 0 ? "cpu_limit"
                             : limits->memory_bytes > 0 ? "memory_limit"
                                                        : "io_weight");
    if (limits->io_weight > 0 &&
        (g->version == 1 || faccessat(g->trees[0].top_fd, "io.weight", W_OK, AT_EACCESS) < 0))
        return agx_error_set(err, AGX_FAILED_PRECONDITION,
                             "limits.io_weight: this host's control groups have no io.weight "
                             "(version 2 with the io controller and its cost model)");
    return 0;
}

/* One file that a limit is written to. */
struct setting {
    const char *file;
    unsigned controller;
    bool optional; /* not every kernel has it, and the limit holds without it */
    char value[48];
};

enum { SETTINGS_MAX = 5 };

static size_t settings_v1(const struct agx_cgroup_limits *l, struct setting out[SETTINGS_MAX])
{
    size_t n = 0;

    out[n] = (struct setting){ "pids.max", AGX_CGROUP_PIDS, false, "" };
    (void)snprintf(out[n++].value, sizeof(out->value), "%" PRId64, l->pids);
    if (l->memory_bytes > 0) {
        out[n] = (struct setting){ "memory.limit_in_bytes", AGX_CGROUP_MEMORY, false, "" };
        (void)snprintf(out[n++].value, sizeof(out->value), "%" PRId64, l->memory_bytes);
        /* For memory and swap together. Missing where swap is not accounted. */
        out[n] = (struct setting){ "memory.memsw.limit_in_bytes", AGX_CGROUP_MEMORY, true, "" };
        (void)snprintf(out[n++].value, sizeof(out->value), "%" PRId64, l->memory_bytes);
    }
    if (l->cpu_millicores > 0) {
        out[n] = (struct setting){ "cpu.cfs_period_us", AGX_CGROUP_CPU, false, "" };
        (void)snprintf(out[n++].value, sizeof(out->value), "%d", AGX_CGROUP_CPU_PERIOD_US);
        out[n] = (struct setting){ "cpu.cfs_quota_us", AGX_CGROUP_CPU, false, "" };
        (void)snprintf(out[n++].value, sizeof(out->value), "%" PRId64,
                       AGX_MAX(l->cpu_millicores * AGX_CGROUP_CPU_PERIOD_US / 1000,
                               AGX_CGROUP_CPU_QUOTA_MIN_US));
    }
    return n;
}

static size_t settings_v2(const struct agx_cgroup_limits *l, struct setting out[SETTINGS_MAX])
{
    size_t n = 0;

    out[n] = (struct setting){ "pids.max", AGX_CGROUP_PIDS, false, "" };
    (void)snprintf(out[n++].value, sizeof(out->value), "%" PRId64, l->pids);
    if (l->memory_bytes > 0) {
        out[n] = (struct setting){ "memory.max", AGX_CGROUP_MEMORY, false, "" };
        (void)snprintf(out[n++].value, sizeof(out->value), "%" PRId64, l->memory_bytes);
        out[n++] = (struct setting){ "memory.swap.max", AGX_CGROUP_MEMORY, true, "0" };
    }
    if (l->cpu_millicores > 0) {
        out[n] = (struct setting){ "cpu.max", AGX_CGROUP_CPU, false, "" };
        (void)snprintf(out[n++].value, sizeof(out->value), "%" PRId64 " %d",
                       AGX_MAX(l->cpu_millicores * AGX_CGROUP_CPU_PERIOD_US / 1000,
                               AGX_CGROUP_CPU_QUOTA_MIN_US),
                       AGX_CGROUP_CPU_PERIOD_US);
    }
    if (l->io_weight > 0) {
        out[n] = (struct setting){ "io.weight", AGX_CGROUP_IO, false, "" };
        (void)snprintf(out[n++].value, sizeof(out->value), "default %" PRIu32, l->io_weight);
    }
    return n;
}

static int set_limits(const struct agx_cgroup_tree *t, int dirfd, const struct setting *settings,
                      size_t n, struct agx_error **err)
{
    for (size_t i = 0; i < n; i++) {
        const struct setting *s = &settings[i];

        if (!(s->controller & t->controllers))
            continue;
        if (agx_cgroup_write(dirfd, s->file, s->value) < 0 && !(s->optional && errno == ENOENT))
            return agx_error_errno(err, errno, "write '%s' to '%s'", s->value, s->file);
    }
    return 0;
}

/* -- one group */

/* In one hierarchy: sets its limits and opens the way into it. */
static int make_in(const struct agx_cgroups *g, const struct agx_cgroup_tree *t,
                   const struct setting *settings, size_t n, struct file_name name,
                   struct agx_cgroup_entry *entry, struct agx_error **err)
{
    _cleanup_close_ int dir = agx_cgroup_make_dir(t->top_fd, name.text, false);
    int fd;
    int r;

    if (dir < 0)
        return agx_error_errno(err, errno, "make the directory");
    r = set_limits(t, dir, settings, n, err);
    if (r < 0)
        return r;
    if (g->version == 2) {
        entry->dir_fd = AGX_TAKE_FD(dir);
        return 0;
    }
    fd = openat(dir, "tasks", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return agx_error_errno(err, errno, "open 'tasks'");
    entry->tasks_fds[entry->n_tasks++] = fd;
    return 0;
}

/* Removes it from all hierarchies; returns the first failure. */
static int remove_all(const struct agx_cgroups *g, struct file_name name)
{
    int fault = 0;

    for (size_t i = 0; i < g->n_trees; i++) {
        if (unlinkat(g->trees[i].top_fd, name.text, AT_REMOVEDIR) < 0 && errno != ENOENT && !fault)
            fault = errno;
    }
    return fault;
}

int agx_cgroups_make(struct agx_cgroups *g, const char *name,
                     const struct agx_cgroup_limits *limits, struct agx_cgroup_entry *ret_entry,
                     struct agx_error **err)
{
    struct agx_cgroup_entry entry = AGX_CGROUP_ENTRY_INIT;
    struct setting settings[SETTINGS_MAX];
    struct file_name file;
    size_t n;
    int r = check_name(name, err);

    if (r >= 0)
        r = agx_cgroups_check(g, limits, err);
    if (r < 0)
        return r;
    file = file_name(name);
    if (remove_all(g, file) == EBUSY)
        return agx_error_set(err, AGX_ALREADY_EXISTS,
                             "control group '%s' is there, with processes in it", name);
    n = g->version == 2 ? settings_v2(limits, settings) : settings_v1(limits, settings);
    for (size_t i = 0; r >= 0 && i < g->n_trees; i++)
        r = make_in(g, &g->trees[i], settings, n, file, &entry, err);
    if (r < 0) {
        agx_cgroup_entry_done(&entry);
        (void)remove_all(g, file);
        return agx_error_wrap(err, r, "control group '%s'", name);
    }
    *ret_entry = entry;
    return 0;
}

void agx_cgroup_entry_done(struct agx_cgroup_entry *entry)
{
    if (entry->dir_fd >= 0)
        (void)close(entry->dir_fd);
    for (size_t i = 0; i < entry->n_tasks; i++)
        (void)close(entry->tasks_fds[i]);
    *entry = (struct agx_cgroup_entry)AGX_CGROUP_ENTRY_INIT;
}

int agx_cgroups_remove(struct agx_cgroups *g, const char *name, struct agx_error **err)
{
    int r = check_name(name, err);
    int fault;

    if (r < 0)
        return r;
    fault = remove_all(g, file_name(name));
    if (fault == EBUSY)
        return agx_error_set(err, AGX_UNAVAILABLE, "control group '%s' has processes", name);
    return fault ? agx_error_errno(err, fault, "remove the control group '%s'", name) : 0;
}

/* -- what there is */

/* A half-removed group is in some hierarchies only. */
static bool seen_before(const struct agx_cgroups *g, size_t tree, const char *file)
{
    for (size_t i = 0; i < tree; i++) {
        if (faccessat(g->trees[i].top_fd, file, F_OK, 0) == 0)
            return true;
    }
    return false;
}

static int list_tree(const struct agx_cgroups *g, size_t tree, agx_cgroups_fn each, void *user,
                     struct agx_error **err)
{
    int fd = openat(g->trees[tree].top_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *e;
    int r = 0;

    if (!d) {
        r = agx_error_errno(err, errno, "list the control groups of '%s'", g->top);
        if (fd >= 0)
            (void)close(fd);
        return r;
    }
    while (r >= 0 && (e = readdir(d))) {
        if (e->d_type == DT_DIR && agx_str_starts(agx_str_from(e->d_name), AGX_STR(PREFIX)) &&
            !seen_before(g, tree, e->d_name))
            r = each(user, e->d_name + strlen(PREFIX));
    }
    (void)closedir(d);
    return r;
}

int agx_cgroups_list(struct agx_cgroups *g, agx_cgroups_fn each, void *user, struct agx_error **err)
{
    int r = 0;

    for (size_t i = 0; r >= 0 && i < g->n_trees; i++)
        r = list_tree(g, i, each, user, err);
    return r < 0 ? r : 0;
}

int agx_cgroup_dir(const struct agx_cgroups *g, unsigned controller, const char *name,
                   struct agx_error **err)
{
    int r = check_name(name, err);
    size_t i = 0;

    if (r < 0)
        return r;
    if (g->n_trees == 0)
        return agx_error_set(err, AGX_NOT_FOUND, "there are no control groups");
    while (i + 1 < g->n_trees && !(g->trees[i].controllers & controller))
        i++;
    r = openat(g->trees[i].top_fd, file_name(name).text,
               O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (r >= 0)
        return r;
    if (errno == ENOENT)
        return agx_error_set(err, AGX_NOT_FOUND, "there is no control group '%s'", name);
    return agx_error_errno(err, errno, "open the control group '%s'", name);
}
