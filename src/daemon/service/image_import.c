/*
 * image_import.c: ImportImage: a client's stream into the store.
 *
 *     EMPTY --first message--> TAKES --client's end--> UNPACKS --> the answer
 *
 * The call is paused while the store takes no more, so the client's flow-control window fills and
 * the client waits. If the call ends before the answer, the import is cancelled and leaves nothing.
 */
#include "daemon/service/image.h"

#include "base/mem.h"
#include "image/import.h"
#include "wire/image_request.h"

#include "base/banned.h"

struct import {
    struct agx_service *service;
    struct agx_grpc_call *call; /* NULL: it has ended */
    struct agx_import *import;  /* NULL: no message yet */
};

/* Ends the call and cancels the import, which ends asynchronously. */
static void import_fail(struct import *im, struct agx_error **take_error)
{
    agx_service_fail(im->call, take_error, &(struct agx_refusal){ 0 });
    im->call = NULL;
    if (im->import)
        agx_import_cancel(im->import);
    else
        free(im);
}

static void reply_images(struct import *im, struct agx_image *const *images, size_t n)
{
    struct agx_buf *out = agx_service_scratch(im->service);
    int r = 0;

    for (size_t i = 0; r == 0 && i < n; i++)
        r = agx_service_put_image(out, images[i]);
    agx_service_reply(im->service, im->call, r);
}

static void on_done(void *user, struct agx_image *const *images, size_t n, struct agx_error *error)
{
    struct import *im = user;

    for (size_t i = 0; i < n; i++)
        AGX_LOG(AGX_LOG_INFO, "image.imported", AGX_F_STR("id", images[i]->id));
    if (!im->call) {
        agx_error_free(error);
    } else if (error) {
        AGX_LOG(AGX_LOG_WARN, "image.import_failed", AGX_F_ERR(error));
        agx_service_fail(im->call, &error, &(struct agx_refusal){ 0 });
    } else {
        reply_images(im, images, n);
    }
    free(im);
}

static void on_ready(void *user)
{
    struct import *im = user;

    if (im->call)
        agx_grpc_call_resume(im->call);
}

static int image_import_start(struct import *im, struct agx_str name, struct agx_error **err)
{
    const struct agx_import_params params = { .name = name, .ready = on_ready, .done = on_done };

    return agx_import_start(im->service->config.images, &params, im, &im->import, err);
}

static int image_import_take(struct import *im, struct agx_str message, struct agx_error **err)
{
    struct agx_import_request q;
    int r = agx_import_request_decode(&q, message, err);

    if (r == 0 && im->import && q.name.len > 0)
        r = agx_error_set(err, AGX_INVALID_ARGUMENT, "name must be set only in the first message");
    if (r == 0 && !im->import)
        r = image_import_start(im, q.name, err);
    return r < 0 ? r : agx_import_write(im->import, q.data, err);
}

static void on_message(void *user, struct agx_str message)
{
    struct import *im = user;
    struct agx_error *err = NULL;
    int r = image_import_take(im, message, &err);

    if (r < 0)
        import_fail(im, &err);
    else if (r > 0)
        agx_grpc_call_pause(im->call);
}

static void on_half_closed(void *user)
{
    struct import *im = user;
    struct agx_error *err = NULL;

    if (im->import) {
        agx_import_end(im->import);
        return;
    }
    (void)agx_error_set(&err, AGX_INVALID_ARGUMENT, "the archive to import is empty");
    import_fail(im, &err);
}

static void on_ended(void *user, enum agx_code code)
{
    struct import *im = user;

    (void)code;
    im->call = NULL;
    if (im->import)
        agx_import_cancel(im->import);
    else
        free(im);
}

static const struct agx_grpc_call_ops import_ops = {
    .ended = on_ended,
    .message = on_message,
    .half_closed = on_half_closed,
};

void agx_service_import_image(void *service, struct agx_grpc_call *call, struct agx_str request)
{
    struct import *im = agx_new(struct import);

    (void)request; /* messages arrive one by one */
    im->service = service;
    im->call = call;
    agx_grpc_call_watch(call, &import_ops, im);
}
