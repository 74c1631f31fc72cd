/* image_wire.c: the answers of agentix.v1.ImageService. */
#include "wire/image_wire.h"

#include "wire/pull_wire_internal.h"
#include "wire/spec_wire_internal.h"

#include "agentix_v1_image.pb-c.h"

#include "base/banned.h"

/* The generated names, shortened. */
typedef Agentix__V1__Image image_pb;
typedef Agentix__V1__ImageConfig config_pb;
typedef Agentix__V1__InspectImageResponse inspect_pb;
typedef Agentix__V1__ListImagesResponse images_pb;
typedef Agentix__V1__PullImageResponse pull_pb;
typedef Agentix__V1__RemoveImageResponse remove_pb;

int agx_reply_image(struct agx_buf *out, const struct agx_image_view *v)
{
    image_pb m = AGENTIX__V1__IMAGE__INIT, *items[] = { &m };
    images_pb all = AGENTIX__V1__LIST_IMAGES_RESPONSE__INIT; /* all of them have it as field 1 */
    Google__Protobuf__Timestamp added_at;

    m.id = agx_pack_text(v->id);
    m.n_names = v->names.len;
    m.names = v->names.items;
    m.digest = agx_pack_text(v->digest);
    agx_pack_time(&added_at, v->added_at_ns);
    if (v->added_at_ns != 0)
        m.added_at = &added_at;
    m.size_bytes = v->size_bytes;
    m.sandboxes = v->sandboxes;
    all.n_images = 1;
    all.images = items;
    return agx_pack_plain(&all.base, out);
}

static void image_view_done(struct agx_image_view *v)
{
    free(v->id);
    agx_words_done(&v->names);
    free(v->digest);
    *v = (struct agx_image_view){ 0 };
}

static int view_image(struct agx_unpack *u, const image_pb *m, struct agx_image_view *v)
{
    int r;

    *v = (struct agx_image_view){ .size_bytes = m->size_bytes, .sandboxes = m->sandboxes };
    if ((r = agx_unpack_id(u, m->id, &v->id)) < 0 ||
        (r = agx_unpack_words(u, "names", m->n_names, m->names, &v->names)) < 0 ||
        (r = agx_unpack_text(u, m->digest, &v->digest)) < 0 ||
        (r = agx_unpack_time(u, "added_at", m->added_at, &v->added_at_ns)) < 0)
        image_view_done(v);
    return r;
}

static int view_images(struct agx_unpack *u, const images_pb *m, struct agx_image_views *v)
{
    int r = 0;

    if (m->n_images == 0)
        return 0;
    v->items = calloc(m->n_images, sizeof(*v->items));
    if (!v->items)
        return agx_error_no_memory(u->err);
    while (r == 0 && v->len < m->n_images) {
        r = view_image(u, m->images[v->len], &v->items[v->len]);
        v->len += r == 0;
    }
    return r;
}

int agx_image_views_decode(struct agx_image_views *v, struct agx_str bytes, struct agx_error **err)
{
    struct agx_unpack u;
    images_pb *m;
    int r;

    agx_unpack_init(&u, AGX_INTERNAL, err);
    *v = (struct agx_image_views){ 0 };
    r = agx_unpack_message(&u, &agentix__v1__list_images_response__descriptor, bytes, &m);
    if (r == 0)
        r = view_images(&u, m, v);
    agx_unpack_done(&u);
    if (r < 0)
        agx_image_views_done(v);
    return r;
}

void agx_image_views_done(struct agx_image_views *v)
{
    if (!v)
        return;
    for (size_t i = 0; i < v->len; i++)
        image_view_done(&v->items[i]);
    free(v->items);
    *v = (struct agx_image_views){ 0 };
}

int agx_reply_image_pull(struct agx_buf *out, const struct agx_pull *pull)
{
    pull_pb m = AGENTIX__V1__PULL_IMAGE_RESPONSE__INIT;
    Agentix__V1__PullProgress progress;

    agx_pull_pack(&progress, NULL, pull);
    m.progress = &progress;
    return agx_pack_plain(&m.base, out);
}

int agx_image_pull_decode(struct agx_pull_view *v, struct agx_str bytes, struct agx_error **err)
{
    struct agx_unpack u;
    pull_pb *m;
    int r;

    agx_unpack_init(&u, AGX_INTERNAL, err);
    *v = (struct agx_pull_view){ 0 };
    r = agx_unpack_message(&u, &agentix__v1__pull_image_response__descriptor, bytes, &m);
    if (r == 0 && m->progress) {
        r = agx_pull_unpack(&u, m->progress, v);
        if (r == 0)
            r = 1;
    }
    agx_unpack_done(&u);
    return r;
}

static void make_config(struct agx_pack *p, config_pb *m, const struct agx_image_details *d)
{
    m->user = agx_pack_text(d->user);
    m->n_env = d->env.len;
    m->env = d->env.items;
    m->n_entrypoint = d->entrypoint.len;
    m->entrypoint = d->entrypoint.items;
    m->n_command = d->command.len;
    m->command = d->command.items;
    m->working_dir = agx_pack_text(d->working_dir);
    m->n_exposed_ports = d->exposed_ports.len;
    m->exposed_ports = d->exposed_ports.items;
    m->stop_signal = agx_pack_text(d->stop_signal);
    m->healthcheck = agx_healthcheck_pack(p, &d->healthcheck);
    m->labels = agx_pack_pairs(p, &agentix__v1__image_config__labels_entry__descriptor, &d->labels,
                               &m->n_labels);
    m->architecture = agx_pack_text(d->architecture);
    m->created = agx_pack_text(d->created);
}

