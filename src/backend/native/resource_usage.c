/*
 * resource_usage.c: resource usage of a sandbox and of each of its companions.
 *
 *     AWAIT --> READ --> done
 *
 * READ runs on a thread: cgroups and links of running parts, then disks. The kernel counts a disk
 * with a limit; otherwise the files are counted one by one, for a limited time. Figures that
 * disappear meanwhile or cannot be read are left out.
 */
#include "backend/native/resource_usage.h"

#include "backend/native/limits/treesize.h"
#include "backend/native/native_internal.h"
#include "backend/query_op.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/path.h"

#include <fcntl.h>
#include <stdio.h>

#include "base/banned.h"

enum { USE_DONE = AGX_OP_DONE, USE_AWAIT, USE_READ };

enum { LINKS_MAX = 64 << 10, NS_PER_US = 1000, NS_PER_MS = 1000000 };

struct part {
    bool runs;
    struct agx_native_proc init;
    uint32_t project;
    int64_t memory_limit, pids_limit, disk_limit; /* 0: no limit */
    struct agx_resource_usage use;
};

/* Owns everything that the thread uses, except the cgroups, which never change. */
struct read_job {
    struct agx_job job;
    struct using *using;
    struct agx_boxdirs dirs;
    struct agx_disk disk;
    struct agx_cgroups *cgroups;
    char id[AGX_IDENT_MAX + 1];
    struct part *parts;
    size_t n;
    atomic_bool stop;
};

struct using
{
    struct agx_query_op query;
    struct agx_native *native;
    struct part *parts; /* with their limits; the thread's while it reads */
    size_t n;
    struct read_job *job; /* NULL: no thread is running */
    agx_backend_usage_fn use;
};

static struct using *using_of(struct agx_op *op)
{
    return container_of(op, struct using, query.op);
}

/* ---- links ---- */

enum { RX_BYTES, RX_PACKETS, TX_BYTES = 8, TX_PACKETS, COLUMNS };

static void resource_usage_add(struct agx_resource_usage *use, enum agx_resource_usage_figure f,
                               uint64_t value)
{
    agx_resource_usage_set(use, f, use->figures[f] + value);
}

/* "  eth0: 1234 5 0 0 0 0 0 0 567 8 0 ..." */
static void add_link(struct agx_str line, struct agx_resource_usage *use)
{
    uint64_t columns[COLUMNS];
    struct agx_str name, word;
    size_t n = 0;

    if (agx_str_find(line, ':') == line.len || !agx_str_split(&line, ':', &name) ||
        agx_str_eq(agx_str_trim(name), AGX_STR("lo")))
        return;
    while (n < COLUMNS && agx_str_split(&line, ' ', &word)) {
        if (word.len > 0 && !agx_parse_u64(word, UINT64_MAX, &columns[n++]))
            return;
    }
    if (n < COLUMNS)
        return;
    resource_usage_add(use, AGX_USAGE_RX, columns[RX_BYTES]);
    resource_usage_add(use, AGX_USAGE_RX_PACKETS, columns[RX_PACKETS]);
    resource_usage_add(use, AGX_USAGE_TX, columns[TX_BYTES]);
    resource_usage_add(use, AGX_USAGE_TX_PACKETS, columns[TX_PACKETS]);
}

void agx_native_usage_links(struct agx_str text, struct agx_resource_usage *use)
{
    struct agx_str line;

    while (agx_str_split(&text, '\n', &line))
        add_link(line, use);
}

/* Found by its PID 1, which is checked again afterwards: the pid may have been reused. */
static void read_links(struct part *p)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(LINKS_MAX);
    _cleanup_close_ int same = -1;
    char path[48];

    (void)snprintf(path, sizeof(path), "/proc/%d/net/dev", (int)p->init.pid);
    if (agx_fd_read_file(AT_FDCWD, path, &text, NULL) < 0)
        return;
    same = agx_native_proc_open(&p->init, NULL);
    if (same >= 0)
        agx_native_usage_links(agx_buf_peek(&text), &p->use);
}

/* ---- control groups ---- */

