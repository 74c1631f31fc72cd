/* up_egress_names.c: the state of a create that resolves the names of its egress list. */
#include "backend/docker/op_up.h"

#include "backend/docker/egress_dns.h"
#include "backend/net/hosts.h"
#include "base/mem.h"

#include "base/banned.h"

/* Appends these entries to the list. */
static int extend(char **list, const struct agx_words *entries, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(AGX_DOCKER_EGRESS_TEXT);
    char *whole;
    int r = agx_buf_printf(&text, "%s", *list);

    for (size_t i = 0; r == 0 && i < entries->len; i++)
        r = agx_buf_printf(&text, " %s", entries->items[i]);
    if (r < 0)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "egress: the list is too long");
    whole = agx_str_dup(agx_buf_peek(&text));
    if (!whole)
        return agx_error_no_memory(err);
    free(*list);
    *list = whole;
    return 0;
}

/* Also when some names are unresolved: those are not in the hosts file. */
static void on_resolved(void *user, const struct agx_egress *list, size_t n)
{
    _cleanup_(agx_words_done) struct agx_words entries = { 0 };
    struct agx_docker_up *up = user;
    struct agx_op *op = &up->task.op;
    struct agx_error *error = NULL;
    int r = 0;

    for (size_t i = 0; r == 0 && i < n; i++)
        r = agx_hosts_add(&list[i], &up->hosts, &entries, &error);
    if (r == 0)
        (void)!extend(&up->egress, &entries, &error);
    up->resolve = agx_resolve_stop(up->resolve);
    up->resolved = true;
    agx_op_fail(op, &error);
    agx_op_arrive(op);
}

static bool has_names(const struct agx_egress *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (agx_egress_is_unknown(&list[i]))
            return true;
    }
    return false;
}

int agx_docker_up_enter_names(struct agx_op *op, struct agx_error **err)
{
    struct agx_docker_up *up = agx_docker_up_of(op);
    _cleanup_free_ struct agx_egress *list = NULL;
    size_t n = 0;
    int r = 0;

    if (up->egress && agx_docker_by(op)->resolver && !up->resolved) {
        list = agx_alloc(AGX_FIREWALL_EGRESS_MAX * sizeof(*list));
        r = agx_docker_egress_parse(up->egress, list, &n, err);
    }
    if (r == 0 && has_names(list, n)) {
        r = agx_resolve_start(agx_docker_by(op)->resolver, list, n, on_resolved, up, &up->resolve,
                              err);
        if (r == 0)
            agx_op_hold(op);
    }
    return agx_op_wait(op, r, UP_MAKE, err);
}

void agx_docker_up_cancel_names(struct agx_docker_up *up)
{
    if (!up->resolve)
        return;
    up->resolve = agx_resolve_stop(up->resolve);
    agx_op_arrive(&up->task.op);
}
