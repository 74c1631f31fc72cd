/* up_forward.c: starts the processes that forward a sandbox's ports and name lookups. */
#include "backend/native/op_up.h"

#include "base/log.h"

#include "base/banned.h"

static void up_forward_arrive(struct agx_native_up *up)
{
    up->forwarding--;
    agx_op_arrive(&up->task.op);
}

/* If a forwarder of the primary fails, the sandbox does not work as requested: the operation
 * fails. */
static void on_forwards(void *user, struct agx_error *error)
{
    struct agx_native_up *up = user;

    agx_op_fail(&up->task.op, &error);
    up_forward_arrive(up);
}

/* A companion whose name forwarder fails does not fail the operation: it may have ended meanwhile.
 * If not, the forwarder is tried again after the operation. */
static void on_companion_forwards(void *user, struct agx_error *error)
{
    const struct agx_native_up_part *p = user;
    struct agx_native_box *box = p->up->box;
    struct agx_native_part *part = &box->parts[p - p->up->parts];

    if (error) {
        AGX_LOG(AGX_LOG_WARN, "native.companion_without_names", AGX_F_STR("sandbox", box->id),
                AGX_F_ERR(error), AGX_F_BOOL("ignored", true));
        part->names = agx_forward_stop(part->names);
    }
    agx_error_free(error);
    up_forward_arrive(p->up);
}

static void expect(struct agx_native_up *up)
{
    up->forwarding++;
    agx_op_hold(&up->task.op);
}

/* Each started part has its own forwarder for names, because each has its own network namespace. */
static int forward_names(struct agx_native_up *up, size_t i, struct agx_error **err)
{
    struct agx_native_box *box = up->box;
    int r;

    if (up->parts[i].runs)
        return 0;
    r = agx_text_set(&box->state.parts[i].dns, up->dns[0] ? up->dns : NULL, err);
    if (r < 0 || !up->dns[0] || !agx_native_part_runs(box, i))
        return r;
    r = i == 0
            ? agx_native_forward_names(&box->parts[i], on_forwards, up, err)
            : agx_native_forward_names(&box->parts[i], on_companion_forwards, &up->parts[i], err);
    if (r == 0)
        expect(up);
    return r;
}

static int forward_ports(struct agx_native_up *up, struct agx_error **err)
{
    struct agx_native_box *box = up->box;
    int r;

    if (box->state.n_forwards == 0 || up->mends || !agx_native_part_runs(box, 0))
        return 0;
    r = agx_native_forward_ports(box, &up->sockets, on_forwards, up, err);
    if (r == 0)
        expect(up);
    return r;
}

int agx_native_up_enter_forward(struct agx_op *op, struct agx_error **err)
{
    struct agx_native_up *up = agx_native_up_of(op);
    int r = 0;

    for (size_t i = 0; r == 0 && i < up->n_parts; i++)
        r = forward_names(up, i, err);
    if (r == 0)
        r = forward_ports(up, err);
    agx_forward_sockets_done(&up->sockets);
    return agx_op_wait(&up->task.op, r, UP_REACH, err);
}

/* Forwarders that do not work yet are not waited for; the undo ends them. */
void agx_native_up_cancel_forward(struct agx_native_up *up)
{
    if (up->forwarding == 0)
        return;
    agx_native_box_unforward(up->box);
    for (; up->forwarding > 0; up->forwarding--)
        agx_op_arrive(&up->task.op);
}
