/*
 * fake.c: the fake backend: its operations, from call to last hook, and its own start and end.
 *
 * Invariants:
 *  (1) an op is in `ops` or in `due` until its last hook; messages of the world with tags that are
 *      not in `ops` are dropped.
 *  (2) hooks come from the link or from the timer `soon`, so never inside a call.
 *  (3) an exec outlives a connection: the backend asks for it again, and ends it only if the world
 *      does not know it or cannot be reached.
 */
#include "tests/fake/fake_internal.h"

#include "base/mem.h"

#include <sys/stat.h>
#include <sys/un.h>

#include "base/banned.h"

/* Removes it from the list that it is in. */
void agx_fake_op_unlink(struct agx_fake *f, struct agx_fake_op *op)
{
    if (op->is_due)
        agx_list_remove(&op->node);
    else
        (void)agx_map_remove(&f->ops, agx_fake_key(&op->tag));
}

void agx_fake_op_free(struct agx_fake_op *op)
{
    agx_error_free(op->error);
    free(op->sandbox_id);
    free(op->exec_id);
    free(op);
}

/* Calls its last hook; takes the error. */
void agx_fake_op_end(struct agx_fake *f, struct agx_fake_op *op, struct agx_error *error)
{
    agx_fake_op_unlink(f, op);
    if (op->kind == AGX_FAKE_OP_EXEC)
        op->exec_hooks.lost(op->user, error);
    else
        op->hooks.done(op->user, error);
    agx_fake_op_free(op);
}

static void on_soon(uv_timer_t *t)
{
    struct agx_fake *f = container_of(t, struct agx_fake, soon);

    struct agx_fake_op *op;

    while (!f->base.closing && (op = AGX_LIST_FIRST(&f->due, struct agx_fake_op, node)))
        agx_fake_op_end(f, op, AGX_TAKE_PTR(op->error));
}

/* Ends it in a later turn. Takes the error. */
void agx_fake_op_end_soon(struct agx_fake *f, struct agx_fake_op *op, struct agx_error *error)
{
    agx_fake_op_unlink(f, op);
    op->is_due = true;
    op->error = error;
    agx_list_push_back(&f->due, &op->node);
    (void)uv_timer_start(&f->soon, on_soon, 0, 0);
}

/* Lists the operations that wait for the world; they stay in `ops`. */
static void list_ops(const struct agx_fake *f, bool but_execs, struct agx_list *ret)
{
    void *value;

    for (size_t at = 0; agx_map_next(&f->ops, &at, NULL, &value);) {
        struct agx_fake_op *op = value;

        if (op->kind == AGX_FAKE_OP_EXEC && but_execs)
            continue;
        agx_list_push_front(ret, &op->node);
    }
}

int agx_fake_unavailable(const struct agx_fake *f, struct agx_error **err)
{
    return agx_error_set(err, AGX_UNAVAILABLE, "the fake world in '%s' does not answer", f->dir);
}

void agx_fake_fail_all(struct agx_fake *f, bool keep_execs)
{
    struct agx_list failed = { 0 };
    struct agx_fake_op *op;

    list_ops(f, keep_execs, &failed);
    while ((op = AGX_LIST_TAKE(&failed, struct agx_fake_op, node))) {
        struct agx_error *error = NULL;

        (void)agx_fake_unavailable(f, &error);
        agx_fake_op_end_soon(f, op, error);
    }
}

void agx_fake_ask_for_execs(struct agx_fake *f)
{
    void *value;

    for (size_t at = 0; agx_map_next(&f->ops, &at, NULL, &value);) {
        struct agx_fake_op *op = value;
        struct agx_fake_out o;

        agx_fake_link_begin(f->link, &o, AGX_FAKE_ADOPT, op->tag);
        agx_fake_out_cstr(&o, op->sandbox_id);
        agx_fake_out_cstr(&o, op->exec_id);
        (void)!agx_fake_link_send(f->link, &o, NULL, 0); /* without memory it counts as lost */
    }
}

/* ---- open and close ---- */

