/* initlink_attach.c: a container's attached streams as the transport of an initstream. */
#include "backend/docker/initlink_attach.h"

#include "backend/docker/api/hijack.h"
#include "backend/exec/initstream.h"
#include "base/mem.h"
#include "core/text.h"

#include "base/banned.h"

struct wire {
    struct agx_docker_engine *engine;
    char *container;
    struct agx_initstream *stream;
    struct agx_docker_hijack *hijack; /* NULL: not attached */
};

static void on_open(void *user)
{
    agx_initstream_opened(((struct wire *)user)->stream);
}

/* Standard error belongs to the main process and is not requested. */
static void on_data(void *user, enum agx_dockerstream_kind stream, struct agx_str bytes)
{
    if (stream == AGX_DOCKERSTREAM_STDOUT)
        agx_initstream_data(((struct wire *)user)->stream, bytes);
}

static void on_closed(void *user, struct agx_error *error)
{
    struct wire *w = user;

    w->hijack = NULL;
    agx_initstream_closed(w->stream, error);
}

static const struct agx_docker_hijack_ops hijack_ops = { .open = on_open,
                                                         .data = on_data,
                                                         .closed = on_closed };

static int wire_connect(void *user, struct agx_initstream *s, struct agx_error **err)
{
    struct wire *w = user;
    _cleanup_free_ char *path =
        agx_docker_path("/containers/%s/attach?stream=1&stdin=1&stdout=1", w->container);
    const struct agx_docker_hijack_request q = {
        .request = { .method = "POST", .path = path, .what = "attach to a sandbox" },
        .out_max = AGX_INITLINK_QUEUE_MAX,
    };

    w->stream = s;
    return agx_docker_hijack(w->engine, &q, &hijack_ops, w, &w->hijack, err);
}

static int wire_write(void *user, struct agx_str bytes, struct agx_error **err)
{
    return agx_docker_hijack_write(((struct wire *)user)->hijack, bytes, err);
}

static void wire_close(void *user)
{
    struct wire *w = user;

    w->hijack = agx_docker_hijack_close(w->hijack);
}

static void wire_release(void *user)
{
    struct wire *w = user;

    free(w->container);
    free(w);
}

static const struct agx_initstream_wire wire_ops = { wire_connect, wire_write, wire_close,
                                                     wire_release };

int agx_initlink_attach_open(struct agx_docker_engine *e, const char *container, const char *key,
                             const struct agx_initlink_ops *ops, void *user,
                             struct agx_initlink **ret_link, struct agx_error **err)
{
    struct agx_initstream_config config = AGX_INITSTREAM_CONFIG_INIT;
    struct wire *w = agx_new(struct wire);
    int r = agx_text_set(&w->container, container, err);

    w->engine = e;
    config.wire = &wire_ops;
    config.user = w;
    config.key = key;
    if (r == 0)
        r = agx_initstream_open(agx_docker_engine_loop(e), &config, ops, user, ret_link, err);
    if (r < 0)
        wire_release(w);
    return r;
}
