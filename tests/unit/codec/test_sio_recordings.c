/*
 * Recordings of python-socketio decode to the values of its application, and encode to the same
 * bytes again. tests/recordings/make_sio.py makes the recordings and describes their form.
 */
#include "codec/eio_open.h"
#include "codec/eio_payload.h"
#include "codec/sio_assembler.h"
#include "tests/support/paths.h"
#include "tests/support/test.h"

#include <dirent.h>
#include <stdio.h>

/* Longer than any recording. */
enum { FILE_MAX = 1 << 20 };

static const struct agx_sio_limits limits = AGX_SIO_LIMITS_INIT;
static const struct agx_eio_limits payload_limits = AGX_EIO_LIMITS_INIT;

/* One direction of a session. */
struct side {
    struct agx_str name; /* "client" or "server" */
    struct agx_str rest; /* lines in which the next thing that it means is looked for */
    struct agx_sio_assembler assembler;
};

struct counts {
    unsigned packets, messages, events;
};

static void append_hex(struct agx_buf *out, struct agx_str hex)
{
    for (; hex.len >= 2; hex = agx_str_skip(hex, 2)) {
        unsigned byte;

        ASSERT_INT(1, sscanf((char[3]){ hex.ptr[0], hex.ptr[1], 0 }, "%2x", &byte));
        ASSERT_OK(agx_buf_push(out, (uint8_t)byte));
    }
    ASSERT_UINT(0, hex.len);
}

/* The words after "means" of the side's next line "<side> means ..."; false: there is none. */
static bool next_meaning(struct side *s, struct agx_str *ret_words)
{
    struct agx_str line, word;

    while (agx_str_split(&s->rest, '\n', &line)) {
        if (agx_str_split(&line, ' ', &word) && agx_str_eq(word, s->name) &&
            agx_str_split(&line, ' ', &word) && agx_str_eq(word, AGX_STR("means"))) {
            *ret_words = line;
            return true;
        }
    }
    return false;
}

static void check_meaning(struct side *s, const struct agx_sio_message *m)
{
    struct agx_str line, word;

    ASSERT_TRUE(next_meaning(s, &line));
    ASSERT_TRUE(agx_str_split(&line, ' ', &word));
    ASSERT_STR(word, agx_sio_is_event(m->packet.type) ? m->name : AGX_STR("-"));
    for (size_t i = 0; i < m->packet.attachments; i++) {
        _cleanup_buf_ struct agx_buf want = AGX_BUF_INIT(FILE_MAX);

        ASSERT_TRUE(agx_str_split(&line, ' ', &word));
        append_hex(&want, agx_str_skip(word, 1));
        ASSERT_STR(agx_buf_peek(&want), m->attachments[i].bytes);
    }
    ASSERT_FALSE(agx_str_split(&line, ' ', &word));
}

/* A Socket.IO packet's text encodes to itself, by the short path too where that applies. */
static void check_again(struct agx_str text)
{
    _cleanup_buf_ struct agx_buf again = AGX_BUF_INIT(FILE_MAX);
    struct agx_sio_packet p;
    struct agx_str name;

    ASSERT_OK(agx_sio_decode(text, &limits, &p, NULL));
    ASSERT_OK(agx_sio_encode(&again, &p));
    ASSERT_STR(text, agx_buf_peek(&again));
    if (!agx_sio_decode_binary_event(text, &name))
        return;
    agx_buf_clear(&again);
    ASSERT_OK(agx_sio_encode_binary_event(&again, name));
    ASSERT_STR(text, agx_buf_peek(&again));
}

static void check_open(struct agx_str json)
{
    _cleanup_buf_ struct agx_buf again = AGX_BUF_INIT(FILE_MAX);
    struct agx_eio_open o;

    ASSERT_OK(agx_eio_open_decode(json, &o, NULL));
    ASSERT_OK(agx_eio_open_encode(&again, &o));
    ASSERT_STR(json, agx_buf_peek(&again));
}

static void check_packet(struct side *s, const struct agx_eio_packet *p, struct counts *n)
{
    struct agx_sio_message m;
    int r;

    n->packets++;
    if (p->type == AGX_EIO_OPEN)
        check_open(p->data);
    if (p->type != AGX_EIO_MESSAGE)
        return;
    if (!p->binary)
        check_again(p->data);
    r = agx_sio_assembler_feed(&s->assembler, p, &m, NULL);
    ASSERT_OK(r);
    if (r == 0)
        return;
    n->messages++;
    if (agx_sio_is_event(m.packet.type) || m.packet.has_id) {
        check_meaning(s, &m);
        n->events++;
    }
}

