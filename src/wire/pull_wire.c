/* pull_wire.c: the progress of an image pull. */
#include "wire/pull_wire_internal.h"

#include "wire/pack_internal.h"

#include "agentix_v1_control.pb-c.h"

#include "base/banned.h"

void agx_pull_pack(Agentix__V1__PullProgress *m, const char *sandbox_id,
                   const struct agx_pull *pull)
{
    agentix__v1__pull_progress__init(m);
    m->sandbox_id = agx_pack_text(sandbox_id);
    m->image = agx_pack_text(pull->image);
    m->layers_done = pull->layers_done;
    m->layers_total = pull->layers_total;
    m->bytes_done = pull->bytes_done;
    m->bytes_total = pull->bytes_total;
}

int agx_pull_unpack(struct agx_unpack *u, const Agentix__V1__PullProgress *m,
                    struct agx_pull_view *v)
{
    int r = agx_unpack_id(u, m->sandbox_id, &v->sandbox_id);

    if (r == 0)
        r = agx_unpack_id(u, m->image, &v->image);
    v->pull = (struct agx_pull){ .image = v->image,
                                 .layers_done = m->layers_done,
                                 .layers_total = m->layers_total,
                                 .bytes_done = m->bytes_done,
                                 .bytes_total = m->bytes_total };
    if (r < 0)
        agx_pull_view_done(v);
    return r;
}

void agx_pull_view_done(struct agx_pull_view *v)
{
    if (!v)
        return;
    free(v->sandbox_id);
    free(v->image);
    *v = (struct agx_pull_view){ 0 };
}