static void read_group(const struct read_job *x, size_t i)
{
    struct part *p = &x->parts[i];
    struct agx_cgroup_stats s;
    char name[AGX_NATIVE_GROUP_SIZE];

    if (agx_cgroups_stats(x->cgroups, agx_native_group(x->id, i, name), &s, NULL) < 0)
        return;
    agx_resource_usage_set(&p->use, AGX_USAGE_CPU_NS, s.cpu_usec * NS_PER_US);
    agx_resource_usage_set(&p->use, AGX_USAGE_MEMORY, s.memory_bytes);
    if (s.has_peak)
        agx_resource_usage_set(&p->use, AGX_USAGE_MEMORY_PEAK, s.memory_peak);
    if (p->memory_limit > 0)
        agx_resource_usage_set(&p->use, AGX_USAGE_MEMORY_LIMIT, (uint64_t)p->memory_limit);
    agx_resource_usage_set(&p->use, AGX_USAGE_PIDS, s.pids);
    if (p->pids_limit > 0)
        agx_resource_usage_set(&p->use, AGX_USAGE_PIDS_LIMIT, (uint64_t)p->pids_limit);
    if (s.has_io) {
        agx_resource_usage_set(&p->use, AGX_USAGE_IO_READ, s.io_read_bytes);
        agx_resource_usage_set(&p->use, AGX_USAGE_IO_WRITTEN, s.io_write_bytes);
    }
}

/* ---- disks ---- */

static void read_disk(struct read_job *x, size_t i)
{
    struct part *p = &x->parts[i];
    const struct agx_treesize_limits limits = {
        .depth = AGX_NATIVE_USAGE_DEPTH,
        .deadline_ns = agx_clock_ns() + (uint64_t)AGX_NATIVE_USAGE_WALK_MS * NS_PER_MS,
        .stop = &x->stop
    };
    _cleanup_close_ int dir = -1;
    char path[AGX_IDENT_MAX + 32];
    uint64_t bytes;
    int r;

    (void)snprintf(path, sizeof(path), "%s/%zu", x->id, i);
    dir = agx_path_open(x->dirs.boxes_fd, path, O_RDONLY | O_DIRECTORY, 0, NULL);
    if (dir < 0)
        return;
    r = p->disk_limit > 0 ? agx_disk_used(&x->disk, dir, "fs", p->project, &bytes, NULL)
                          : agx_treesize(dir, "fs", &limits, &bytes, NULL);
    if (r < 0)
        return;
    agx_resource_usage_set(&p->use, AGX_USAGE_DISK, bytes);
    if (p->disk_limit > 0)
        agx_resource_usage_set(&p->use, AGX_USAGE_DISK_LIMIT, (uint64_t)p->disk_limit);
}

/* ---- the thread ---- */

static int run_read(struct agx_job *j, struct agx_error **err)
{
    struct read_job *x = container_of(j, struct read_job, job);

    (void)err;
    for (size_t i = 0; i < x->n; i++) {
        if (!x->parts[i].runs)
            continue;
        read_group(x, i);
        read_links(&x->parts[i]);
    }
    for (size_t i = 0; i < x->n && !atomic_load(&x->stop); i++)
        read_disk(x, i);
    return 0;
}

static void cancel_read(struct agx_job *j)
{
    atomic_store(&container_of(j, struct read_job, job)->stop, true);
}

static void read_free(struct read_job *x)
{
    agx_boxdirs_close(&x->dirs);
    free(x->parts);
    free(x);
}

static void read_done(struct agx_job *j, struct agx_error *error)
{
    struct read_job *x = container_of(j, struct read_job, job);
    struct using *u = x->using;

    u->job = NULL;
    u->parts = AGX_TAKE_PTR(x->parts);
    u->n = x->n;
    read_free(x);
    agx_op_fail(&u->query.op, &error);
    agx_op_arrive(&u->query.op);
}

static const struct agx_job_kind read_kind = {
    .name = "use", .run = run_read, .done = read_done, .cancel = cancel_read
};

/* ---- states ---- */

