/* initproto.c: the fields of each message. */
#include "codec/initproto.h"

#include "codec/initproto_fields.h"

#include "base/banned.h"

enum { FIELDS_MAX = 15, KINDS = AGX_INIT_OUTPUT + 1 };

#define F(type, name)                                                                              \
    {                                                                                              \
        AGX_FIELD_##type, offsetof(struct agx_init_msg, name)                                      \
    }

static const struct agx_init_field fields[KINDS][FIELDS_MAX] = {
    [AGX_INIT_HELLO] = { F(U64, nonce) },
    [AGX_INIT_START] = { F(ID, id), F(U32, flags), F(TEXT, user), F(TEXT, cwd), F(U32, umask),
                         F(U32, rows), F(U32, cols), F(U64, out_head), F(U64, out_tail),
                         F(U64, err_head), F(U64, err_tail), F(WORDS, argv), F(WORDS, env),
                         F(LIMITS, rlimits) },
    [AGX_INIT_QUERY] = { F(ID, id), F(U64, offset), F(U64, err_offset) },
    [AGX_INIT_KILL] = { F(ID, id), F(U64, grace_ms) },
    [AGX_INIT_SIGNAL] = { F(ID, id), F(U32, signo) },
    [AGX_INIT_INPUT] = { F(ID, id), F(U32, flags), F(DATA, data) },
    [AGX_INIT_RESIZE] = { F(ID, id), F(U32, rows), F(U32, cols) },
    [AGX_INIT_FORGET] = { F(ID, id) },
    [AGX_INIT_STOP] = { F(U64, grace_ms) },
    [AGX_INIT_LARGE] = { F(ID, id) },
    [AGX_INIT_GO] = { F(U32, flags) },
    [AGX_INIT_WELCOME] = { F(U64, nonce), F(U32, pid), F(U32, running), F(U32, held) },
    [AGX_INIT_STARTED] = { F(ID, id) },
    [AGX_INIT_REFUSED] = { F(ID, id), F(U32, code), F(TEXT, data) },
    [AGX_INIT_UNKNOWN] = { F(ID, id) },
    [AGX_INIT_EXITED] = { F(ID, id), F(U32, exit_code), F(U32, signo), F(U64, usage.user_us),
                          F(U64, usage.system_us), F(U64, usage.max_rss_kib) },
    [AGX_INIT_GONE] = { F(ID, id) },
    [AGX_INIT_TAKEN] = { F(ID, id), F(U32, code) },
    [AGX_INIT_OUTPUT] = { F(ID, id), F(U32, flags), F(U64, offset), F(DATA, data) },
};

/* Checks what the field types do not express. */
static int initproto_check(const struct agx_init_msg *m, struct agx_error **err)
{
    struct agx_init_list env = m->env;
    const char *word;

    if (m->data.len > AGX_INIT_DATA_MAX)
        return agx_init_malformed(err, "too much data");
    if (m->kind != AGX_INIT_START)
        return 0;
    if (m->argv.count == 0)
        return agx_init_malformed(err, "the command is empty");
    if (m->cwd.len > 0 && m->cwd.ptr[0] != '/')
        return agx_init_malformed(err, "the working directory is not absolute");
    while ((word = agx_init_list_next(&env))) {
        if (word[0] == '=' || !strchr(word, '='))
            return agx_init_malformed(err, "an environment entry is not NAME=value");
    }
    return 0;
}

int agx_init_decode(struct agx_str packet, struct agx_init_msg *ret, struct agx_error **err)
{
    struct agx_str in;
    unsigned kind;
    int r = agx_init_head_take(packet, &in, &kind, err);

    *ret = (struct agx_init_msg){ 0 };
    if (r < 0)
        return r;
    if (kind >= KINDS || fields[kind][0].type == AGX_FIELD_END)
        return agx_init_malformed(err, "unknown kind");
    ret->kind = (enum agx_init_kind)kind;
    r = agx_init_fields_take(in, fields[kind], ret, err);
    return r < 0 ? r : initproto_check(ret, err);
}

const char *agx_init_list_next(struct agx_init_list *l)
{
    if (l->count == 0)
        return NULL;
    l->count--;
    return agx_init_text_next(&l->bytes).ptr;
}

bool agx_init_rlimit_next(struct agx_init_list *l, struct agx_init_rlimit *ret)
{
    if (l->count == 0)
        return false;
    l->count--;
    ret->resource = agx_init_u32_next(&l->bytes);
    ret->soft = agx_init_u64_next(&l->bytes);
    ret->hard = agx_init_u64_next(&l->bytes);
    return true;
}

size_t agx_init_encode(const struct agx_init_msg *m, uint8_t *out, size_t size)
{
    struct agx_init_out o = { .at = out, .size = size };

    agx_init_packet_put(&o, m->kind, fields[m->kind], m);
    return o.len;
}

size_t agx_init_word_put(uint8_t *out, size_t size, struct agx_str word)
{
    struct agx_init_out o = { .at = out, .size = size };

    agx_init_text_put(&o, word);
    return o.len;
}

void agx_init_rlimit_put(uint8_t out[AGX_INIT_RLIMIT_SIZE], const struct agx_init_rlimit *x)
{
    struct agx_init_out o = { .at = out, .size = AGX_INIT_RLIMIT_SIZE };

    agx_init_u32_put(&o, x->resource);
    agx_init_u64_put(&o, x->soft);
    agx_init_u64_put(&o, x->hard);
}
