#include "codec/initproto_frame.h"
#include "tests/support/initproto.h"

static uint8_t room[1 << 17];

static struct agx_str encoded(const struct agx_init_msg *m)
{
    size_t n = agx_init_encode(m, room, sizeof(room));

    ASSERT_TRUE(n <= sizeof(room));
    return agx_str_bytes(room, n);
}

static struct agx_init_msg start_message(struct test_words *argv, struct test_words *env,
                                         uint8_t limit[AGX_INIT_RLIMIT_SIZE])
{
    agx_init_rlimit_put(limit, &(struct agx_init_rlimit){ 7, 100, UINT64_MAX });
    return (struct agx_init_msg){
        .kind = AGX_INIT_START,
        .id = AGX_STR("exec-1"),
        .flags = AGX_INIT_TTY | AGX_INIT_UMASK,
        .user = AGX_STR("agbox:5"),
        .cwd = AGX_STR("/work"),
        .umask = 027,
        .rows = 24,
        .cols = 80,
        .out_head = 1,
        .out_tail = 2,
        .err_head = 3,
        .err_tail = 4,
        .argv = TEST_WORDS(argv, "sh", "-c", ""),
        .env = TEST_WORDS(env, "A=1", "B="),
        .rlimits = { 1, agx_str_bytes(limit, AGX_INIT_RLIMIT_SIZE) },
    };
}

TEST(start_carries_a_whole_command)
{
    uint8_t limit[AGX_INIT_RLIMIT_SIZE];
    struct agx_init_rlimit rlimit;
    struct test_words argv, env;
    struct agx_init_msg in = start_message(&argv, &env, limit), m;

    ASSERT_OK(agx_init_decode(encoded(&in), &m, NULL));
    ASSERT_INT(AGX_INIT_START, m.kind);
    ASSERT_STR(AGX_STR("exec-1"), m.id);
    ASSERT_STR(AGX_STR("agbox:5"), m.user);
    ASSERT_CSTR("/work", m.cwd.ptr);
    ASSERT_INT(AGX_INIT_TTY | AGX_INIT_UMASK, m.flags);
    ASSERT_INT(027, m.umask);
    ASSERT_INT(80, m.cols);
    ASSERT_INT(4, m.err_tail);
    ASSERT_CSTR("sh", agx_init_list_next(&m.argv));
    ASSERT_CSTR("-c", agx_init_list_next(&m.argv));
    ASSERT_CSTR("", agx_init_list_next(&m.argv));
    ASSERT_NULL(agx_init_list_next(&m.argv));
    ASSERT_CSTR("A=1", agx_init_list_next(&m.env));
    ASSERT_CSTR("B=", agx_init_list_next(&m.env));
    ASSERT_NULL(agx_init_list_next(&m.env));
    ASSERT_TRUE(agx_init_rlimit_next(&m.rlimits, &rlimit));
    ASSERT_INT(7, rlimit.resource);
    ASSERT_UINT(100, rlimit.soft);
    ASSERT_UINT(UINT64_MAX, rlimit.hard);
    ASSERT_FALSE(agx_init_rlimit_next(&m.rlimits, &rlimit));
}

TEST(exit_report_carries_code_signal_and_usage)
{
    const struct agx_init_msg in = { .kind = AGX_INIT_EXITED,
                                     .id = AGX_STR("e"),
                                     .exit_code = -1,
                                     .signo = 9,
                                     .usage = { 1, UINT64_C(1) << 40, 3 } };
    struct agx_init_msg m;

    ASSERT_OK(agx_init_decode(encoded(&in), &m, NULL));
    ASSERT_INT(-1, m.exit_code);
    ASSERT_INT(9, m.signo);
    ASSERT_UINT(UINT64_C(1) << 40, m.usage.system_us);
    ASSERT_UINT(3, m.usage.max_rss_kib);
}

TEST(every_prefix_of_a_packet_is_refused_and_so_is_a_byte_behind_it)
{
    uint8_t limit[AGX_INIT_RLIMIT_SIZE];
    struct test_words argv, env;
    struct agx_init_msg in = start_message(&argv, &env, limit), m;
    struct agx_str packet = encoded(&in);

    for (size_t n = 0; n < packet.len; n++)
        ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_init_decode(agx_str_bytes(room, n), &m, NULL));
    room[packet.len] = 0;
    ASSERT_CODE(AGX_INVALID_ARGUMENT,
                agx_init_decode(agx_str_bytes(room, packet.len + 1), &m, NULL));
}

TEST(other_protocols_versions_and_kinds_are_refused_by_name)
{
    _cleanup_(agx_error_freep) struct agx_error *one = NULL, *two = NULL, *three = NULL;
    struct agx_init_msg m;

    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_init_decode(AGX_STR("GET / HTTP/1.1"), &m, &one));
    ASSERT_MESSAGE(one, "unknown protocol");
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_init_decode(AGX_STR("AX\x02\x0a"), &m, &two));
    ASSERT_MESSAGE(two, "unsupported protocol version");
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_init_decode(AGX_STR("AX\x01\x30"), &m, &three));
    ASSERT_MESSAGE(three, "unknown kind");
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_init_decode(AGX_STR("AX\x01\xff"), &m, NULL));
    ASSERT_OK(agx_init_decode(AGX_STR("AX\x01\x09\x01\x00\x00\x00\x00\x00\x00\x00"), &m, NULL));
}

