/*
 * load.c: sandboxes of earlier daemons: found, adopted, or removed.
 *
 *     READ --> FIREWALL <--> PAUSE
 *                |
 *                v
 *              done
 *
 * READ goes through all records on a thread and opens every process that still runs. It empties and
 * removes the cgroups of all others, so that processes which were started but never recorded are
 * gone. When the firewall is in force, or has failed, all waiting operations continue. Images are
 * held until then, because only the records say which are in use. A backend that is closed before
 * never releases them, so that a waiting removal is refused when the store closes.
 */
#include "backend/native/native_internal.h"

#include "base/log.h"
#include "base/mem.h"

#include <fcntl.h>
#include <stdio.h>

#include "base/banned.h"

enum { LOAD_DONE = AGX_OP_DONE, LOAD_READ, LOAD_FIREWALL, LOAD_PAUSE };

/* One directory. */
struct item {
    bool known; /* it has a record */
    char *id;
    struct agx_native_state state;
    int *pidfds;  /* one for each part; -1: not running */
    int (*ns)[2]; /* user and network namespace of running parts, else -1 */
};

struct read_job {
    struct agx_job job;
    struct load *load;
    const struct agx_boxdirs *dirs; /* the backend's, which waits for its pools */
    struct agx_cgroups *cgroups;
    struct item *items;
    size_t n;
    struct agx_map alive; /* names of cgroups */
};

struct load {
    struct agx_op op;
    struct agx_native *native;
    bool firewalling; /* on_firewalled() will come */
};

static struct load *load_of(struct agx_op *op)
{
    return container_of(op, struct load, op);
}

/* ---- reading ---- */

static void item_done(struct item *it)
{
    for (size_t i = 0; it->pidfds && i < it->state.n_parts; i++) {
        agx_closep(&it->pidfds[i]);
        agx_closep(&it->ns[i][0]);
        agx_closep(&it->ns[i][1]);
    }
    free(it->pidfds);
    free(it->ns);
    free(it->id);
    if (it->known)
        agx_native_state_done(&it->state);
}

static int open_ns(pid_t pid, const char *which)
{
    char path[48];

    (void)snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, which);
    return open(path, O_RDONLY | O_CLOEXEC);
}

/* Opens the process, then its namespaces, then checks that it is still that process. */
static void hold_part(struct item *it, size_t i)
{
    const struct agx_native_proc *p = &it->state.parts[i].init;
    int again;

    it->ns[i][0] = it->ns[i][1] = -1;
    it->pidfds[i] = it->state.made ? agx_native_proc_open(p, NULL) : -1;
    if (it->pidfds[i] < 0) {
        it->pidfds[i] = -1;
        return;
    }
    it->ns[i][0] = open_ns(p->pid, "user");
    it->ns[i][1] = open_ns(p->pid, "net");
    again = agx_native_proc_open(p, NULL);
    if (again < 0)
        agx_closep(&it->pidfds[i]);
    else
        (void)close(again);
}

static int note_alive(struct read_job *x, const struct item *it, size_t i)
{
    char name[AGX_NATIVE_GROUP_SIZE];

    agx_native_group(it->id, i, name);
    return agx_map_put(&x->alive, agx_str_from(name), x, NULL);
}

static int read_item(struct read_job *x, struct item *it)
{
    struct agx_error *error = NULL;
    int r = agx_boxdirs_read(x->dirs, it->id, &it->state, &error);

    if (r < 0) { /* its files stay: they may be wanted, and delete removes them */
        AGX_LOG(AGX_LOG_WARN, "native.no_record", AGX_F_STR("sandbox", it->id), AGX_F_ERR(error),
                AGX_F_BOOL("ignored", true));
        agx_error_free(error);
        return 0;
    }
    it->known = true;
    it->pidfds = agx_alloc(it->state.n_parts * sizeof(*it->pidfds));
    it->ns = agx_alloc(it->state.n_parts * sizeof(*it->ns));
    for (size_t i = 0; r == 0 && i < it->state.n_parts; i++) {
        hold_part(it, i);
        if (it->pidfds[i] >= 0)
            r = note_alive(x, it, i);
        else
            it->state.parts[i].init = (struct agx_native_proc){ 0 };
    }
    return r;
}

