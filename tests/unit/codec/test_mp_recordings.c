/*
 * Recordings of Python's msgpack decode to the original values, and encode to the same bytes again.
 * tests/recordings/make_msgpack.py makes the recordings and describes their notation.
 */
#include "codec/frame.h"
#include "codec/mp_ext.h"
#include "codec/mp_fields.h"
#include "tests/support/paths.h"
#include "tests/support/test.h"

#include <inttypes.h>
#include <stdio.h>

enum { LINE_SIZE = 1 << 16 };

static const struct agx_mp_limits limits = {
    .size = LINE_SIZE, .length = LINE_SIZE, .count = 1000, .depth = 16, .utf8 = true
};

/* What a value is, and its bytes as we write them. */
struct copy {
    struct agx_buf text;
    struct agx_mp_writer w;
};

static void copy_value(struct agx_mp_reader *r, struct copy *c);

static void say(struct copy *c, const char *what, struct agx_str hex)
{
    ASSERT_OK(agx_buf_append(&c->text, agx_str_from(what)));
    for (size_t i = 0; i < hex.len; i++)
        ASSERT_OK(agx_buf_printf(&c->text, "%02x", (unsigned char)hex.ptr[i]));
}

static void copy_container(struct agx_mp_reader *r, struct copy *c, const struct agx_mp_token *t)
{
    bool map = t->type == AGX_MP_MAP;

    ASSERT_OK(agx_mp_enter(r, NULL));
    if (map)
        agx_mp_write_map(&c->w, t->count);
    else
        agx_mp_write_array(&c->w, t->count);
    say(c, map ? "{" : "[", AGX_STR(""));
    for (uint32_t i = 0; i < t->count; i++) {
        say(c, i > 0 ? "," : "", AGX_STR(""));
        copy_value(r, c);
        if (map) {
            say(c, ":", AGX_STR(""));
            copy_value(r, c);
        }
    }
    say(c, map ? "}" : "]", AGX_STR(""));
    agx_mp_leave(r);
}

static void copy_ndarray(struct copy *c, struct agx_str payload)
{
    struct agx_mp_ndarray a = { 0 };

    ASSERT_OK(agx_mp_ndarray_parse(payload, &a, NULL));
    ASSERT_OK(agx_mp_write_ndarray(&c->w, &a, NULL));
    ASSERT_OK(agx_buf_printf(&c->text, "ndarray:%.*s:", AGX_STR_ARG(a.dtype)));
    for (unsigned i = 0; i < a.ndim; i++)
        ASSERT_OK(agx_buf_printf(&c->text, "%s%" PRIu64, i > 0 ? "x" : "", a.shape[i]));
    say(c, ":", a.data);
}

static void copy_model(const struct agx_mp_reader *r, struct copy *c, struct agx_str payload)
{
    _cleanup_buf_ struct agx_buf map = AGX_BUF_INIT(LINE_SIZE);
    struct agx_mp_writer outer = c->w;
    struct agx_mp_reader inner = { 0 };

    ASSERT_OK(agx_mp_open_model(r, payload, &inner, NULL));
    say(c, "model:", AGX_STR(""));
    agx_mp_writer_init(&c->w, &map);
    copy_value(&inner, c);
    ASSERT_OK(agx_mp_writer_end(&c->w, NULL));
    c->w = outer;
    agx_mp_write_model(&c->w, agx_buf_peek(&map));
}

static void copy_ext(const struct agx_mp_reader *r, struct copy *c, const struct agx_mp_token *t)
{
    if (t->ext_type == AGX_MP_EXT_NDARRAY) {
        copy_ndarray(c, t->bytes);
    } else if (t->ext_type == AGX_MP_EXT_MODEL) {
        copy_model(r, c, t->bytes);
    } else {
        ASSERT_OK(agx_buf_printf(&c->text, "ext:%d", t->ext_type));
        say(c, ":", t->bytes);
        agx_mp_write_ext(&c->w, t->ext_type, t->bytes);
    }
}