int agx_reply_image_details(struct agx_buf *out, const struct agx_image_details *d)
{
    inspect_pb m = AGENTIX__V1__INSPECT_IMAGE_RESPONSE__INIT;
    config_pb config = AGENTIX__V1__IMAGE_CONFIG__INIT;
    struct agx_pack p;

    agx_pack_init(&p);
    make_config(&p, &config, d);
    m.config = &config;
    m.n_layers = d->layers.len;
    m.layers = d->layers.items;
    return agx_pack(&p, &m.base, out);
}

static int view_config(struct agx_unpack *u, const config_pb *m, struct agx_image_details *d)
{
    int r;

    if ((r = agx_unpack_text(u, m->user, &d->user)) < 0 ||
        (r = agx_unpack_text(u, m->working_dir, &d->working_dir)) < 0 ||
        (r = agx_unpack_text(u, m->stop_signal, &d->stop_signal)) < 0 ||
        (r = agx_unpack_text(u, m->architecture, &d->architecture)) < 0 ||
        (r = agx_unpack_text(u, m->created, &d->created)) < 0 ||
        (r = agx_unpack_words(u, "env", m->n_env, m->env, &d->env)) < 0 ||
        (r = agx_unpack_words(u, "entrypoint", m->n_entrypoint, m->entrypoint, &d->entrypoint)) <
            0 ||
        (r = agx_unpack_words(u, "command", m->n_command, m->command, &d->command)) < 0 ||
        (r = agx_unpack_words(u, "exposed_ports", m->n_exposed_ports, m->exposed_ports,
                              &d->exposed_ports)) < 0)
        return r;
    if (m->healthcheck)
        r = agx_healthcheck_unpack(u, m->healthcheck, &d->healthcheck);
    return r < 0 ? r : agx_unpack_pairs(u, "labels", m->n_labels, m->labels, &d->labels);
}

int agx_image_details_decode(struct agx_image_details *d, struct agx_str bytes,
                             struct agx_error **err)
{
    struct agx_unpack u;
    inspect_pb *m;
    int r;

    agx_unpack_init(&u, AGX_INTERNAL, err);
    *d = (struct agx_image_details){ 0 };
    r = agx_unpack_message(&u, &agentix__v1__inspect_image_response__descriptor, bytes, &m);
    if (r == 0)
        r = agx_unpack_words(&u, "layers", m->n_layers, m->layers, &d->layers);
    if (r == 0 && m->config)
        r = view_config(&u, m->config, d);
    agx_unpack_done(&u);
    if (r < 0)
        agx_image_details_done(d);
    return r;
}

void agx_image_details_done(struct agx_image_details *d)
{
    if (!d)
        return;
    free(d->user);
    free(d->working_dir);
    free(d->stop_signal);
    free(d->architecture);
    free(d->created);
    agx_words_done(&d->env);
    agx_words_done(&d->entrypoint);
    agx_words_done(&d->command);
    agx_words_done(&d->exposed_ports);
    agx_pairs_done(&d->labels);
    agx_words_done(&d->healthcheck.test);
    agx_words_done(&d->layers);
    *d = (struct agx_image_details){ 0 };
}

int agx_reply_images_removed(struct agx_buf *out, const struct agx_images_removed_view *v)
{
    remove_pb m = AGENTIX__V1__REMOVE_IMAGE_RESPONSE__INIT; /* PruneImagesResponse is the same */
    Agentix__V1__RemovedImages removed = AGENTIX__V1__REMOVED_IMAGES__INIT;

    removed.n_names = v->names.len;
    removed.names = v->names.items;
    removed.n_ids = v->ids.len;
    removed.ids = v->ids.items;
    removed.bytes = v->bytes;
    m.removed = &removed;
    return agx_pack_plain(&m.base, out);
}

static int view_removed(struct agx_unpack *u, const Agentix__V1__RemovedImages *m,
                        struct agx_images_removed_view *v)
{
    int r = agx_unpack_words(u, "names", m->n_names, m->names, &v->names);

    v->bytes = m->bytes;
    return r < 0 ? r : agx_unpack_words(u, "ids", m->n_ids, m->ids, &v->ids);
}

int agx_images_removed_decode(struct agx_images_removed_view *v, struct agx_str bytes,
                              struct agx_error **err)
{
    struct agx_unpack u;
    remove_pb *m;
    int r;

    agx_unpack_init(&u, AGX_INTERNAL, err);
    *v = (struct agx_images_removed_view){ 0 };
    r = agx_unpack_message(&u, &agentix__v1__remove_image_response__descriptor, bytes, &m);
    if (r == 0)
        r = m->removed ? view_removed(&u, m->removed, v)
                       : agx_unpack_fault(&u, "removed", "is missing in the answer");
    agx_unpack_done(&u);
    if (r < 0)
        agx_images_removed_done(v);
    return r;
}

void agx_images_removed_done(struct agx_images_removed_view *v)
{
    if (!v)
        return;
    agx_words_done(&v->names);
    agx_words_done(&v->ids);
    *v = (struct agx_images_removed_view){ 0 };
}