/* ---- control groups of what does not run ---- */

/* The part that a group belongs to; NULL: none. */
static struct agx_native_part_state *part_of(struct read_job *x, const char *group)
{
    for (size_t i = 0; i < x->n; i++) {
        struct item *it = &x->items[i];
        char name[AGX_NATIVE_GROUP_SIZE];

        for (size_t k = 0; it->known && k < it->state.n_parts; k++) {
            if (strcmp(agx_native_group(it->id, k, name), group) == 0)
                return &it->state.parts[k];
        }
    }
    return NULL;
}

static int add_dead(void *user, const char *name)
{
    struct agx_words *dead = user;

    return agx_words_add(dead, agx_str_from(name), NULL);
}

static void clear_group(struct read_job *x, const char *name)
{
    struct agx_native_part_state *p = part_of(x, name);
    struct agx_cgroup_stats stats = { 0 };
    struct agx_error *error = NULL;
    int r = -AGX_UNAVAILABLE;

    if (p && agx_cgroups_stats(x->cgroups, name, &stats, NULL) == 0)
        p->oom = p->oom || stats.oom_kills > 0;
    for (unsigned i = 0; r == -AGX_UNAVAILABLE && i < AGX_NATIVE_GROUP_TRIES; i++) {
        agx_error_freep(&error);
        r = agx_cgroups_kill(x->cgroups, name, &error);
        if (r == 0)
            r = agx_cgroups_remove(x->cgroups, name, &error);
        if (r == -AGX_UNAVAILABLE)
            (void)usleep(AGX_NATIVE_GROUP_PAUSE_US);
    }
    if (r < 0)
        AGX_LOG(AGX_LOG_WARN, "native.group_stays", AGX_F_STR("group", name), AGX_F_ERR(error),
                AGX_F_BOOL("ignored", true));
    agx_error_free(error);
}

static int clear_groups(struct read_job *x, struct agx_error **err)
{
    _cleanup_(agx_words_done) struct agx_words all = { 0 };
    int r = agx_cgroups_list(x->cgroups, add_dead, &all, err);

    for (size_t i = 0; r == 0 && i < all.len; i++) {
        if (!agx_map_get(&x->alive, agx_str_from(all.items[i])))
            clear_group(x, all.items[i]);
    }
    return r;
}

static int run_read(struct agx_job *j, struct agx_error **err)
{
    struct read_job *x = container_of(j, struct read_job, job);
    _cleanup_(agx_words_done) struct agx_words ids = { 0 };
    int r = agx_boxdirs_list(x->dirs, &ids, err);

    if (r < 0)
        return r;
    x->items = agx_alloc((ids.len + 1) * sizeof(*x->items));
    for (size_t i = 0; r == 0 && i < ids.len; i++) {
        struct item *it = &x->items[x->n];

        if (agx_ident_check("sandbox_id", agx_str_from(ids.items[i]), NULL) < 0)
            continue;
        x->n++;
        r = agx_text_set(&it->id, ids.items[i], err);
        if (r == 0 && read_item(x, it) < 0)
            r = agx_error_no_memory(err);
    }
    return r < 0 ? r : clear_groups(x, err);
}

/* ---- adopting ---- */

static enum agx_nsset_network network_of(const struct agx_native_state *s)
{
    if (s->network == AGX_NETWORK_NONE)
        return AGX_NSSET_NONE;
    return s->network == AGX_NETWORK_EGRESS ? AGX_NSSET_CLOSED : AGX_NSSET_NAT;
}

