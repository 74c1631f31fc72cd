/*
 * fncall_args.c: matches arguments with a function's parameters, and reads inside values.
 *
 * All bytes here were parsed once when their frame was read, so they are well-formed and not too
 * deep. If reading them again fails, the function passed something else.
 */
#include "worker/fncall_internal.h"

#include "base/utf8.h"
#include "codec/mp_ext.h"

#include "base/banned.h"

static const struct agx_mp_limits no_limits = {
    .size = SIZE_MAX, .length = SIZE_MAX, .count = SIZE_MAX, .depth = AGX_MP_DEPTH_CEILING
};

static struct agx_fn_bytes to_bytes(struct agx_str s)
{
    return (struct agx_fn_bytes){ s.ptr, s.len };
}

static struct agx_str from_bytes(struct agx_fn_bytes b)
{
    return (struct agx_str){ b.ptr, b.len };
}

static void set_value(struct agx_fn_value *v, const struct agx_mp_token *t)
{
    static const enum agx_fn_type types[] = {
        [AGX_MP_NIL] = AGX_FN_NIL, [AGX_MP_BOOL] = AGX_FN_BOOL,   [AGX_MP_UINT] = AGX_FN_INT,
        [AGX_MP_INT] = AGX_FN_INT, [AGX_MP_FLOAT] = AGX_FN_FLOAT, [AGX_MP_STR] = AGX_FN_STR,
        [AGX_MP_BIN] = AGX_FN_BIN, [AGX_MP_ARRAY] = AGX_FN_ARRAY, [AGX_MP_MAP] = AGX_FN_MAP,
        [AGX_MP_EXT] = AGX_FN_EXT,
    };

    v->type = types[t->type];
    v->ext_type = t->type == AGX_MP_EXT ? t->ext_type : 0;
    if (t->type == AGX_MP_BOOL)
        v->as.boolean = t->boolean;
    else if (t->type == AGX_MP_FLOAT)
        v->as.f = t->f;
    else if (t->type == AGX_MP_ARRAY || t->type == AGX_MP_MAP)
        v->as.count = t->count;
    else if (t->type == AGX_MP_STR || t->type == AGX_MP_BIN || t->type == AGX_MP_EXT)
        v->as.bytes = to_bytes(t->bytes);
    else
        v->as.u = t->u; /* both signs: the bits are the same */
    if (t->type == AGX_MP_UINT && t->u > INT64_MAX)
        v->type = AGX_FN_UINT;
    /* The header promises that text is UTF-8. */
    if (t->type == AGX_MP_STR && !agx_utf8_valid(t->bytes))
        v->type = AGX_FN_BIN;
}

/* Cuts the first value off *in. 1, or negative. */
static int take_value(struct agx_str *in, struct agx_fn_value *ret)
{
    struct agx_mp_reader r, whole;
    struct agx_mp_token t;
    struct agx_str raw;

    if (agx_mp_reader_init(&r, *in, &no_limits, NULL) < 0)
        return AGX_FN_FAILED;
    whole = r;
    if (agx_mp_next(&r, &t, NULL) < 0 || agx_mp_take_raw(&whole, &raw, NULL) < 0)
        return AGX_FN_FAILED;
    *ret = (struct agx_fn_value){ .raw = to_bytes(raw) };
    set_value(ret, &t);
    *in = agx_str_skip(*in, raw.len);
    return 1;
}

int agx_fncall_read_value(struct agx_str raw, struct agx_fn_value *ret)
{
    return take_value(&raw, ret);
}

/* The inside of an array or map. */
static int inside(struct agx_str raw, struct agx_str *ret)
{
    struct agx_mp_reader r;
    struct agx_mp_token t;

    if (agx_mp_reader_init(&r, raw, &no_limits, NULL) < 0 || agx_mp_next(&r, &t, NULL) < 0)
        return AGX_FN_FAILED;
    *ret = agx_str_bytes(r.at, (size_t)(r.end - r.at));
    return 0;
}

static int bind_positional(struct agx_fncall *c, unsigned *ret_n)
{
    struct agx_fn_value v;
    struct agx_str in;
    unsigned n = 0;

    if (inside(c->args, &in) < 0)
        return AGX_FN_FAILED;
    while (in.len > 0 && take_value(&in, &v) > 0) {
        if (n < c->fn->n_params)
            c->bound[n] = from_bytes(v.raw);
        n++;
    }
    *ret_n = n;
    return 0;
}

