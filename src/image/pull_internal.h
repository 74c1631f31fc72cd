/* pull_internal.h: shared by pull*.c only. */
#ifndef AGX_IMAGE_PULL_INTERNAL_H
#define AGX_IMAGE_PULL_INTERNAL_H

#include "base/buf.h"
#include "core/imageref.h"
#include "image/import.h"
#include "image/ingest.h"
#include "image/manifest.h"
#include "image/pull.h"
#include "image/registry.h"
#include "image/singleflight.h"

/* "docker-daemon:" before a name: the image is in a local engine. */
#define PULL_ENGINE "docker-daemon:"

/* Work of the store for a pull, which may be gone when it ends. */
struct pull_errand {
    struct pull *pull; /* NULL: it is gone */
    size_t layer;      /* index of the layer; only for layer errands */
};

enum pull_layer_state {
    PULL_LAYER_WAITS, /* for a free place, or for another pull that fetches it */
    PULL_LAYER_FETCHED,
    PULL_LAYER_UNPACKED, /* the store is unpacking it */
    PULL_LAYER_THERE,
};

struct pull_layer {
    struct pull *pull;
    enum pull_layer_state state;
    const struct agx_descriptor *blob; /* borrowed from the manifest */
    const char *diff_id;               /* borrowed from the configuration */
    struct agx_registry_call *call;    /* FETCHED, as the next */
    struct agx_spool *spool;
    struct pull_errand *errand; /* UNPACKED */
};

struct pull {
    struct agx_puller *puller;
    struct agx_singleflight flight; /* its key is the canonical name */
    char *image;                    /* as it was first requested */
    struct agx_imageref ref;
    bool from_engine;
    struct agx_image *found; /* it exists: only report it */
    uv_timer_t timer;        /* the next step, in a later turn */
    struct agx_pull progress;

    /* From a registry. */
    struct agx_credentials_lookup *lookup;
    struct agx_error *unknown; /* why there are no credentials; NULL: none are needed */
    struct agx_registry *registry;
    struct agx_registry_call *call;
    struct agx_buf manifest_text, config_text;
    struct agx_manifest manifest;
    struct agx_image_config config;
    struct agx_ingest *ingest;
    struct pull_layer *layers;
    size_t n_layers;
    struct pull_errand *errand; /* the image is being recorded; or, from an engine, imported */

    /* From an engine. */
    struct agx_fetch *fetch;
    struct agx_fetch_call *fetch_call;
    struct agx_import *import;
};

struct agx_puller {
    struct agx_loop *loop;
    struct agx_images *images;
    struct agx_credentials_env env; /* owned */
    bool has_env;
    char **insecure;                  /* ends with NULL */
    struct agx_fetch_endpoint engine; /* owned strings */
    bool has_engine;
    char *no_engine;
    size_t layers_at_once;
    unsigned tries;
    uint64_t retry_ms, connect_ms, quiet_ms;
    struct agx_singleflight_list pulls;
};

/* Iterates over all pulls in progress: NULL, or the first after `p`. */
static inline struct pull *pull_next(const struct agx_puller *puller, const struct pull *p)
{
    struct agx_list_node *n =
        p ? agx_list_next(&puller->pulls.all, &p->flight.node) : agx_list_first(&puller->pulls.all);

    return n ? container_of(n, struct pull, flight.node) : NULL;
}

/* Reports to all requests; takes `error`, borrows `image`. The pull is gone afterwards. */
void pull_finish(struct pull *p, struct agx_image *image, struct agx_error *error);

/* Something has changed: reports progress now or, if that was done a moment ago, soon. The pull may
 * be gone afterwards. */
void pull_news(struct pull *p);

/* The same in a later turn: the pull still exists on return. */
void pull_news_soon(struct pull *p);

/* `step` runs in a later turn. */
void pull_later(struct pull *p, uv_timer_cb step);

/* From a registry: the first step, and the last, when all layers exist. */
void pull_start_registry(struct pull *p);
void pull_record(struct pull *p);

/* Starts as many layers as allowed. The pull may be gone afterwards. */
void pull_start_layers(struct pull *p);
/* Cancels those in progress: other pulls may need them. */
void pull_drop_layers(struct pull *p);

/* From an engine. */
void pull_start_engine(struct pull *p);
void pull_drop_engine(struct pull *p);

#endif