TEST(commands_that_make_no_sense_are_refused)
{
    uint8_t limit[AGX_INIT_RLIMIT_SIZE];
    struct test_words argv, env;
    const struct agx_init_msg good = start_message(&argv, &env, limit);
    struct agx_init_msg in = good, m;

    in.argv = (struct agx_init_list){ 0 };
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_init_decode(encoded(&in), &m, NULL));
    in = good;
    in.cwd = AGX_STR("relative");
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_init_decode(encoded(&in), &m, NULL));
    in = good;
    in.id = AGX_STR("");
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_init_decode(encoded(&in), &m, NULL));
    in = good;
    in.user = AGX_STR("a\0b");
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_init_decode(encoded(&in), &m, NULL));
    in = good;
    in.env = TEST_WORDS(&env, "NOTHING");
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_init_decode(encoded(&in), &m, NULL));
    in.env = TEST_WORDS(&env, "=x");
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_init_decode(encoded(&in), &m, NULL));
}

TEST(counts_past_their_limit_are_resource_exhausted)
{
    uint8_t limit[AGX_INIT_RLIMIT_SIZE];
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct test_words argv, env;
    struct agx_init_msg in = start_message(&argv, &env, limit), m;

    in.argv.count = AGX_INIT_WORDS_MAX + 1;
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_init_decode(encoded(&in), &m, &err));
    ASSERT_MESSAGE(err, "65536");
    in = start_message(&argv, &env, limit);
    in.rlimits.count = AGX_INIT_RLIMITS_MAX + 1;
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_init_decode(encoded(&in), &m, NULL));
}

TEST(encode_without_room_tells_the_length_and_writes_nothing_behind)
{
    const struct agx_init_msg in = { .kind = AGX_INIT_GONE, .id = AGX_STR("exec") };
    uint8_t small[8] = { 0 };

    ASSERT_INT(13, agx_init_encode(&in, NULL, 0));
    ASSERT_INT(13, agx_init_encode(&in, small, 7));
    ASSERT_INT(0, small[7]);
}

static const struct agx_siphash_key key = { 1, 2 }, other_key = { 1, 3 };

/* Frames of a packet behind what `out` has; the new length. */
static size_t put_frames(uint8_t *out, size_t len, struct agx_str packet)
{
    size_t at = 0;

    do {
        struct agx_str data;

        agx_init_frame_seal(&key, AGX_INIT_FROM_INIT, packet, &at, out + len, &data);
        len += AGX_INIT_FRAME_HEAD;
        memcpy(out + len, data.ptr, data.len);
        len += data.len;
    } while (at < packet.len);
    return len;
}

TEST(frames_of_a_packet_are_found_in_order)
{
    static uint8_t big[40000], stream[1 << 17];
    struct agx_init_frame f;
    size_t used, got = 0, len;
    struct agx_str in;

    memset(big, 'x', sizeof(big));
    len = put_frames(stream, 0, agx_str_bytes(big, sizeof(big)));
    in = agx_str_bytes(stream, len);
    for (unsigned i = 0; i < 3; i++) {
        ASSERT_TRUE(agx_init_frame_next(&key, AGX_INIT_FROM_INIT, in, &f, &used));
        ASSERT_INT(i == 0, f.first);
        ASSERT_INT(i == 2, f.last);
        got += f.data.len;
        in = agx_str_skip(in, used);
    }
    ASSERT_UINT(sizeof(big), got);
    ASSERT_UINT(0, in.len);
}

TEST(frame_of_another_key_or_side_is_none)
{
    uint8_t stream[100];
    struct agx_init_frame f;
    struct agx_str in = agx_str_bytes(stream, put_frames(stream, 0, AGX_STR("hello")));
    size_t used;

    ASSERT_FALSE(agx_init_frame_next(&other_key, AGX_INIT_FROM_INIT, in, &f, &used));
    ASSERT_UINT(in.len, used);
    ASSERT_FALSE(agx_init_frame_next(&key, AGX_INIT_FROM_DAEMON, in, &f, &used));
    ASSERT_TRUE(agx_init_frame_next(&key, AGX_INIT_FROM_INIT, in, &f, &used));
    stream[AGX_INIT_FRAME_HEAD] ^= 1;
    ASSERT_FALSE(agx_init_frame_next(&key, AGX_INIT_FROM_INIT, in, &f, &used));
}

TEST(frame_that_was_cut_short_costs_only_itself_once_padded)
{
    static uint8_t big[10000], stream[1 << 16];
    size_t whole;

    memset(big, 'x', sizeof(big)); /* or the padding would complete the frame */
    whole = put_frames(stream, 0, agx_str_bytes(big, sizeof(big)));

    for (size_t cut = 0; cut < whole; cut += 97) {
        size_t len = cut, used;
        struct agx_init_frame f;

        (void)put_frames(stream, 0, agx_str_bytes(big, sizeof(big)));
        memset(stream + len, 0, AGX_INIT_FRAME_PAD);
        len = put_frames(stream, len + AGX_INIT_FRAME_PAD, AGX_STR("hello"));
        ASSERT_TRUE(
            agx_init_frame_next(&key, AGX_INIT_FROM_INIT, agx_str_bytes(stream, len), &f, &used));
        ASSERT_STR(AGX_STR("hello"), f.data);
        ASSERT_UINT(len, used);
    }
}

TEST(frame_comes_in_pieces_of_any_size)
{
    uint8_t stream[200] = "noise\xa7noise";
    size_t len = put_frames(stream, 11, AGX_STR("hello")), used;
    struct agx_init_frame f;

    for (size_t n = 0; n < len; n++) {
        ASSERT_FALSE(
            agx_init_frame_next(&key, AGX_INIT_FROM_INIT, agx_str_bytes(stream, n), &f, &used));
        ASSERT_TRUE(used <= 11);
    }
    ASSERT_TRUE(
        agx_init_frame_next(&key, AGX_INIT_FROM_INIT, agx_str_bytes(stream, len), &f, &used));
}
