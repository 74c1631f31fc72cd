/*
 * image_pull.c: PullImage: the puller's progress, and then the image.
 *
 * A slow client misses progress messages that it does not read in time, but never the image. When a
 * client leaves, its share in the pull ends.
 */
#include "daemon/service/image.h"

#include "base/mem.h"
#include "image/pull.h"
#include "wire/image_request.h"

#include "base/banned.h"

struct pull {
    struct agx_service *service;
    struct agx_grpc_call *call;
    char *name;
    struct agx_puller_want *want; /* NULL: it has ended */
    struct agx_image *image;      /* waits for the client; NULL: there is none yet */
    bool paused;                  /* until the client has read the last message */
};

static void pull_free(struct pull *p)
{
    agx_image_unref(p->image);
    free(p->name);
    free(p);
}

static void pull_fail(struct pull *p, struct agx_error **take_error, enum agx_reason reason)
{
    agx_service_fail(p->call, take_error, &(struct agx_refusal){ .reason = reason, .id = p->name });
    pull_free(p);
}

/* Sends the image and ends the call. */
static void send_image(struct pull *p)
{
    struct agx_buf *out = agx_service_scratch(p->service);
    int r = agx_service_put_image(out, p->image);

    if (r == 0)
        r = agx_grpc_call_send(p->call, agx_buf_peek(out));
    if (r < 0)
        agx_service_fail_memory(p->call);
    else
        agx_grpc_call_finish(p->call, &(struct agx_grpc_status){ .code = AGX_OK });
    pull_free(p);
}

static void on_progress(void *user, const struct agx_pull *progress)
{
    struct pull *p = user;
    struct agx_buf *out = agx_service_scratch(p->service);

    if (!p->paused && agx_reply_image_pull(out, progress) == 0)
        p->paused = agx_grpc_call_send(p->call, agx_buf_peek(out)) > 0;
}

static void on_pulled(void *user, struct agx_image *image, struct agx_error *error)
{
    struct pull *p = user;

    p->want = NULL;
    if (error) {
        AGX_LOG(AGX_LOG_WARN, "image.pull_failed", AGX_F_STR("image", p->name), AGX_F_ERR(error));
        pull_fail(p, &error, AGX_REASON_IMAGE_PULL_FAILED);
        return;
    }
    AGX_LOG(AGX_LOG_INFO, "image.pulled", AGX_F_STR("image", p->name), AGX_F_STR("id", image->id));
    p->image = agx_image_ref(image);
    if (!p->paused)
        send_image(p);
}

static void on_writable(void *user)
{
    struct pull *p = user;

    p->paused = false;
    if (p->image)
        send_image(p);
}

static void on_ended(void *user, enum agx_code code)
{
    struct pull *p = user;

    (void)code;
    agx_puller_cancel(p->want);
    pull_free(p);
}

static const struct agx_puller_ops puller_ops = { .progress = on_progress, .done = on_pulled };
static const struct agx_grpc_call_ops call_ops = { .ended = on_ended, .writable = on_writable };

void agx_service_pull_image(void *service, struct agx_grpc_call *call, struct agx_str request)
{
    struct agx_service *s = service;
    struct pull *p = agx_new(struct pull);
    struct agx_error *err = NULL;

    *p = (struct pull){ .service = s, .call = call };
    if (agx_image_ref_decode(request, &p->name, &err) < 0 ||
        agx_puller_pull(s->config.puller, p->name, &puller_ops, p, &p->want, &err) < 0) {
        pull_fail(p, &err, AGX_REASON_NONE);
        return;
    }
    agx_grpc_call_watch(call, &call_ops, p);
    agx_grpc_call_begin(call);
}
