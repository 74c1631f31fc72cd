/* up_make.c: prepares a sandbox: images, its namespace set, its host view; then its files and
 * cgroups. */
#include "backend/native/op_up.h"

#include "backend/native/etc.h"
#include "backend/native/net/resolv.h"
#include "backend/native/plan_build.h"
#include "base/mem.h"

#include <stdio.h>

#include "base/banned.h"

/* ---- images ---- */

static void take_image(struct agx_native_up_part *p, struct agx_image *image,
                       struct agx_error *error)
{
    struct agx_op *op = &p->up->task.op;

    if (image)
        p->image = agx_image_ref(image);
    agx_op_fail(op, &error); /* of a companion too */
}

static void on_image(void *user, struct agx_image *image, struct agx_error *error)
{
    struct agx_native_up_part *p = user;

    p->want = NULL;
    take_image(p, image, error);
    agx_op_arrive(&p->up->task.op);
}

static void on_progress(void *user, const struct agx_pull *pull)
{
    const struct agx_sandbox_op *t = &((struct agx_native_up_part *)user)->up->task;

    if (t->hooks.progress && !t->abandoned)
        t->hooks.progress(t->user, pull);
}

static const struct agx_puller_ops puller_ops = { on_progress, on_image };

/* An existing sandbox keeps the image that it was made from, whatever the image's name means
 * now. */
static int get_image(struct agx_native_up *up, size_t part, struct agx_error **err)
{
    const struct agx_spec *spec = &up->task.sandbox.spec;
    struct agx_native_up_part *p = &up->parts[part];
    int r;

    if (up->makes) {
        r = agx_puller_ensure(up->native->puller,
                              part == 0 ? spec->image : spec->companions[part - 1].image,
                              &puller_ops, p, &p->want, err);
        if (r == 0)
            agx_op_hold(&up->task.op);
        return r;
    }
    r = agx_images_find(up->native->images,
                        agx_str_from(agx_text(up->box->state.parts[part].image)), &p->image, err);
    return r < 0 ? agx_error_wrap(err, r, "the image that sandbox '%s' was made from",
                                  up->task.sandbox.id)
                 : 0;
}

/* ---- the nsset ---- */

static void on_nsset(void *user, struct agx_nsset *nsset, struct agx_error *error)
{
    struct agx_native_up *up = user;

    up->nsset_op = NULL;
    up->nsset = nsset;
    agx_op_fail(&up->task.op, &error);
    agx_op_arrive(&up->task.op);
}

void agx_native_up_drop_nsset(struct agx_native_up *up)
{
    for (size_t i = 0; up->nsset && up->makes && i < up->nsset->n; i++)
        agx_nsset_pool_release(up->native->nssets, up->nsset->members[i].id_base);
    up->nsset = agx_nsset_remove(up->nsset);
}

static enum agx_nsset_network network_of(const struct agx_spec *spec)
{
    if (spec->network == AGX_NETWORK_NONE)
        return AGX_NSSET_NONE;
    return spec->network == AGX_NETWORK_EGRESS ? AGX_NSSET_CLOSED : AGX_NSSET_NAT;
}

static int get_nsset(struct agx_native_up *up, struct agx_error **err)
{
    struct agx_native *n = up->native;
    _cleanup_free_ uint32_t *bases = agx_alloc(up->n_parts * sizeof(*bases));
    _cleanup_free_ struct agx_egress *egress = agx_alloc(AGX_FIREWALL_EGRESS_MAX * sizeof(*egress));
    const struct agx_nsset_want want = { .network = network_of(&up->task.sandbox.spec),
                                         .n = up->n_parts,
                                         .id_bases = up->makes ? NULL : bases,
                                         .egress = egress,
                                         .n_egress = agx_native_egress_parse(&up->egress, egress) };
    int r;

    if (!n->firewalled) {
        *err = agx_error_dup(n->unfirewalled);
        return -(int)n->unfirewalled->code;
    }
    for (size_t i = 0; !up->makes && i < up->n_parts; i++)
        bases[i] = up->box->state.parts[i].id_base;
    r = agx_nsset_pool_take(n->nssets, &want, on_nsset, up, &up->nsset_op, err);
    if (r == 0)
        agx_op_hold(&up->task.op);
    return r;
}

static void on_mended(void *user, struct agx_error *error)
{
    struct agx_native_up *up = user;

    up->nsset_repair = NULL;
    agx_op_fail(&up->task.op, &error);
    agx_op_arrive(&up->task.op);
}