static void copy_scalar(struct copy *c, const struct agx_mp_token *t)
{
    uint64_t bits;

    switch (t->type) {
    case AGX_MP_BOOL:
        say(c, t->boolean ? "true" : "false", AGX_STR(""));
        agx_mp_write_bool(&c->w, t->boolean);
        break;
    case AGX_MP_UINT:
        ASSERT_OK(agx_buf_printf(&c->text, "%" PRIu64, t->u));
        agx_mp_write_uint(&c->w, t->u);
        break;
    case AGX_MP_INT:
        ASSERT_OK(agx_buf_printf(&c->text, "%" PRId64, t->i));
        agx_mp_write_int(&c->w, t->i);
        break;
    case AGX_MP_FLOAT:
        memcpy(&bits, &t->f, sizeof(bits));
        ASSERT_OK(agx_buf_printf(&c->text, "f:%016" PRIx64, bits));
        agx_mp_write_float(&c->w, t->f);
        break;
    case AGX_MP_STR:
        say(c, "s:", t->bytes);
        agx_mp_write_str(&c->w, t->bytes);
        break;
    case AGX_MP_BIN:
        say(c, "b:", t->bytes);
        agx_mp_write_bin(&c->w, t->bytes);
        break;
    default:
        ASSERT_INT(AGX_MP_NIL, t->type);
        say(c, "nil", AGX_STR(""));
        agx_mp_write_nil(&c->w);
    }
}

static void copy_value(struct agx_mp_reader *r, struct copy *c)
{
    struct agx_mp_token t = { 0 };

    ASSERT_OK(agx_mp_next(r, &t, NULL));
    if (t.type == AGX_MP_ARRAY || t.type == AGX_MP_MAP)
        copy_container(r, c, &t);
    else if (t.type == AGX_MP_EXT)
        copy_ext(r, c, &t);
    else
        copy_scalar(c, &t);
}

/* `value` is what `text` says; what we write for it goes to the writer. */
static void check_value(struct agx_str value, struct agx_mp_writer *w, const char *text)
{
    struct copy c = { .text = AGX_BUF_INIT(LINE_SIZE), .w = *w };
    struct agx_mp_reader r, skipped;

    ASSERT_OK(agx_mp_reader_init(&r, value, &limits, NULL));
    skipped = r;
    copy_value(&r, &c);
    ASSERT_OK(agx_mp_expect_end(&r, NULL));
    ASSERT_OK(agx_mp_skip(&skipped, NULL));
    ASSERT_OK(agx_mp_expect_end(&skipped, NULL));
    ASSERT_STR(agx_str_from(text), agx_buf_peek(&c.text));
    *w = c.w;
    agx_buf_done(&c.text);
}

static void check_frame(struct agx_str bytes, struct agx_buf *again, const char *text)
{
    _cleanup_(agx_frame_decoder_done) struct agx_frame_decoder d = { 0 };
    struct agx_mp_field type = { AGX_STR("type"), AGX_MP_BIT(AGX_MP_STR) };
    struct agx_mp_writer w;
    struct agx_str map = { 0 };

    agx_frame_decoder_init(&d, LINE_SIZE);
    ASSERT_INT(1, agx_frame_decoder_next(&d, &bytes, &map, NULL));
    ASSERT_UINT(0, bytes.len);
    ASSERT_OK(agx_mp_read_fields(map, &limits, &type, 1, NULL));
    ASSERT_TRUE(type.present);
    agx_frame_begin(&w, again);
    check_value(map, &w, text);
    ASSERT_OK(agx_frame_end(&w, LINE_SIZE, NULL));
}

static void check_line(const char *kind, const char *hex, const char *text)
{
    _cleanup_buf_ struct agx_buf bytes = AGX_BUF_INIT(LINE_SIZE), again = AGX_BUF_INIT(LINE_SIZE);
    struct agx_mp_writer w;
    unsigned byte;

    for (; sscanf(hex, "%2x", &byte) == 1; hex += 2)
        ASSERT_OK(agx_buf_push(&bytes, (uint8_t)byte));
    if (strcmp(kind, "frame") == 0) {
        check_frame(agx_buf_peek(&bytes), &again, text);
    } else {
        agx_mp_writer_init(&w, &again);
        check_value(agx_buf_peek(&bytes), &w, text);
        ASSERT_OK(agx_mp_writer_end(&w, NULL));
    }
    ASSERT_STR(agx_buf_peek(&bytes), agx_buf_peek(&again));
}

TEST(recorded_values_and_frames_decode_to_what_they_were_and_encode_to_the_same_bytes)
{
    static char line[LINE_SIZE], kind[16], name[64], hex[LINE_SIZE], text[LINE_SIZE];
    FILE *f = fopen(test_path_recording("msgpack/values.txt"), "r");
    unsigned n = 0;

    ASSERT_NOT_NULL(f);
    while (fgets(line, sizeof(line), f)) {
        if (line[0] == '#')
            continue;
        ASSERT_INT(4, sscanf(line, "%15s %63s %65535s %65535s", kind, name, hex, text));
        printf("# %s %s\n", kind, name);
        check_line(kind, hex, text);
        n++;
    }
    fclose(f);
    ASSERT_TRUE(n > 100);
}
