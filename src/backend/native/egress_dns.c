/*
 * egress_dns.c: resolves the names of egress lists to addresses, before a sandbox starts and while
 * it runs.
 *
 * The record has the list with the addresses that are in the sandbox's hosts file, so a restarted
 * daemon continues the egress watch.
 */
#include "backend/native/op_up.h"
#include "backend/net/hosts.h"
#include "base/log.h"
#include "base/mem.h"

#include "base/banned.h"

size_t agx_native_egress_parse(const struct agx_words *words, struct agx_egress *ret)
{
    size_t n = 0;

    for (size_t i = 0; i < words->len && n < AGX_FIREWALL_EGRESS_MAX; i++) {
        if (agx_egress_parse(agx_str_from(words->items[i]), &ret[n], NULL) == 0)
            n++;
    }
    return n;
}

static bool has_names(const struct agx_egress *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (agx_egress_is_unknown(&list[i]))
            return true;
    }
    return false;
}

/* ---- before it starts ---- */

/* The list becomes the spec's entries plus the addresses for the hosts file. */
static void on_resolved(void *user, const struct agx_egress *list, size_t n)
{
    struct agx_native_up *up = user;
    struct agx_error *error = NULL;
    int r = 0;

    for (size_t i = 0; r == 0 && i < n; i++)
        r = agx_hosts_add(&list[i], &up->hosts, &up->egress, &error);
    up->resolve = agx_resolve_stop(up->resolve); /* the names in the list are its own */
    agx_op_fail(&up->task.op, &error);
    agx_op_arrive(&up->task.op);
}

int agx_native_up_enter_names(struct agx_op *op, struct agx_error **err)
{
    struct agx_native_up *up = agx_native_up_of(op);
    const struct agx_spec *spec = &up->task.sandbox.spec;
    _cleanup_free_ struct agx_egress *list = NULL;
    size_t n;
    int r;

    if (spec->network != AGX_NETWORK_EGRESS)
        return agx_op_wait(&up->task.op, 0, UP_MAKE, err);
    r = agx_words_copy(&up->egress, &spec->egress, err);
    list = agx_alloc(AGX_FIREWALL_EGRESS_MAX * sizeof(*list));
    n = agx_native_egress_parse(&spec->egress, list);
    if (r == 0 && has_names(list, n)) {
        r = agx_resolve_start(up->native->resolver, list, n, on_resolved, up, &up->resolve, err);
        if (r == 0)
            agx_op_hold(&up->task.op);
    }
    return agx_op_wait(&up->task.op, r, UP_MAKE, err);
}

void agx_native_up_cancel_names(struct agx_native_up *up)
{
    if (!up->resolve)
        return;
    up->resolve = agx_resolve_stop(up->resolve);
    agx_op_arrive(&up->task.op);
}

/* ---- while it runs ---- */

static void on_changed(void *user, const struct agx_egress *list, size_t n)
{
    struct agx_native_box *box = user;
    struct agx_error *error = NULL;

    if (box->nsset && agx_nsset_restrict(box->nsset, list, n, NULL, NULL, &error) < 0)
        AGX_LOG(AGX_LOG_WARN, "native.egress_not_put", AGX_F_STR("sandbox", box->id),
                AGX_F_ERR(error), AGX_F_BOOL("ignored", true));
    agx_error_free(error);
}

void agx_native_egress_dns(struct agx_native_box *box)
{
    _cleanup_free_ struct agx_egress *list = NULL;
    struct agx_error *error = NULL;
    size_t n;

    if (box->egress_dns || !box->nsset || box->state.network != AGX_NETWORK_EGRESS)
        return;
    list = agx_alloc(AGX_FIREWALL_EGRESS_MAX * sizeof(*list));
    n = agx_native_egress_parse(&box->state.egress, list);
    if (has_names(list, n) && agx_resolve_start(box->native->resolver, list, n, on_changed, box,
                                                &box->egress_dns, &error) < 0)
        AGX_LOG(AGX_LOG_WARN, "native.not_guarded", AGX_F_STR("sandbox", box->id), AGX_F_ERR(error),
                AGX_F_BOOL("ignored", true));
    agx_error_free(error);
}