/* A companion starts in the namespaces of its last run. If a daemon ended since, they are gone. */
static int mend_nsset(struct agx_native_up *up, struct agx_error **err)
{
    struct agx_nsset *nsset = up->box->nsset;
    uint32_t lost = 0;
    int r;

    for (size_t i = 0; i < up->n_parts; i++) {
        const struct agx_nsset_member *m = &nsset->members[i];

        if (!up->parts[i].runs && (m->user_fd < 0 || m->net_fd < 0))
            lost |= UINT32_C(1) << i;
    }
    if (lost == 0)
        return 0;
    r = agx_nsset_repair(nsset, lost, on_mended, up, &up->nsset_repair, err);
    if (r == 0)
        agx_op_hold(&up->task.op);
    return r;
}

/* ---- the way out of an ordinary user's ---- */

static void on_pasta(void *user, struct agx_error *error)
{
    struct agx_native_up *up = user;

    up->pasta_op = NULL;
    agx_op_fail(&up->task.op, &error);
    agx_op_arrive(&up->task.op);
}

static int get_pasta(struct agx_native_up *up, struct agx_error **err)
{
    struct agx_pasta *p = up->native->pasta;
    int r;

    if (!p || up->task.sandbox.spec.network == AGX_NETWORK_NONE)
        return 0;
    r = agx_pasta_await(p, on_pasta, up, &up->pasta_op, err);
    if (r == 0)
        agx_op_hold(&up->task.op);
    return r;
}

/* ---- what it shows ---- */

static void on_host_view(void *user, struct agx_host_view *host_view, struct agx_error *error)
{
    struct agx_native_up *up = user;

    up->host_view_job = NULL;
    up->host_view = *host_view;
    *host_view = (struct agx_host_view){ 0 };
    if (!up->makes)
        agx_binds_log_changed(&up->host_view.binds, &up->box->state.sources, up->task.sandbox.id);
    agx_op_fail(&up->task.op, &error);
    agx_op_arrive(&up->task.op);
}

static int get_host_view(struct agx_native_up *up, struct agx_error **err)
{
    const struct agx_spec *spec = &up->task.sandbox.spec;
    int r;

    if (!agx_host_view_is_needed(spec))
        return 0;
    r = agx_host_view_start(&up->native->host, &up->task.sandbox, NULL, up->makes, on_host_view, up,
                            &up->host_view_job, err);
    if (r == 0)
        agx_op_hold(&up->task.op);
    return r;
}

int agx_native_up_enter_make(struct agx_op *op, struct agx_error **err)
{
    struct agx_native_up *up = agx_native_up_of(op);
    const struct agx_spec *spec = &up->task.sandbox.spec;
    int r = 0;

    if (spec->ports_len > 0 && !up->mends)
        r = agx_forward_bind(spec->ports, spec->ports_len, &up->sockets, err);
    if (r == 0)
        r = up->mends ? mend_nsset(up, err) : get_nsset(up, err);
    if (r == 0 && !up->mends)
        r = get_pasta(up, err);
    if (r == 0 && !up->mends)
        r = get_host_view(up, err);
    for (size_t i = 0; r == 0 && i < up->n_parts; i++)
        r = up->parts[i].runs ? 0 : get_image(up, i, err);
    return agx_op_wait(&up->task.op, r, UP_PREPARE, err);
}

void agx_native_up_cancel_make(struct agx_native_up *up)
{
    struct agx_op *op = &up->task.op;

    for (size_t i = 0; i < up->n_parts; i++) {
        if (!up->parts[i].want)
            continue;
        agx_puller_cancel(AGX_TAKE_PTR(up->parts[i].want));
        agx_op_arrive(op);
    }
    if (up->nsset_op) {
        agx_nsset_abandon(AGX_TAKE_PTR(up->nsset_op));
        agx_op_arrive(op);
    }
    if (up->pasta_op) {
        agx_pasta_abandon(AGX_TAKE_PTR(up->pasta_op));
        agx_op_arrive(op);
    }
    if (up->nsset_repair) {
        agx_nsset_repair_abandon(AGX_TAKE_PTR(up->nsset_repair));
        agx_op_arrive(op);
    }
    if (up->host_view_job) {
        agx_host_view_abandon(AGX_TAKE_PTR(up->host_view_job));
        agx_op_arrive(op);
    }
}

/* ---- its files and control groups ---- */

struct part_files {
    bool runs;
    struct agx_native_limits limits;
    struct agx_cgroup_entry entry; /* made by the job */
    struct agx_buf hosts;
    char hostname[AGX_NATIVE_HOSTNAME_MAX + 2];
};

struct prepare_job {
    struct agx_job job;
    struct agx_native_up *up;
    const struct agx_boxdirs *dirs; /* the backend's, which waits for its pools; as the next ones */
    const char *dir;                /* <data>/native */
    struct agx_cgroups *cgroups;
    const struct agx_disk *disk;
    bool makes;
    enum agx_nsset_network network;
    struct agx_native_state state; /* a copy */
    struct part_files *parts;
    char dns[64]; /* the server that a forwarder asks */
};

