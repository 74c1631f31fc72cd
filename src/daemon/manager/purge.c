/* purge.c: writes one page at a time. */
#include "daemon/manager/purge.h"

#include "base/limits.h"
#include "base/log.h"
#include "daemon/manager/manager_internal.h"

#include "base/banned.h"

static void on_again(struct agx_alarm *a)
{
    agx_purge_go(container_of(a, struct agx_manager, purge_again));
}

static void try_later(struct agx_manager *e, struct agx_error *error)
{
    const struct agx_manager_config *c = &e->config;

    AGX_LOG(AGX_LOG_WARN, "store.purge_failed", AGX_F_ERR(error), AGX_F_BOOL("again", true));
    agx_error_free(error);
    agx_manager_alarm(e, &e->purge_again,
                      agx_backoff_ms(e->purge_failures++, c->retry_first_ms, c->retry_max_ms),
                      on_again);
}

static void on_stored(void *user, struct agx_error *error)
{
    struct agx_manager *e = user;

    e->commits--;
    e->purging = false;
    if (e->closing) {
        agx_error_free(error); /* the next start continues */
        agx_manager_close_on(e);
    } else if (error) {
        try_later(e, error);
    } else {
        e->purge_failures = 0;
        agx_purge_go(e);
    }
}

void agx_purge_go(struct agx_manager *e)
{
    _cleanup_(agx_store_batch_freep) struct agx_store_batch *b = NULL;
    struct agx_error *error = NULL;
    int r;

    if (e->purging || e->closing)
        return;
    b = agx_store_batch_new();
    r = agx_schema_purge_page(e->config.store, b, AGX_PURGE_PAGE, &error);
    if (r > 0)
        r = agx_store_commit(e->config.store, &b, on_stored, e, &error);
    else if (r == 0)
        return; /* nothing to purge */
    if (r < 0) {
        try_later(e, error);
        return;
    }
    e->purging = true;
    e->commits++;
}
