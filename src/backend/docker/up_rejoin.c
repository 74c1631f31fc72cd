/*
 * up_rejoin.c: connects the containers of a stopped sandbox, whose network was pruned, to a new
 * one.
 *
 * They refer to their network by its id; by its name they are disconnected and connected again.
 */
#include "backend/docker/op_up.h"

#include "base/banned.h"

static void on_joined(struct agx_op *op, size_t part, const struct agx_docker_answer *answer,
                      struct agx_error *error)
{
    (void)answer;
    if (error)
        agx_docker_part_fail(agx_docker_up_of(op), part, error);
}

/* A companion is known by its name there. */
static int up_rejoin_join(struct agx_docker_up *up, size_t part, struct agx_error **err)
{
    const struct agx_companion *companions = up->task.sandbox.spec.companions;
    _cleanup_json_ json_t *body =
        part == 0 ? json_pack("{s:s}", "Container", up->parts[part].id)
                  : json_pack("{s:s, s:{s:[s]}}", "Container", up->parts[part].id, "EndpointConfig",
                              "Aliases", companions[part - 1].name);

    if (!body)
        return agx_error_no_memory(err);
    return agx_docker_ask(
        &up->task.op,
        &(struct agx_docker_query){
            .request = { .method = "POST", .what = "connect with the network", .body = body },
            .path = agx_docker_path("/networks/%s/connect", up->names.network),
            .answered = on_joined,
            .tag = part },
        err);
}

/* That it was in no such network is no matter. */
static void on_left(struct agx_op *op, size_t part, const struct agx_docker_answer *answer,
                    struct agx_error *error)
{
    struct agx_docker_up *up = agx_docker_up_of(op);

    (void)answer;
    agx_error_freep(&error);
    if (!op->error && up_rejoin_join(up, part, &error) < 0)
        agx_docker_part_fail(up, part, error);
}

static int leave(struct agx_docker_up *up, size_t part, struct agx_error **err)
{
    _cleanup_json_ json_t *body =
        json_pack("{s:s, s:b}", "Container", up->parts[part].id, "Force", 1);

    if (!body)
        return agx_error_no_memory(err);
    return agx_docker_ask(
        &up->task.op,
        &(struct agx_docker_query){
            .request = { .method = "POST", .what = "disconnect from the network", .body = body },
            .path = agx_docker_path("/networks/%s/disconnect", up->names.network),
            .answered = on_left,
            .tag = part },
        err);
}

int agx_docker_up_enter_rejoin(struct agx_op *op, struct agx_error **err)
{
    struct agx_docker_up *up = agx_docker_up_of(op);
    int r = 0;

    for (size_t i = 0; r == 0 && i < up->n_parts; i++) {
        if (up->parts[i].id)
            r = leave(up, i, err);
    }
    return agx_op_wait(op, r, UP_START, err);
}
