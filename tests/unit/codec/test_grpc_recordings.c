/*
 * Recordings of grpcio decode, and encode to the same bytes again. tests/recordings/make_grpc.py
 * makes the recordings and describes their form.
 */
#include "codec/grpc_frame.h"
#include "codec/grpc_meta.h"

#include "base/limits.h"
#include "tests/support/paths.h"
#include "tests/support/test.h"

#include <dirent.h>
#include <stdio.h>

/* Longer than any recording. */
enum { FILE_MAX = 1 << 20 };

/* One direction of a call. */
struct side {
    struct agx_grpc_decoder decoder;
    struct agx_buf raw, again; /* DATA as recorded; its messages encoded again */
    struct agx_buf value;      /* the last header, decoded */
    unsigned messages;
};

static void side_init(struct side *s)
{
    *s = (struct side){ .raw = AGX_BUF_INIT(FILE_MAX),
                        .again = AGX_BUF_INIT(FILE_MAX),
                        .value = AGX_BUF_INIT(FILE_MAX) };
    agx_grpc_decoder_init(&s->decoder, AGX_GRPC_MESSAGE_MAX);
}

static void side_done(struct side *s)
{
    agx_grpc_decoder_done(&s->decoder);
    agx_buf_done(&s->raw);
    agx_buf_done(&s->again);
    agx_buf_done(&s->value);
}

static void append_hex(struct agx_buf *out, struct agx_str hex)
{
    for (; hex.len >= 2; hex = agx_str_skip(hex, 2)) {
        unsigned byte;

        ASSERT_INT(1, sscanf((char[3]){ hex.ptr[0], hex.ptr[1], 0 }, "%2x", &byte));
        ASSERT_OK(agx_buf_push(out, (uint8_t)byte));
    }
    ASSERT_UINT(0, hex.len);
}

static void check_data(struct side *s, struct agx_str hex)
{
    size_t start = s->raw.len;
    struct agx_str in, message;
    int r;

    append_hex(&s->raw, hex);
    in = agx_str_skip(agx_buf_peek(&s->raw), start);
    while ((r = agx_grpc_decoder_next(&s->decoder, &in, &message, NULL)) > 0) {
        ASSERT_OK(agx_grpc_frame_encode(&s->again, message));
        s->messages++;
    }
    ASSERT_OK(r);
}

static void check_end(struct side *s, struct agx_str messages)
{
    uint64_t n;

    ASSERT_TRUE(agx_parse_u64(messages, UINT32_MAX, &n));
    ASSERT_UINT(n, s->messages);
    ASSERT_OK(agx_grpc_decoder_end(&s->decoder, NULL));
    ASSERT_STR(agx_buf_peek(&s->raw), agx_buf_peek(&s->again));
}

static void check_timeout(struct agx_str value, struct agx_buf *again)
{
    uint64_t ns;

    ASSERT_OK(agx_grpc_timeout_parse(value, &ns, NULL));
    ASSERT_OK(agx_grpc_timeout_format(again, ns));
    ASSERT_STR(value, agx_buf_peek(again));
}

static void check_bin(struct side *s, struct agx_str value, struct agx_buf *again)
{
    struct agx_str rest = value;

    ASSERT_INT(1, agx_grpc_bin_next(&rest, &s->value, NULL));
    ASSERT_INT(0, agx_grpc_bin_next(&rest, &s->value, NULL));
    ASSERT_OK(agx_grpc_bin_encode(again, agx_buf_peek(&s->value)));
    ASSERT_STR(value, agx_buf_peek(again));
}

static void check_message(struct side *s, struct agx_str value, struct agx_buf *again)
{
    ASSERT_OK(agx_grpc_message_decode(&s->value, value));
    ASSERT_OK(agx_grpc_message_encode(again, agx_buf_peek(&s->value)));
    ASSERT_STR(value, agx_buf_peek(again));
}

static void check_header(struct side *s, struct agx_str name, struct agx_str value)
{
    _cleanup_buf_ struct agx_buf again = AGX_BUF_INIT(FILE_MAX);

    agx_buf_clear(&s->value);
    ASSERT_INT(!agx_str_starts(name, AGX_STR(":")), agx_grpc_key_is_valid(name));
    if (agx_str_eq(name, AGX_STR("grpc-timeout")))
        check_timeout(value, &again);
    else if (agx_str_eq(name, AGX_STR("grpc-message")))
        check_message(s, value, &again);
    else if (agx_str_eq(name, AGX_STR("grpc-status")))
        ASSERT_STR(value, agx_str_from(agx_grpc_status_text(agx_grpc_status_parse(value))));
    else if (agx_str_eq(name, AGX_STR("content-type")))
        ASSERT_TRUE(agx_grpc_content_type_is_ok(value));
    else if (agx_str_eq(name, AGX_STR("grpc-encoding")))
        ASSERT_OK(agx_grpc_encoding_check(value, NULL));
    else if (agx_grpc_key_is_bin(name))
        check_bin(s, value, &again);
}