static void check_text(struct side *s, struct agx_str text, struct counts *n)
{
    _cleanup_buf_ struct agx_buf again = AGX_BUF_INIT(FILE_MAX);
    struct agx_eio_packet p;

    ASSERT_OK(agx_eio_decode_text(text, &p, NULL));
    ASSERT_OK(agx_eio_encode(&again, &p));
    ASSERT_STR(text, agx_buf_peek(&again));
    check_packet(s, &p, n);
}

static void check_binary(struct side *s, struct agx_str hex, struct counts *n)
{
    _cleanup_buf_ struct agx_buf bytes = AGX_BUF_INIT(FILE_MAX);
    struct agx_eio_packet p;

    append_hex(&bytes, hex);
    p = agx_eio_decode_binary(agx_buf_peek(&bytes));
    check_packet(s, &p, n);
}

static void check_payload(struct side *s, struct agx_str body, struct counts *n)
{
    _cleanup_(agx_eio_reader_done) struct agx_eio_reader rd = { .packets = 0 };
    _cleanup_buf_ struct agx_buf again = AGX_BUF_INIT(FILE_MAX);
    struct agx_eio_writer w;
    struct agx_eio_packet p;
    int r;

    agx_eio_writer_init(&w, &again, &payload_limits);
    ASSERT_OK(agx_eio_reader_init(&rd, body, &payload_limits, NULL));
    while ((r = agx_eio_reader_next(&rd, &p, NULL)) > 0) {
        ASSERT_INT(1, agx_eio_writer_add(&w, &p, 1, NULL));
        check_packet(s, &p, n);
    }
    ASSERT_OK(r);
    ASSERT_STR(body, agx_buf_peek(&again));
}

static void check_line(struct side *s, struct agx_str line, struct counts *n)
{
    struct agx_str kind, rest;

    ASSERT_TRUE(agx_str_split(&line, ' ', &kind));
    rest = line.ptr ? line : AGX_STR("");
    if (agx_str_eq(kind, AGX_STR("text")))
        check_text(s, rest, n);
    else if (agx_str_eq(kind, AGX_STR("binary")))
        check_binary(s, rest, n);
    else if (agx_str_eq(kind, AGX_STR("payload")))
        check_payload(s, rest, n);
    else
        ASSERT_STR(AGX_STR("means"), kind);
}

static void check_session(struct agx_str text, struct counts *n)
{
    struct side sides[] = { { .name = AGX_STR("client"), .rest = text },
                            { .name = AGX_STR("server"), .rest = text } };
    struct agx_str lines = text, line, word;

    for (size_t i = 0; i < AGX_ARRAY_LEN(sides); i++)
        agx_sio_assembler_init(&sides[i].assembler, &limits);
    while (agx_str_split(&lines, '\n', &line)) {
        if (line.len == 0 || line.ptr[0] == '#')
            continue;
        ASSERT_TRUE(agx_str_split(&line, ' ', &word));
        check_line(&sides[agx_str_eq(word, AGX_STR("client")) ? 0 : 1], line, n);
    }
    for (size_t i = 0; i < AGX_ARRAY_LEN(sides); i++) {
        ASSERT_FALSE(sides[i].assembler.waiting);
        ASSERT_FALSE(next_meaning(&sides[i], &word)); /* all that was meant came */
        agx_sio_assembler_done(&sides[i].assembler);
    }
}

static void check_file(const char *name, struct counts *n)
{
    _cleanup_free_ char *text = malloc(FILE_MAX);
    char below[300];
    FILE *f;

    ASSERT_NOT_NULL(text);
    (void)snprintf(below, sizeof(below), "sio/%s", name);
    f = fopen(test_path_recording(below), "rb");
    ASSERT_NOT_NULL(f);
    check_session(agx_str_bytes(text, fread(text, 1, FILE_MAX, f)), n);
    fclose(f);
}

TEST(every_recorded_session_decodes_to_what_was_meant_and_encodes_to_the_same_bytes)
{
    DIR *d = opendir(test_path_recording("sio"));
    struct counts n = { 0, 0, 0 };
    struct dirent *e;
    unsigned files = 0;

    ASSERT_NOT_NULL(d);
    while ((e = readdir(d))) {
        if (e->d_name[0] == '.')
            continue;
        printf("# %s\n", e->d_name);
        check_file(e->d_name, &n);
        files++;
    }
    closedir(d);
    printf("# %u sessions: %u packets, %u messages, %u events and acks\n", files, n.packets,
           n.messages, n.events);
    ASSERT_TRUE(files >= 15 && n.events >= 60);
}