/* Takes the namespaces of the item. */
static int adopt_nsset(struct agx_native_box *box, struct item *it, struct agx_error **err)
{
    const struct agx_native_state *s = &box->state;
    _cleanup_free_ uint32_t *bases = agx_alloc(s->n_parts * sizeof(*bases));
    _cleanup_free_ struct agx_egress *egress = agx_alloc(AGX_FIREWALL_EGRESS_MAX * sizeof(*egress));
    const struct agx_nsset_record record = { .network = network_of(s),
                                             .interface = s->interface,
                                             .subnet = s->subnet,
                                             .n = s->n_parts,
                                             .id_bases = bases,
                                             .fds = (const int(*)[2])it->ns,
                                             .egress = egress,
                                             .n_egress =
                                                 agx_native_egress_parse(&s->egress, egress) };
    int r;

    for (size_t i = 0; i < s->n_parts; i++)
        bases[i] = s->parts[i].id_base;
    r = agx_nsset_pool_adopt(box->native->nssets, &record, &box->nsset, err);
    for (size_t i = 0; r == 0 && i < s->n_parts; i++)
        it->ns[i][0] = it->ns[i][1] = -1;
    return r;
}

static int reserve_ids(struct agx_native_box *box, struct agx_error **err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < box->state.n_parts; i++) {
        if (box->state.parts[i].id_base != 0)
            r = agx_nsset_pool_reserve(box->native->nssets, box->state.parts[i].id_base, err);
    }
    return r;
}

static void pin_images(struct agx_native_box *box)
{
    for (size_t i = 0; i < box->state.n_parts; i++) {
        struct agx_image *image = NULL;
        const char *id = agx_text(box->state.parts[i].image);

        if (agx_images_find(box->native->images, agx_str_from(id), &image, NULL) == 0)
            box->parts[i].image = agx_image_pin(image);
        agx_image_unref(image);
    }
}

static int adopt_item(struct agx_native *n, struct item *it, struct agx_error **err)
{
    struct agx_native_box *box;
    int r = agx_native_box_get(n, it->id, &box, err);

    if (r < 0 || !it->known)
        return r;
    agx_native_box_know(box, &it->state);
    it->state.n_parts = box->state.n_parts; /* for the arrays that the item still has */
    it->known = false;
    pin_images(box);
    for (size_t i = 0; i < box->state.n_parts; i++) {
        if (it->pidfds[i] >= 0)
            agx_native_part_watch(&box->parts[i], AGX_TAKE_FD(it->pidfds[i]));
    }
    r = agx_native_box_runs(box) ? adopt_nsset(box, it, err) : reserve_ids(box, err);
    if (r == 0 && n->pasta && box->nsset && box->nsset->network != AGX_NSSET_NONE)
        agx_pasta_need(n->pasta);
    if (r == 0 && agx_native_part_runs(box, 0))
        r = agx_native_box_init_client(box, err);
    if (r == 0)
        agx_native_egress_dns(box);
    if (r == 0)
        agx_native_forward_adopt(box);
    return r;
}

/* Without an init there are no commands; a forwarder that died meanwhile is replaced. */
static void settle_boxes(struct agx_native *n)
{
    void *value;

    for (size_t at = 0; agx_map_next(&n->boxes, &at, NULL, &value);) {
        struct agx_native_box *box = value;

        if (!box->init_is_up)
            agx_native_box_down(box, NULL);
        agx_native_forward_keep(box);
    }
}

/* A backend that is being closed adopts nothing. */
static void read_done(struct agx_job *j, struct agx_error *error)
{
    struct read_job *x = container_of(j, struct read_job, job);
    struct load *l = x->load;
    const bool adopts = !error && !l->native->base.closing;

    for (size_t i = 0; i < x->n; i++) {
        struct agx_error *why = NULL;

        if (adopts && adopt_item(l->native, &x->items[i], &why) < 0)
            AGX_LOG(AGX_LOG_WARN, "native.not_adopted", AGX_F_STR("sandbox", x->items[i].id),
                    AGX_F_ERR(why), AGX_F_BOOL("ignored", true));
        agx_error_free(why);
        item_done(&x->items[i]);
    }
    free(x->items);
    agx_map_done(&x->alive);
    free(x);
    agx_op_fail(&l->op, &error);
    agx_op_arrive(&l->op);
}

