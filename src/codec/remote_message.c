/* remote_message.c: messages about calls. */
#include "codec/remote_message.h"

#include "codec/mp_fields.h"

#include "base/banned.h"

static const struct agx_mp_limits limits = AGX_MP_LIMITS_INIT;

/* In the order in which the server sends them, which makes the search fastest. */
enum { CALL_ID, SEQ, VALUE, ERROR, N, BYTES, N_FIELDS };

int agx_remote_message_read(struct agx_str payload, struct agx_remote_message *ret,
                            struct agx_error **err)
{
    struct agx_mp_field f[N_FIELDS] = {
        [CALL_ID] = { AGX_STR("call_id"), AGX_MP_BIT(AGX_MP_STR) },
        [SEQ] = { AGX_STR("seq"), AGX_MP_BIT(AGX_MP_UINT) },
        [VALUE] = { AGX_STR("value"), AGX_MP_ANY },
        [ERROR] = { AGX_STR("error"), AGX_MP_BIT(AGX_MP_MAP) },
        [N] = { AGX_STR("n"), AGX_MP_BIT(AGX_MP_UINT) },
        [BYTES] = { AGX_STR("bytes"), AGX_MP_BIT(AGX_MP_UINT) },
    };
    int r = agx_mp_read_fields(payload, &limits, f, N_FIELDS, err);

    if (r < 0)
        return r;
    *ret = (struct agx_remote_message){ .has_totals = f[N].present && f[BYTES].present };
    if (f[CALL_ID].present)
        ret->call_id = f[CALL_ID].value.bytes;
    if (f[SEQ].present)
        ret->seq = f[SEQ].value.u;
    if (f[VALUE].present)
        ret->value = f[VALUE].raw;
    if (f[ERROR].present)
        ret->error = f[ERROR].raw;
    if (ret->has_totals) {
        ret->n = f[N].value.u;
        ret->bytes = f[BYTES].value.u;
    }
    return 0;
}

static int open_list(struct agx_str raw, struct agx_mp_reader *ret, uint32_t *ret_count,
                     struct agx_error **err)
{
    struct agx_mp_token array = { 0 };
    int r = agx_mp_reader_init(ret, raw, &limits, err);

    if (r == 0)
        r = agx_mp_next(ret, &array, err);
    *ret_count = array.count;
    return r;
}

int agx_resume_done_read(struct agx_str payload, struct agx_resume_done *ret,
                         struct agx_error **err)
{
    struct agx_mp_field f[] = { { AGX_STR("known"), AGX_MP_BIT(AGX_MP_ARRAY) },
                                { AGX_STR("unknown"), AGX_MP_BIT(AGX_MP_ARRAY) } };
    int r = agx_mp_read_fields(payload, &limits, f, 2, err);

    if (r == 0 && !(f[0].present && f[1].present))
        r = agx_error_set(err, AGX_INVALID_ARGUMENT, "resume:done lacks 'known' or 'unknown'");
    if (r == 0)
        r = open_list(f[0].raw, &ret->known, &ret->n_known, err);
    return r == 0 ? open_list(f[1].raw, &ret->unknown, &ret->n_unknown, err) : r;
}

static int remote_message_next(struct agx_mp_reader *r, enum agx_mp_type want,
                               struct agx_mp_token *ret, struct agx_error **err)
{
    int k = agx_mp_next(r, ret, err);

    if (k == 0 && ret->type != want)
        k = agx_error_set(err, AGX_INVALID_ARGUMENT, "resume:done: got %s, expected %s",
                          agx_mp_type_name(ret->type), agx_mp_type_name(want));
    return k;
}

int agx_resume_done_known(struct agx_resume_done *d, struct agx_str *ret_id, uint64_t *ret_seq,
                          struct agx_error **err)
{
    struct agx_mp_token pair, id = { 0 }, seq = { 0 };
    int r;

    if (d->n_known == 0)
        return 0;
    d->n_known--;
    r = remote_message_next(&d->known, AGX_MP_ARRAY, &pair, err);
    if (r == 0 && pair.count != 2)
        r = agx_error_set(err, AGX_INVALID_ARGUMENT, "resume:done: %u elements instead of two",
                          (unsigned)pair.count);
    if (r == 0)
        r = remote_message_next(&d->known, AGX_MP_STR, &id, err);
    if (r == 0)
        r = remote_message_next(&d->known, AGX_MP_UINT, &seq, err);
    if (r < 0)
        return r;
    *ret_id = id.bytes;
    *ret_seq = seq.u;
    return 1;
}

int agx_resume_done_unknown(struct agx_resume_done *d, struct agx_str *ret_id,
                            struct agx_error **err)
{
    struct agx_mp_token id = { 0 };
    int r;

    if (d->n_unknown == 0)
        return 0;
    d->n_unknown--;
    r = remote_message_next(&d->unknown, AGX_MP_STR, &id, err);
    if (r < 0)
        return r;
    *ret_id = id.bytes;
    return 1;
}

/* ---- from the client ---- */

static void write_head(struct agx_mp_writer *w, size_t fields, struct agx_str id)
{
    agx_mp_write_map(w, fields);
    agx_mp_write_str(w, AGX_STR("call_id"));
    agx_mp_write_str(w, id);
}

void agx_remote_write_cancel(struct agx_mp_writer *w, struct agx_str id)
{
    write_head(w, 1, id);
}

void agx_remote_write_credit(struct agx_mp_writer *w, struct agx_str id,
                             const struct agx_remote_flow *f)
{
    write_head(w, 3, id);
    agx_mp_write_str(w, AGX_STR("n"));
    agx_mp_write_uint(w, f->granted.n);
    agx_mp_write_str(w, AGX_STR("bytes"));
    agx_mp_write_uint(w, f->granted.bytes);
}

void agx_remote_write_input(struct agx_mp_writer *w, struct agx_str id, uint64_t seq, bool end)
{
    write_head(w, end ? 2 : 3, id);
    agx_mp_write_str(w, AGX_STR("seq"));
    agx_mp_write_uint(w, seq);
    if (!end)
        agx_mp_write_str(w, AGX_STR("item"));
}

void agx_remote_write_list(struct agx_mp_writer *w, size_t n)
{
    agx_mp_write_map(w, 1);
    agx_mp_write_str(w, AGX_STR("calls"));
    agx_mp_write_array(w, n);
}

void agx_remote_write_acked(struct agx_mp_writer *w, struct agx_str id,
                            const struct agx_remote_flow *f)
{
    agx_mp_write_str(w, id);
    agx_mp_write_uint(w, f->seq);
}

void agx_remote_write_resumed(struct agx_mp_writer *w, struct agx_str id,
                              const struct agx_remote_flow *f)
{
    agx_mp_write_array(w, 4);
    agx_remote_write_acked(w, id, f);
    agx_mp_write_uint(w, f->granted.n);
    agx_mp_write_uint(w, f->granted.bytes);
}
