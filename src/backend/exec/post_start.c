/*
 * post_start.c: see post_start.h.
 *
 * Invariant: one is in the list of its box until it has ended, or its box went or was stopped.
 */
#include "backend/exec/post_start.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/banned.h"

/* ---- commands ---- */

static void on_ran(void *user, int32_t exit_code, struct agx_str output, struct agx_error *error)
{
    struct agx_post_start *p = user;

    p->call = NULL;
    if (!error && exit_code != 0)
        (void)agx_error_set(&error, AGX_FAILED_PRECONDITION, "exit code %" PRId32 ": %.*s",
                            exit_code, AGX_STR_ARG(output));
    p->at++;
    p->begun = false;
    if (!error && p->all && p->note)
        (void)!p->note(p, &error);
    agx_op_fail(&p->op, &error);
    agx_op_arrive(&p->op);
}

/* One that a daemon before this one has begun is not begun again. */
static int run_one(struct agx_post_start *p, struct agx_error **err)
{
    const char *text = p->commands->items[p->at];
    _cleanup_(agx_words_done) struct agx_words command = { 0 };
    struct agx_init_client_run run = { .command = &command, .envs = p->envs, .adopt = p->begun };
    char name[64];
    int r;

    (void)snprintf(name, sizeof(name), "after-%zu-%zu", p->place, p->at);
    run.name = name;
    p->begun = true;
    if ((!run.adopt && p->note && (r = p->note(p, err)) < 0) ||
        (r = agx_words_add(&command, AGX_STR("sh"), err)) < 0 ||
        (r = agx_words_add(&command, AGX_STR("-lc"), err)) < 0 ||
        (r = agx_words_add(&command, agx_str_from(text), err)) < 0)
        return r;
    r = agx_init_client_run(p->primary(p), &run, on_ran, p, &p->call, err);
    if (r == 0)
        agx_op_hold(&p->op);
    return r;
}

int agx_post_start_enter_run(struct agx_op *op, struct agx_error **err)
{
    struct agx_post_start *p = agx_post_start_of(op);

    if (agx_post_start_is_over(p) || p->at == p->commands->len)
        return agx_op_wait(&p->op, 0, AGX_OP_DONE, err);
    return agx_op_wait(&p->op, run_one(p, err), op->state, err);
}

void agx_post_start_cancel(struct agx_op *op)
{
    struct agx_post_start *p = agx_post_start_of(op);

    if (!p->call)
        return;
    agx_backend_abandon(p->call);
    p->call = NULL;
    agx_op_arrive(op);
}

/* ---- the list ---- */

bool agx_post_start_is_known(const struct agx_post_starts *all, size_t place)
{
    const struct agx_post_start *p = all->first;

    while (p && p->place != place)
        p = p->next;
    return p != NULL;
}

void agx_post_start_begin(struct agx_post_start *p, const struct agx_op_kind *kind,
                          struct agx_op_group *group, const char *id)
{
    p->prev = NULL;
    p->next = p->all->first;
    if (p->next)
        p->next->prev = p;
    p->all->first = p;
    agx_op_start_in(&p->op, kind, group, id, 0);
}

void agx_post_start_leave(struct agx_post_start *p)
{
    if (!p->all)
        return;
    *(p->prev ? &p->prev->next : &p->all->first) = p->next;
    if (p->next)
        p->next->prev = p->prev;
    p->all = NULL;
}

void agx_post_starts_cancel(struct agx_post_starts *all)
{
    while (all->first) {
        struct agx_post_start *p = all->first;

        agx_post_start_leave(p);
        agx_op_cancel(&p->op, AGX_CANCELLED);
    }
}