static const struct agx_job_kind read_kind = { .name = "load", .run = run_read, .done = read_done };

static int enter_read(struct agx_op *op, struct agx_error **err)
{
    struct load *l = load_of(op);
    struct read_job *x = agx_new(struct read_job);
    struct agx_siphash_key seed = { 0 };
    int r;

    agx_map_init(&x->alive, seed);
    x->job.kind = &read_kind;
    x->load = l;
    x->dirs = &l->native->dirs;
    x->cgroups = l->native->cgroups;
    r = agx_job_start(&x->job, l->native->disk_pool, err);
    if (r < 0)
        free(x);
    else
        agx_op_hold(&l->op);
    return agx_op_wait(&l->op, r, LOAD_FIREWALL, err);
}

/* ---- the firewall ---- */

/* Running operations wait for nothing else. */
static void wake_all(struct agx_native *n)
{
    if (n->loaded)
        return;
    n->loaded = true;
    agx_images_unhold(n->images);
    settle_boxes(n);
    for (struct agx_op *op = n->operations.first; op; op = op->next)
        agx_op_wake(op);
}

static void on_firewalled(void *user, struct agx_error *error)
{
    struct load *l = user;
    struct agx_native *n = l->native;

    l->firewalling = false;
    n->unfirewalled = agx_error_free(n->unfirewalled);
    n->unfirewalled = error;
    n->firewalled = !error;
    l->op.then = error ? LOAD_PAUSE : LOAD_DONE;
    if (error)
        AGX_LOG(AGX_LOG_WARN, "native.unfirewalled", AGX_F_ERR(error), AGX_F_BOOL("ignored", true));
    wake_all(n);
    agx_op_arrive(&l->op);
}

static int enter_firewall(struct agx_op *op, struct agx_error **err)
{
    struct load *l = load_of(op);
    int r = agx_nsset_pool_begin(l->native->nssets, on_firewalled, l, err);

    l->firewalling = r == 0;
    if (r == 0)
        agx_op_hold(&l->op);
    return agx_op_wait(&l->op, r, LOAD_DONE, err);
}

static int enter_pause(struct agx_op *op, struct agx_error **err)
{
    struct load *l = load_of(op);

    agx_op_pause(&l->op, AGX_NATIVE_FIREWALL_AGAIN_MS);
    return agx_op_wait(&l->op, 0, LOAD_FIREWALL, err);
}

/* Only the end of the backend cancels it, and nssets that are closed tell nobody. */
static void cancel_load(struct agx_op *op)
{
    struct load *l = container_of(op, struct load, op);

    if (!l->firewalling)
        return;
    l->firewalling = false;
    agx_op_arrive(op);
}

static void load_ended(struct agx_op *op, struct agx_error *error)
{
    struct load *l = container_of(op, struct load, op);
    struct agx_native *n = l->native;

    if (error && !n->base.closing) { /* nothing can be created, and waiting operations get this
                                      * error */
        AGX_LOG(AGX_LOG_ERROR, "native.not_loaded", AGX_F_ERR(error));
        n->unfirewalled = agx_error_free(n->unfirewalled);
        n->unfirewalled = AGX_TAKE_PTR(error);
    }
    agx_error_free(error);
    if (!n->base.closing)
        wake_all(n);
    free(l);
}

static const struct agx_op_state load_states[] = {
    [LOAD_READ] = { "read", enter_read, agx_op_cancel_held },
    [LOAD_FIREWALL] = { "firewall", enter_firewall, agx_op_cancel_held },
    [LOAD_PAUSE] = { "pause", enter_pause, agx_op_cancel_held },
};

static const struct agx_op_kind load_kind = {
    .name = "native-load",
    .states = load_states,
    .n_states = AGX_ARRAY_LEN(load_states),
    .cancel_held = cancel_load,
    .finish = load_ended,
};

void agx_native_load(struct agx_native *n)
{
    struct load *l = agx_new(struct load);

    agx_images_hold(n->images);
    l->native = n;
    agx_op_start_in(&l->op, &load_kind, &n->operations, "all", 0);
}