static int enter_await(struct agx_op *op, struct agx_error **err)
{
    if (using_of(op)->native->loaded)
        return agx_op_wait(op, 0, USE_READ, err);
    agx_op_pause(op, AGX_NATIVE_LOAD_MS);
    return agx_op_wait(op, 0, USE_AWAIT, err);
}

static void copy_parts(struct using *u, const struct agx_native_box *box)
{
    u->n = AGX_MIN(u->n, box->state.n_parts);
    for (size_t i = 0; i < u->n; i++) {
        u->parts[i].runs = agx_native_part_runs(box, i);
        u->parts[i].init = box->state.parts[i].init;
        u->parts[i].project = box->state.parts[i].id_base;
    }
}

static int enter_read(struct agx_op *op, struct agx_error **err)
{
    struct using *u = using_of(op);
    const struct agx_native_box *box = agx_native_box_find(u->native, u->query.sandbox_id);
    struct read_job *x;
    int r;

    if (!box || !box->known || !box->state.made) {
        r = agx_error_set(err, AGX_NOT_FOUND, "there is no sandbox '%s'", u->query.sandbox_id);
        return agx_op_wait(&u->query.op, r, USE_DONE, err);
    }
    copy_parts(u, box);
    x = agx_new(struct read_job);
    x->job.kind = &read_kind;
    x->using = u;
    x->disk = u->native->disk;
    x->cgroups = u->native->cgroups;
    x->parts = AGX_TAKE_PTR(u->parts);
    x->n = u->n;
    u->n = 0;
    (void)snprintf(x->id, sizeof(x->id), "%s", u->query.sandbox_id);
    r = agx_boxdirs_open(&x->dirs, u->native->dir, err);
    if (r == 0)
        r = agx_job_start(&x->job, u->native->usage_pool, err);
    if (r == 0) {
        u->job = x;
        agx_op_hold(&u->query.op);
    } else {
        read_free(x);
    }
    return agx_op_wait(&u->query.op, r, USE_DONE, err);
}

static void cancel_job(struct agx_op *op)
{
    const struct using *u = using_of(op);

    if (u->job)
        agx_job_cancel(&u->job->job);
}

static void using_ended(struct agx_op *op, struct agx_error *error)
{
    struct using *u = using_of(op);

    for (size_t i = 0; !error && i < u->n && agx_query_op_is_heard(&u->query); i++)
        u->use(u->query.user, i, &u->parts[i].use);
    agx_query_op_end(&u->query, error);
    free(u->parts);
    free(u);
}

static const struct agx_op_state states[] = {
    [USE_AWAIT] = { "await", enter_await, agx_op_cancel_held },
    [USE_READ] = { "read", enter_read, agx_op_cancel_held },
};

static const struct agx_op_kind kind = {
    .name = "native-use",
    .states = states,
    .n_states = AGX_ARRAY_LEN(states),
    .cancel_held = cancel_job,
    .finish = using_ended,
};

/* ---- start ---- */

/* What cannot be parsed as a limit counts as none: the sandbox was made without it. */
static void note_limits(struct using *u, const struct agx_spec *spec)
{
    for (size_t i = 0; i < u->n; i++) {
        struct agx_native_limits limits = { 0 };

        if (agx_native_limits(u->native, spec, i, &limits, NULL) < 0)
            continue;
        u->parts[i].memory_limit = limits.group.memory_bytes;
        u->parts[i].pids_limit = limits.group.pids;
        u->parts[i].disk_limit = limits.disk_bytes;
    }
}

int agx_native_usage(struct agx_backend *b, const struct agx_sandbox *sandbox,
                     agx_backend_usage_fn use, agx_done_fn done, void *user,
                     struct agx_backend_op **ret_op, struct agx_error **err)
{
    struct using *u = agx_new(struct using);
    int r = agx_query_op_init(&u->query, b, sandbox->id, done, user, err);

    if (r < 0) {
        free(u);
        return r;
    }
    u->native = agx_native_of(b);
    u->n = sandbox->spec.companions_len + 1;
    u->parts = agx_alloc(u->n * sizeof(*u->parts));
    note_limits(u, &sandbox->spec);
    u->use = use;
    agx_query_op_start(&u->query, &kind, &u->native->operations, ret_op);
    return 0;
}