static int bind_keyword(struct agx_fncall *c, struct agx_str name, struct agx_str raw)
{
    const struct agx_fn *fn = c->fn;

    for (unsigned i = 0; i < fn->n_params; i++) {
        if (!agx_str_eq(fn->params[i], name))
            continue;
        if (c->bound[i].ptr)
            agx_fncall_set_error(c, "TypeError", "%s() got multiple values for argument '%.*s'",
                                 fn->def->name, AGX_STR_ARG(name));
        c->bound[i] = raw;
        return 0;
    }
    agx_fncall_set_error(c, "TypeError", "%s() got an unexpected keyword argument '%.*s'",
                         fn->def->name, (int)AGX_MIN(name.len, (size_t)AGX_FN_NAME_MAX), name.ptr);
    return AGX_FN_FAILED;
}

static int bind_keywords(struct agx_fncall *c)
{
    struct agx_fn_value key, v;
    struct agx_str in;

    if (inside(c->kwargs, &in) < 0)
        return AGX_FN_FAILED;
    while (in.len > 0 && take_value(&in, &key) > 0 && take_value(&in, &v) > 0) {
        if (key.type != AGX_FN_STR) {
            agx_fncall_set_error(c, "TypeError", "%s() keywords must be strings", c->fn->def->name);
            return AGX_FN_FAILED;
        }
        if (bind_keyword(c, from_bytes(key.as.bytes), from_bytes(v.raw)) < 0)
            return AGX_FN_FAILED;
    }
    return c->error_type ? AGX_FN_FAILED : 0;
}

/* Matches arguments with the declared parameters; messages as in Python. */
int agx_fncall_bind(struct agx_fncall *c)
{
    const struct agx_fn *fn = c->fn;
    unsigned n = 0;

    if (fn->any_args)
        return 0;
    if (bind_positional(c, &n) < 0)
        return AGX_FN_FAILED;
    if (n > fn->n_params) {
        agx_fncall_set_error(c, "TypeError", "%s() takes %u positional arguments but %u were given",
                             fn->def->name, fn->n_params, n);
        return AGX_FN_FAILED;
    }
    if (bind_keywords(c) < 0)
        return AGX_FN_FAILED;
    for (unsigned i = 0; i < fn->n_params; i++) {
        if (c->bound[i].ptr || fn->optional[i])
            continue;
        agx_fncall_set_error(c, "TypeError", "%s() missing required argument '%.*s'", fn->def->name,
                             AGX_STR_ARG(fn->params[i]));
        return AGX_FN_FAILED;
    }
    return 0;
}

/* Positional argument `i` of a function without parameters. */
static int positional(struct agx_fncall *c, unsigned i, struct agx_fn_value *ret)
{
    struct agx_fn_value v;
    struct agx_str in;

    if (inside(c->args, &in) < 0)
        return AGX_FN_FAILED;
    for (unsigned k = 0; in.len > 0; k++) {
        if (take_value(&in, &v) < 0)
            return AGX_FN_FAILED;
        if (k == i) {
            *ret = v;
            return 1;
        }
    }
    return 0;
}

int agx_fncall_op_arg(struct agx_fn_call *pub, unsigned i, struct agx_fn_value *ret)
{
    struct agx_fncall *c = agx_fncall_of(pub);

    if (c->fn->any_args)
        return positional(c, i, ret);
    if (i >= c->fn->n_params || !c->bound[i].ptr)
        return 0;
    return agx_fncall_read_value(c->bound[i], ret);
}

static const char *type_name(const struct agx_fn_value *v)
{
    static const char *const names[] = {
        [AGX_FN_NIL] = "None",      [AGX_FN_BOOL] = "bool",   [AGX_FN_INT] = "int",
        [AGX_FN_UINT] = "int",      [AGX_FN_FLOAT] = "float", [AGX_FN_STR] = "str",
        [AGX_FN_BIN] = "bytes",     [AGX_FN_ARRAY] = "list",  [AGX_FN_MAP] = "dict",
        [AGX_FN_EXT] = "extension",
    };

    return (unsigned)v->type < AGX_ARRAY_LEN(names) ? names[v->type] : "no value";
}

/* "'name'" of a parameter, "2" of a positional argument. */
static const char *arg_name(const struct agx_fncall *c, unsigned i, char *text, size_t size)
{
    if (c->fn->any_args)
        (void)snprintf(text, size, "%u", i + 1);
    else
        (void)snprintf(text, size, "'%.*s'", AGX_STR_ARG(c->fn->params[i]));
    return text;
}