/* Says where it failed, for example because the disk is full. */
static int name_place(const struct prepare_job *x, int r, struct agx_error **err)
{
    if (r == 0 || !*err || (*err)->sys_errno == 0)
        return r;
    return agx_error_wrap(err, r, "in '%s/boxes/%s'", x->dir, x->state.sandbox_id);
}

static int prepare_files(struct prepare_job *x, size_t i, struct agx_str resolv,
                         struct agx_error **err)
{
    struct part_files *p = &x->parts[i];
    const uint32_t owner = x->state.parts[i].id_base;
    _cleanup_close_ int fd = agx_boxdirs_part(x->dirs, x->state.sandbox_id, i, err);
    int r = fd < 0 ? fd : 0;

    if (r == 0 && p->limits.disk_bytes > 0)
        r = agx_disk_prepare(x->disk, fd, "fs", owner, p->limits.disk_bytes, err);
    if (r < 0)
        return r;
    if ((r = agx_boxdirs_fs(x->dirs, fd, owner, err)) < 0 ||
        (r = agx_boxdirs_put(fd, "fs/etc/hosts", agx_buf_peek(&p->hosts), owner, err)) < 0 ||
        (r = agx_boxdirs_put(fd, "fs/etc/resolv.conf", resolv, owner, err)) < 0)
        return r;
    return agx_boxdirs_put(fd, "fs/etc/hostname", agx_str_from(p->hostname), owner, err);
}

static int prepare_part(struct prepare_job *x, size_t i, struct agx_str resolv,
                        struct agx_error **err)
{
    struct part_files *p = &x->parts[i];
    char name[AGX_NATIVE_GROUP_SIZE];
    int r = name_place(x, prepare_files(x, i, resolv, err), err);

    return r < 0 ? r
                 : agx_cgroups_make(x->cgroups, agx_native_group(x->state.sandbox_id, i, name),
                                    &p->limits.group, &p->entry, err);
}

static int run_prepare(struct agx_job *j, struct agx_error **err)
{
    struct prepare_job *x = container_of(j, struct prepare_job, job);
    _cleanup_(agx_resolv_done) struct agx_resolv host = { 0 };
    _cleanup_buf_ struct agx_buf resolv = AGX_BUF_INIT(AGX_NATIVE_ETC_MAX);
    int r = x->makes ? agx_boxdirs_make(x->dirs, x->state.sandbox_id, err) : 0;

    if (r == 0)
        r = agx_boxdirs_write(x->dirs, &x->state, false, err);
    r = name_place(x, r, err);
    if (r == 0 && x->network != AGX_NSSET_NONE)
        r = agx_resolv_read(&host, err);
    if (r == 0 && agx_resolv_needs_forward(&host, x->network))
        memcpy(x->dns, host.upstream, sizeof(x->dns));
    if (r == 0 && agx_resolv_write(&host, x->network, &x->state.egress, &resolv) < 0)
        r = agx_error_no_memory(err);
    for (size_t i = 0; r == 0 && i < x->state.n_parts; i++)
        r = x->parts[i].runs ? 0 : prepare_part(x, i, agx_buf_peek(&resolv), err);
    return r;
}

static void prepare_free(struct prepare_job *x)
{
    for (size_t i = 0; x->parts && i < x->up->n_parts; i++) {
        agx_cgroup_entry_done(&x->parts[i].entry);
        agx_buf_done(&x->parts[i].hosts);
    }
    free(x->parts);
    agx_native_state_done(&x->state);
    free(x);
}

static void prepare_done(struct agx_job *j, struct agx_error *error)
{
    struct prepare_job *x = container_of(j, struct prepare_job, job);
    struct agx_native_up *up = x->up;

    for (size_t i = 0; i < up->n_parts; i++) {
        up->parts[i].cgroup = x->parts[i].entry;
        x->parts[i].entry = (struct agx_cgroup_entry)AGX_CGROUP_ENTRY_INIT;
    }
    memcpy(up->dns, x->dns, sizeof(up->dns));
    for (size_t i = 0; i < up->n_parts; i++)
        up->has_disks = up->has_disks || x->parts[i].limits.disk_bytes > 0;
    prepare_free(x);
    agx_op_fail(&up->task.op, &error);
    agx_op_arrive(&up->task.op);
}

static const struct agx_job_kind prepare_kind = { .name = "prepare",
                                                  .run = run_prepare,
                                                  .done = prepare_done };

static int fill_part(struct prepare_job *x, size_t i, struct agx_error **err)
{
    struct agx_native_up *up = x->up;
    const struct agx_sandbox *sb = &up->task.sandbox;
    const struct agx_etc etc = { sb->id, &sb->spec, up->box->nsset, &x->state.hosts };
    struct part_files *p = &x->parts[i];
    char name[AGX_NATIVE_HOSTNAME_MAX + 1];
    int r = agx_native_limits(up->native, &sb->spec, i, &p->limits, err);

    if (r < 0)
        return r;
    (void)snprintf(p->hostname, sizeof(p->hostname), "%s\n", agx_etc_hostname(&etc, i, name));
    return agx_etc_hosts(&etc, i, &p->hosts) < 0 ? agx_error_no_memory(err) : 0;
}

