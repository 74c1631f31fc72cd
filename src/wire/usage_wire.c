/* usage_wire.c: the figures of agentix.v1.SandboxUse, by the numbers of their fields. */
#include "wire/usage_wire.h"

#include "wire/pack_internal.h"
#include "wire/unpack_internal.h"

#include "agentix_v1_control.pb-c.h"

#include "base/banned.h"

/* The generated names, shortened. */
typedef Agentix__V1__GetSandboxResponse answer_pb;
typedef Agentix__V1__CompanionUse companion_pb;
typedef Agentix__V1__SandboxUse use_pb;

/* protobuf-c stores each optional figure as a value and a oneof case for its presence. */
static const ProtobufCFieldDescriptor *field_of(unsigned figure)
{
    return &agentix__v1__sandbox_use__descriptor.fields[figure];
}

_Static_assert(AGENTIX__V1__SANDBOX_USE___CPU_NS_CPU_NS == AGX_USAGE_CPU_NS + 1,
               "the first figure");
_Static_assert(AGENTIX__V1__SANDBOX_USE___DISK_BYTES_DISK_BYTES == AGX_USAGE_DISK + 1,
               "one between");
_Static_assert(AGENTIX__V1__SANDBOX_USE___TX_PACKETS_TX_PACKETS == AGX_USAGE_TX_PACKETS + 1,
               "the last");

static void pack_use(use_pb *m, const struct agx_resource_usage *use)
{
    for (unsigned i = 0; i < AGX_USAGE_COUNT; i++) {
        const ProtobufCFieldDescriptor *f = field_of(i);

        if (!agx_resource_usage_has(use, (enum agx_resource_usage_figure)i))
            continue;
        *(uint64_t *)(void *)((char *)m + f->offset) = use->figures[i];
        *(uint32_t *)(void *)((char *)m + f->quantifier_offset) = f->id;
    }
}

static void view_use(const use_pb *m, struct agx_resource_usage *use)
{
    for (unsigned i = 0; m && i < AGX_USAGE_COUNT; i++) {
        const ProtobufCFieldDescriptor *f = field_of(i);

        if (*(const uint32_t *)(const void *)((const char *)m + f->quantifier_offset) == f->id)
            agx_resource_usage_set(use, (enum agx_resource_usage_figure)i,
                                   *(const uint64_t *)(const void *)((const char *)m + f->offset));
    }
}

int agx_reply_usage(struct agx_buf *out, const struct agx_resource_usage *use)
{
    answer_pb m = AGENTIX__V1__GET_SANDBOX_RESPONSE__INIT;
    use_pb u = AGENTIX__V1__SANDBOX_USE__INIT;

    pack_use(&u, use);
    m.use = &u;
    return agx_pack_plain(&m.base, out);
}

int agx_reply_companion_usage(struct agx_buf *out, const char *name,
                              const struct agx_resource_usage *use)
{
    answer_pb m = AGENTIX__V1__GET_SANDBOX_RESPONSE__INIT;
    companion_pb c = AGENTIX__V1__COMPANION_USE__INIT, *one = &c;
    use_pb u = AGENTIX__V1__SANDBOX_USE__INIT;

    pack_use(&u, use);
    c.name = agx_pack_text(name);
    c.use = &u;
    m.n_companions = 1;
    m.companions = &one;
    return agx_pack_plain(&m.base, out);
}

int agx_reply_usage_error(struct agx_buf *out, const char *message)
{
    answer_pb m = AGENTIX__V1__GET_SANDBOX_RESPONSE__INIT;

    m.use_error = agx_pack_text(message);
    return agx_pack_plain(&m.base, out);
}

/* ---- reading ---- */

static int view_answer(struct agx_unpack *u, const answer_pb *m, struct agx_usage_view *v)
{
    int r = agx_unpack_text(u, m->use_error, &v->error);

    view_use(m->use, &v->use);
    if (r < 0 || m->n_companions == 0)
        return r;
    v->companions = calloc(m->n_companions, sizeof(*v->companions));
    if (!v->companions)
        return agx_error_no_memory(u->err);
    for (; r == 0 && v->companions_len < m->n_companions; v->companions_len += r == 0) {
        struct agx_companion_usage *c = &v->companions[v->companions_len];

        r = agx_unpack_id(u, m->companions[v->companions_len]->name, &c->name);
        view_use(m->companions[v->companions_len]->use, &c->use);
    }
    return r;
}

int agx_usage_view_decode(struct agx_usage_view *v, struct agx_str bytes, struct agx_error **err)
{
    struct agx_unpack u;
    answer_pb *m;
    int r;

    agx_unpack_init(&u, AGX_INTERNAL, err);
    *v = (struct agx_usage_view){ 0 };
    r = agx_unpack_message(&u, &agentix__v1__get_sandbox_response__descriptor, bytes, &m);
    if (r == 0)
        r = view_answer(&u, m, v);
    agx_unpack_done(&u);
    if (r < 0)
        agx_usage_view_done(v);
    return r;
}

void agx_usage_view_done(struct agx_usage_view *v)
{
    if (!v)
        return;
    for (size_t i = 0; i < v->companions_len; i++)
        free(v->companions[i].name);
    free(v->companions);
    free(v->error);
    *v = (struct agx_usage_view){ 0 };
}