int agx_fncall_op_arg_as(struct agx_fn_call *pub, unsigned i, enum agx_fn_type want,
                         struct agx_fn_value *ret)
{
    struct agx_fncall *c = agx_fncall_of(pub);
    struct agx_fn_value wanted = { .type = want };
    int r = agx_fncall_op_arg(pub, i, ret);
    char name[AGX_FN_NAME_MAX];

    if (r <= 0 || ret->type == want)
        return r;
    if (want == AGX_FN_FLOAT && (ret->type == AGX_FN_INT || ret->type == AGX_FN_UINT)) {
        ret->as.f = ret->type == AGX_FN_INT ? (double)ret->as.i : (double)ret->as.u;
        ret->type = AGX_FN_FLOAT;
        return 1;
    }
    if (want == AGX_FN_INT && ret->type == AGX_FN_UINT)
        agx_fncall_set_error(c, "OverflowError", "%s() argument %s is above 64 bits with sign",
                             c->fn->def->name, arg_name(c, i, name, sizeof(name)));
    else
        agx_fncall_set_error(c, "TypeError", "%s() argument %s must be %s, not %s",
                             c->fn->def->name, arg_name(c, i, name, sizeof(name)),
                             type_name(&wanted), type_name(ret));
    return AGX_FN_FAILED;
}

void agx_fncall_op_args(struct agx_fn_call *pub, struct agx_fn_value *ret_args,
                        struct agx_fn_value *ret_kwargs)
{
    struct agx_fncall *c = agx_fncall_of(pub);

    (void)agx_fncall_read_value(c->args, ret_args);
    (void)agx_fncall_read_value(c->kwargs, ret_kwargs);
}

int agx_fncall_op_open(struct agx_fn_call *pub, const struct agx_fn_value *v,
                       struct agx_fn_reader *ret)
{
    struct agx_str raw = from_bytes(v->raw), in;

    if (v->type == AGX_FN_EXT && v->ext_type == AGX_MP_EXT_MODEL) {
        struct agx_mp_reader outer, model;

        /* The frame's check skipped extension payloads: check this one here. */
        if (agx_mp_reader_init(&outer, raw, &no_limits, NULL) == 0 &&
            agx_mp_open_model(&outer, from_bytes(v->as.bytes), &model, NULL) == 0 &&
            inside(agx_str_bytes(model.at, (size_t)(model.end - model.at)), &in) == 0) {
            *ret = (struct agx_fn_reader){ in.ptr, in.ptr + in.len };
            return 0;
        }
    } else if ((v->type == AGX_FN_ARRAY || v->type == AGX_FN_MAP) && inside(raw, &in) == 0) {
        *ret = (struct agx_fn_reader){ in.ptr, in.ptr + in.len };
        return 0;
    }
    agx_fncall_set_error(agx_fncall_of(pub), "TypeError", "a list or dict is needed, not %s",
                         type_name(v));
    return AGX_FN_FAILED;
}

int agx_fncall_op_read(struct agx_fn_call *pub, struct agx_fn_reader *r, struct agx_fn_value *ret)
{
    struct agx_str in = { r->at, (size_t)(r->end - r->at) };
    int k;

    (void)pub;
    if (in.len == 0)
        return 0;
    k = take_value(&in, ret);
    if (k > 0)
        r->at = in.ptr;
    return k;
}

int agx_fncall_op_ndarray(struct agx_fn_call *pub, const struct agx_fn_value *v,
                          struct agx_fn_ndarray *ret)
{
    struct agx_fncall *c = agx_fncall_of(pub);
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_mp_ndarray a;

    if (v->type != AGX_FN_EXT || v->ext_type != AGX_MP_EXT_NDARRAY) {
        agx_fncall_set_error(c, "TypeError", "an array is needed, not %s", type_name(v));
        return AGX_FN_FAILED;
    }
    if (agx_mp_ndarray_parse(from_bytes(v->as.bytes), &a, &err) < 0) {
        agx_fncall_set_error(c, "ValueError", "%s", err->message);
        return AGX_FN_FAILED;
    }
    ret->dtype = to_bytes(a.dtype);
    ret->ndim = a.ndim;
    memcpy(ret->shape, a.shape, a.ndim * sizeof(a.shape[0]));
    ret->data = to_bytes(a.data);
    return 0;
}

_Static_assert(AGX_FN_NDIM_MAX == AGX_MP_NDIM_MAX, "one shape holds the other");