static int start_prepare(struct agx_native_up *up, struct agx_error **err)
{
    struct agx_native *n = up->native;
    struct prepare_job *x = agx_new(struct prepare_job);
    int r;

    x->job.kind = &prepare_kind;
    x->up = up;
    x->dirs = &n->dirs;
    x->dir = n->dir;
    x->cgroups = n->cgroups;
    x->disk = &n->disk;
    x->makes = up->makes;
    x->network = up->box->nsset->network;
    x->parts = agx_alloc(up->n_parts * sizeof(*x->parts));
    for (size_t i = 0; i < up->n_parts; i++) {
        x->parts[i].runs = up->parts[i].runs;
        x->parts[i].entry = (struct agx_cgroup_entry)AGX_CGROUP_ENTRY_INIT;
        x->parts[i].hosts = (struct agx_buf)AGX_BUF_INIT(AGX_NATIVE_ETC_MAX);
    }
    r = agx_native_state_copy(&x->state, &up->box->state, err);
    for (size_t i = 0; r == 0 && i < up->n_parts; i++)
        r = fill_part(x, i, err);
    if (r == 0)
        r = agx_job_start(&x->job, n->disk_pool, err);
    if (r < 0)
        prepare_free(x);
    else
        agx_op_hold(&up->task.op);
    return r;
}

/* ---- the record ---- */

static int describe_part(struct agx_native_up *up, struct agx_native_state *s, size_t i,
                         struct agx_error **err)
{
    const struct agx_spec *spec = &up->task.sandbox.spec;
    const struct agx_plan_build c = { .image = up->parts[i].image,
                                      .companion = i == 0 ? NULL : &spec->companions[i - 1],
                                      .compat = up->native->compat };
    struct agx_native_part_state *p = &s->parts[i];
    int r;

    p->id_base = up->nsset->members[i].id_base;
    p->oom = false;
    if ((r = agx_text_set(&p->image, up->parts[i].image->id, err)) < 0 ||
        (r = agx_text_set(&p->user, agx_plan_build_user(&c), err)) < 0)
        return r;
    return agx_text_set(&p->cwd, agx_plan_build_cwd(&c), err);
}

/* Without copies it is complete as soon as its directory exists. */
static int describe(struct agx_native_up *up, struct agx_native_state *s, struct agx_error **err)
{
    int r;

    s->network = up->task.sandbox.spec.network;
    s->made = agx_native_up_copies(up) == 0;
    s->subnet = up->nsset->subnet;
    r = up->makes ? agx_binds_list(&up->host_view.binds, &s->sources, err) : 0;
    if (r < 0)
        return r;
    agx_words_done(&s->egress);
    agx_words_done(&s->hosts);
    if ((r = agx_words_copy(&s->egress, &up->egress, err)) < 0 ||
        (r = agx_words_copy(&s->hosts, &up->hosts, err)) < 0)
        return r;
    if ((r = agx_text_set(&s->interface, up->nsset->interface, err)) < 0 ||
        (r = agx_native_state_set_ports(s, up->task.sandbox.spec.ports,
                                        up->task.sandbox.spec.ports_len, err)) < 0)
        return r;
    for (size_t i = 0; r == 0 && i < up->n_parts; i++)
        r = describe_part(up, s, i, err);
    return r;
}

/* The box now owns the namespace set, and has a record. */
static int take_over(struct agx_native_up *up, struct agx_error **err)
{
    struct agx_native_box *box = up->box;
    struct agx_native_state s;
    int r;

    if (up->makes) {
        r = agx_native_state_init(&s, box->id, up->n_parts, err);
        if (r < 0)
            return r;
        r = describe(up, &s, err);
        if (r < 0) {
            agx_native_state_done(&s);
            return r;
        }
        agx_native_box_know(box, &s);
    } else {
        r = describe(up, &box->state, err);
        if (r < 0)
            return r;
    }
    for (size_t i = 0; i < up->n_parts; i++) {
        if (!box->parts[i].image)
            box->parts[i].image = agx_image_pin(up->parts[i].image);
    }
    box->nsset = AGX_TAKE_PTR(up->nsset);
    up->undoes = true;
    return 0;
}

int agx_native_up_enter_prepare(struct agx_op *op, struct agx_error **err)
{
    struct agx_native_up *up = agx_native_up_of(op);
    int r = up->mends ? 0 : take_over(up, err);

    if (r == 0)
        r = start_prepare(up, err);
    return agx_op_wait(&up->task.op, r, UP_LAUNCH, err);
}
