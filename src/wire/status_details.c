/* status_details.c: google.rpc.Status with a google.rpc.ErrorInfo in it. */
#include "wire/status_details.h"

#include "wire/pack_internal.h"
#include "wire/unpack_internal.h"

#include "google_rpc_error_details.pb-c.h"
#include "google_rpc_status.pb-c.h"

#include <inttypes.h>

#include "base/banned.h"

/* The generated names, shortened. */
typedef Google__Rpc__ErrorInfo info_pb;
typedef Google__Rpc__ErrorInfo__MetadataEntry entry_pb;
typedef Google__Rpc__Status status_pb;

static const char type_url[] = "type.googleapis.com/google.rpc.ErrorInfo";

/* The largest ErrorInfo: two ids, a reason, a number. */
enum { INFO_MAX = 1 << 20 };

static int encode_info(struct agx_buf *out, const struct agx_status *s)
{
    info_pb m = GOOGLE__RPC__ERROR_INFO__INIT;
    entry_pb id = GOOGLE__RPC__ERROR_INFO__METADATA_ENTRY__INIT;
    entry_pb sequence = GOOGLE__RPC__ERROR_INFO__METADATA_ENTRY__INIT;
    entry_pb *entries[] = { &sequence, &id }; /* by key */
    char number[sizeof("18446744073709551615")];
    bool both = s->reason == AGX_REASON_SEQUENCE_EXPIRED;

    (void)snprintf(number, sizeof(number), "%" PRIu64, s->from_sequence);
    sequence.key = agx_pack_text("from_sequence");
    sequence.value = number;
    id.key = agx_pack_text(agx_reason_id_key(s->reason));
    id.value = agx_pack_text(s->id);
    m.reason = agx_pack_text(agx_reason_name(s->reason));
    m.domain = agx_pack_text(AGX_REASON_DOMAIN);
    m.n_metadata = both ? 2 : 1;
    m.metadata = both ? entries : &entries[1];
    return agx_pack_plain(&m.base, out);
}

int agx_status_encode(struct agx_buf *out, const struct agx_status *s)
{
    _cleanup_buf_ struct agx_buf info = AGX_BUF_INIT(INFO_MAX);
    _cleanup_free_ char *message = agx_str_dup(s->message);
    Google__Protobuf__Any any = GOOGLE__PROTOBUF__ANY__INIT;
    Google__Protobuf__Any *details[] = { &any };
    status_pb m = GOOGLE__RPC__STATUS__INIT;

    if (!message || encode_info(&info, s) < 0)
        return -AGX_RESOURCE_EXHAUSTED;
    any.type_url = (char *)type_url;
    any.value = (ProtobufCBinaryData){ info.len, info.data };
    m.code = (int32_t)s->code;
    m.message = message;
    m.n_details = 1;
    m.details = details;
    return agx_pack_plain(&m.base, out);
}

/* Only the name after the last slash counts; the prefix may differ. */
static bool is_info(const char *url)
{
    const char *slash = strrchr(url, '/');

    return slash && strcmp(slash, strrchr(type_url, '/')) == 0;
}

static int view_info(struct agx_unpack *u, const ProtobufCBinaryData *value,
                     struct agx_status_view *v)
{
    info_pb *m;
    int r = agx_unpack_message(u, &google__rpc__error_info__descriptor,
                               agx_str_bytes(value->data, value->len), &m);

    if (r < 0 || (r = agx_unpack_id(u, m->reason, &v->reason)) < 0 ||
        (r = agx_unpack_id(u, m->domain, &v->domain)) < 0)
        return r;
    return agx_unpack_pairs(u, "metadata", m->n_metadata, m->metadata, &v->metadata);
}

static int view_status(struct agx_unpack *u, struct agx_str bytes, struct agx_status_view *v)
{
    status_pb *m;
    int r = agx_unpack_message(u, &google__rpc__status__descriptor, bytes, &m);

    if (r < 0 || (r = agx_unpack_id(u, m->message, &v->message)) < 0)
        return r;
    v->code = m->code;
    for (size_t i = 0; i < m->n_details; i++)
        if (is_info(m->details[i]->type_url))
            return view_info(u, &m->details[i]->value, v);
    return 0;
}

int agx_status_view_decode(struct agx_status_view *v, struct agx_str bytes, struct agx_error **err)
{
    struct agx_unpack u;
    int r;

    agx_unpack_init(&u, AGX_INTERNAL, err);
    *v = (struct agx_status_view){ 0 };
    r = view_status(&u, bytes, v);
    agx_unpack_done(&u);
    if (r < 0)
        agx_status_view_done(v);
    return r;
}

void agx_status_view_done(struct agx_status_view *v)
{
    if (!v)
        return;
    free(v->message);
    free(v->reason);
    free(v->domain);
    agx_pairs_done(&v->metadata);
    *v = (struct agx_status_view){ 0 };
}