static void check_line(struct side *s, struct agx_str kind, struct agx_str rest)
{
    if (!rest.ptr)
        rest = AGX_STR("");
    if (agx_str_eq(kind, AGX_STR("data"))) {
        check_data(s, rest);
    } else if (agx_str_eq(kind, AGX_STR("messages"))) {
        check_end(s, rest);
    } else if (agx_str_eq(kind, AGX_STR("meant"))) {
        _cleanup_buf_ struct agx_buf meant = AGX_BUF_INIT(FILE_MAX);

        append_hex(&meant, rest);
        ASSERT_STR(agx_buf_peek(&meant), agx_buf_peek(&s->value));
    } else {
        struct agx_str name;

        ASSERT_TRUE(agx_str_split(&rest, ' ', &name));
        check_header(s, name, rest.ptr ? rest : AGX_STR(""));
    }
}

static void read_recording(const char *name, struct agx_buf *out)
{
    char below[300];
    FILE *f;

    (void)snprintf(below, sizeof(below), "grpc/%s", name);
    f = fopen(test_path_recording(below), "rb");
    if (!f)
        FAIL("cannot open '%s'", test_path_recording(below));
    ASSERT_OK(agx_buf_reserve(out, FILE_MAX));
    out->len = fread(out->data, 1, FILE_MAX, f);
    fclose(f);
    ASSERT_TRUE(out->len > 0 && out->len < FILE_MAX);
}

static void check_recording(const char *name)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(FILE_MAX);
    _cleanup_(side_done) struct side client = { 0 }, server = { 0 };
    struct agx_str rest, line, who, kind;

    side_init(&client);
    side_init(&server);
    read_recording(name, &text);
    rest = agx_buf_peek(&text);
    while (agx_str_split(&rest, '\n', &line)) {
        if (line.len == 0 || line.ptr[0] == '#')
            continue;
        ASSERT_TRUE(agx_str_split(&line, ' ', &who) && agx_str_split(&line, ' ', &kind));
        check_line(agx_str_eq(who, AGX_STR("client")) ? &client : &server, kind, line);
    }
}

TEST(recordings_decode_and_encode_to_the_same_bytes)
{
    DIR *dir = opendir(test_path_recording("grpc"));
    struct dirent *entry;
    int n = 0;

    ASSERT_NOT_NULL(dir);
    while ((entry = readdir(dir))) {
        if (entry->d_name[0] == '.' || strcmp(entry->d_name, "compressed.txt") == 0)
            continue;
        printf("# %s\n", entry->d_name);
        check_recording(entry->d_name);
        n++;
    }
    closedir(dir);
    ASSERT_TRUE(n >= 10);
}

/* The first line that starts with `start`, without it. */
static struct agx_str find_line(const struct agx_buf *text, struct agx_str start)
{
    struct agx_str rest = agx_buf_peek(text), line;

    while (agx_str_split(&rest, '\n', &line)) {
        if (agx_str_starts(line, start))
            return agx_str_skip(line, start.len);
    }
    FAIL("the recording has no line '%.*s'", AGX_STR_ARG(start));
}

TEST(recorded_compressed_call_is_refused_by_its_header_and_by_its_flag)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(FILE_MAX), data = AGX_BUF_INIT(FILE_MAX);
    _cleanup_(agx_grpc_decoder_done) struct agx_grpc_decoder d = { 0 };
    struct agx_str in, message;

    read_recording("compressed.txt", &text);
    ASSERT_CODE(
        AGX_UNIMPLEMENTED,
        agx_grpc_encoding_check(find_line(&text, AGX_STR("client header grpc-encoding ")), NULL));
    append_hex(&data, find_line(&text, AGX_STR("client data ")));
    in = agx_buf_peek(&data);
    agx_grpc_decoder_init(&d, AGX_GRPC_MESSAGE_MAX);
    ASSERT_CODE(AGX_INTERNAL, agx_grpc_decoder_next(&d, &in, &message, NULL));
}
