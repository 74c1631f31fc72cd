/* image.c: agentix.v1.ImageService: its table of methods, reads and removals. Pull and
 * import have their own files. */
#include "daemon/service/image.h"

#include "base/mem.h"
#include "wire/image_request.h"
#include "wire/method.h"

#include <stdlib.h>

#include "base/banned.h"

#define NS_PER_MS 1000000

int agx_service_put_image(struct agx_buf *out, const struct agx_image *i)
{
    const struct agx_image_view v = { .id = i->id, /* all borrowed, and only read */
                                      .names = i->names,
                                      .digest = i->digest,
                                      .added_at_ns = i->added_ms * NS_PER_MS,
                                      .size_bytes = i->size,
                                      .sandboxes = i->pins };

    return agx_reply_image(out, &v);
}

/* Newest first; images of the same time by id. */
static int image_compare(const void *a, const void *b)
{
    const struct agx_image *x = *(struct agx_image *const *)a, *y = *(struct agx_image *const *)b;

    if (x->added_ms != y->added_ms)
        return x->added_ms > y->added_ms ? -1 : 1;
    return strcmp(x->id, y->id);
}

/* All images, sorted; NULL: no memory. Borrowed until the turn ends. */
static struct agx_image **collect(struct agx_images *images, size_t *ret_n)
{
    struct agx_image **all, *each;
    size_t n = 0, at = 0;

    while (agx_images_next(images, &at))
        n++;
    all = calloc(n + 1, sizeof(struct agx_image *)); /* +1: an empty list is not a failure */
    if (!all)
        return NULL;
    *ret_n = 0;
    at = 0;
    while (*ret_n < n && (each = agx_images_next(images, &at)))
        all[(*ret_n)++] = each;
    qsort(all, *ret_n, sizeof(struct agx_image *), image_compare);
    return all;
}

static void list_images(void *service, struct agx_grpc_call *call, struct agx_str request)
{
    struct agx_service *s = service;
    struct agx_buf *out = agx_service_scratch(s);
    _cleanup_free_ struct agx_image **all = NULL;
    size_t n = 0;
    int r = 0;

    (void)request; /* it has no field */
    all = collect(s->config.images, &n);
    if (!all)
        r = -AGX_RESOURCE_EXHAUSTED;
    for (size_t i = 0; r == 0 && i < n; i++)
        r = agx_service_put_image(out, all[i]);
    agx_service_reply(s, call, r);
}

static int put_details(struct agx_buf *out, const struct agx_image *i)
{
    const struct agx_image_config *c = &i->config;
    const struct agx_image_details d = { .user = c->user, /* all borrowed, and only read */
                                         .working_dir = c->workdir,
                                         .stop_signal = c->stop_signal,
                                         .architecture = c->architecture,
                                         .created = c->created,
                                         .env = c->env,
                                         .entrypoint = c->entrypoint,
                                         .command = c->command,
                                         .exposed_ports = c->exposed_ports,
                                         .labels = c->labels,
                                         .healthcheck = c->healthcheck,
                                         .layers = c->diff_ids };
    int r = agx_service_put_image(out, i);

    return r < 0 ? r : agx_reply_image_details(out, &d);
}

/* Refuses a call with the store's error, which may have a reason. */
static void image_fail(struct agx_grpc_call *call, const char *name, struct agx_error **take_error)
{
    struct agx_refusal why = { .id = name };

    if ((*take_error)->code == AGX_NOT_FOUND)
        why.reason = AGX_REASON_IMAGE_NOT_FOUND;
    else if ((*take_error)->code == AGX_FAILED_PRECONDITION)
        why.reason = AGX_REASON_IMAGE_IN_USE;
    agx_service_fail(call, take_error, &why);
}

static void inspect_image(void *service, struct agx_grpc_call *call, struct agx_str request)
{
    struct agx_service *s = service;
    _cleanup_free_ char *name = NULL;
    struct agx_image *image = NULL;
    struct agx_error *err = NULL;

    if (agx_image_ref_decode(request, &name, &err) < 0 ||
        agx_images_find(s->config.images, agx_str_from(name), &image, &err) < 0) {
        image_fail(call, name, &err);
        return;
    }
    agx_service_reply(s, call, put_details(agx_service_scratch(s), image));
    agx_image_unref(image);
}

/* ---- removal ---- */

struct removal {
    struct agx_service *service;
    struct agx_grpc_call *call; /* NULL: it has ended */
    char *name;                 /* NULL: all images without a name */
};

static void on_removed(void *user, const struct agx_images_removed *removed,
                       struct agx_error *error)
{
    struct removal *m = user;
    struct agx_service *s = m->service;
    const struct agx_images_removed_view v = { removed->names, removed->ids, removed->bytes };

    if (!error && removed->ids.len > 0)
        AGX_LOG(AGX_LOG_INFO, "image.removed", AGX_F_STR("image", m->name ? m->name : "prune"),
                AGX_F_UINT("images", removed->ids.len), AGX_F_UINT("bytes", removed->bytes));
    if (!m->call)
        agx_error_free(error);
    else if (error)
        image_fail(m->call, m->name, &error);
    else
        agx_service_reply(s, m->call, agx_reply_images_removed(agx_service_scratch(s), &v));
    free(m->name);
    free(m);
}

/* A removal that began goes on; only the answer is dropped. */
static void on_removal_ended(void *user, enum agx_code code)
{
    struct removal *m = user;

    (void)code;
    m->call = NULL;
}

static const struct agx_grpc_call_ops removal_ops = { .ended = on_removal_ended };

static struct removal *removal_new(struct agx_service *s, struct agx_grpc_call *call,
                                   char *take_name)
{
    struct removal *m = agx_new(struct removal);

    *m = (struct removal){ s, call, take_name };
    agx_grpc_call_watch(call, &removal_ops, m);
    return m;
}

static void remove_image(void *service, struct agx_grpc_call *call, struct agx_str request)
{
    struct agx_service *s = service;
    struct agx_error *err = NULL;
    struct removal *m;
    char *name = NULL;

    if (agx_image_ref_decode(request, &name, &err) < 0) {
        image_fail(call, NULL, &err);
        return;
    }
    m = removal_new(s, call, name);
    agx_images_remove(s->config.images, agx_str_from(name), on_removed, m);
}

static void prune_images(void *service, struct agx_grpc_call *call, struct agx_str request)
{
    struct agx_service *s = service;

    (void)request; /* it has no field */
    agx_images_prune(s->config.images, on_removed, removal_new(s, call, NULL));
}

const struct agx_grpc_method agx_service_image_methods[] = {
    { AGX_METHOD_PULL_IMAGE, AGX_GRPC_SERVER_STREAM, true, agx_service_pull_image },
    { AGX_METHOD_IMPORT_IMAGE, AGX_GRPC_CLIENT_STREAM, true, agx_service_import_image },
    { AGX_METHOD_LIST_IMAGES, AGX_GRPC_UNARY, false, list_images },
    { AGX_METHOD_INSPECT_IMAGE, AGX_GRPC_UNARY, false, inspect_image },
    { AGX_METHOD_REMOVE_IMAGE, AGX_GRPC_UNARY, false, remove_image },
    { AGX_METHOD_PRUNE_IMAGES, AGX_GRPC_UNARY, false, prune_images },
};
const size_t agx_service_image_methods_len = AGX_ARRAY_LEN(agx_service_image_methods);