void agx_fake_released(struct agx_fake *f)
{
    agx_done_fn closed = f->closed;
    void *user = f->closed_user;

    if (--f->n_handles > 0)
        return;
    agx_map_done(&f->ops);
    free(f->dir);
    free(f->program);
    free(f->socket);
    free(f);
    if (closed)
        closed(user, NULL);
}

static void on_handle_closed(uv_handle_t *h)
{
    agx_fake_released(h->data);
}

void agx_fake_close(struct agx_backend *b, agx_done_fn closed, void *user)
{
    struct agx_fake *f = agx_fake_of(b);
    struct agx_fake_op *op;

    agx_fake_fail_all(f, false); /* into `due`, which calls no hook */
    while ((op = AGX_LIST_TAKE(&f->due, struct agx_fake_op, node)))
        agx_fake_op_free(op);
    f->state = AGX_FAKE_CLOSED;
    f->closed = closed;
    f->closed_user = user;
    uv_close((uv_handle_t *)&f->timer, on_handle_closed);
    uv_close((uv_handle_t *)&f->soon, on_handle_closed);
    agx_fake_drop_link(f);
}

/* The path of a program beside this one. */
static char *find_program(void)
{
    char self[4096], *path = NULL;
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    char *slash;

    self[n > 0 ? n : 0] = '\0';
    slash = strrchr(self, '/');
    if (!slash)
        return NULL;
    *slash = '\0';
    return asprintf(&path, "%s/agentix-fakeworld", self) < 0 ? NULL : path;
}

static int prepare_paths(struct agx_fake *f, const struct agx_fake_config *c,
                         struct agx_error **err)
{
    if (!c->dir || !*c->dir)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "the fake backend needs a directory");
    f->dir = strdup(c->dir);
    f->program = c->program ? strdup(c->program) : find_program();
    if (!f->dir || !f->program || asprintf(&f->socket, "%s/world.sock", c->dir) < 0)
        return agx_error_errno(err, ENOMEM, "open the fake backend");
    if (strlen(f->socket) >= sizeof(((struct sockaddr_un *)NULL)->sun_path))
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "'%s' is too long for the path of a socket",
                             f->socket);
    if (mkdir(f->dir, 0700) < 0 && errno != EEXIST)
        return agx_error_errno(err, errno, "make the directory '%s'", f->dir);
    return 0;
}

int agx_backend_fake_open(struct agx_loop *l, const struct agx_fake_config *c,
                          struct agx_backend **ret_backend, struct agx_error **err)
{
    struct agx_fake *f = agx_new(struct agx_fake);
    struct agx_siphash_key seed = { 1, 2 }; /* we choose the tags */
    int r;

    agx_loop_assert(l);
    f->base = (struct agx_backend){ .ops = &agx_fake_ops, .loop = l };
    f->config = *c;
    agx_map_init(&f->ops, seed);
    r = prepare_paths(f, c, err);
    if (r < 0) {
        free(f->dir);
        free(f->program);
        free(f->socket);
        free(f);
        return r;
    }
    (void)uv_timer_init(agx_loop_uv(l), &f->timer);
    (void)uv_timer_init(agx_loop_uv(l), &f->soon);
    f->timer.data = f->soon.data = f;
    f->n_handles = 2;
    agx_fake_world_connect(f);
    *ret_backend = &f->base;
    return 0;
}

static int open_kind(struct agx_loop *l, const char *target, const struct agx_backend_setup *setup,
                     struct agx_backend **ret_backend, struct agx_error **err)
{
    struct agx_fake_config c = AGX_FAKE_CONFIG_INIT;

    (void)setup;
    /* The path must be absolute, because the working directory of a daemon is "/". */
    if (!target || target[0] != '/')
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "the backend 'fake' needs a directory: fake:/absolute/path");
    c.dir = target;
    return agx_backend_fake_open(l, &c, ret_backend, err);
}

const struct agx_backend_kind agx_backend_kind_fake = { "fake", "fake:DIR", open_kind };
