#include "codec/sio_assembler.h"
#include "tests/support/test.h"

static const struct agx_sio_limits defaults = AGX_SIO_LIMITS_INIT;

#define ASSEMBLER(a, l)                                                                            \
    _cleanup_(agx_sio_assembler_done) struct agx_sio_assembler a;                                  \
    agx_sio_assembler_init(&(a), (l))

static int feed_text(struct agx_sio_assembler *a, const char *text, struct agx_sio_message *ret,
                     struct agx_error **err)
{
    const struct agx_eio_packet p = { AGX_EIO_MESSAGE, false, agx_str_from(text) };

    return agx_sio_assembler_feed(a, &p, ret, err);
}

static int feed_bytes(struct agx_sio_assembler *a, struct agx_str bytes,
                      struct agx_sio_message *ret, struct agx_error **err)
{
    const struct agx_eio_packet p = agx_eio_decode_binary(bytes);

    return agx_sio_assembler_feed(a, &p, ret, err);
}

TEST(plain_event_is_complete_at_once)
{
    struct agx_sio_message m;
    struct agx_sio_args it;
    struct agx_sio_arg arg;

    ASSEMBLER(a, &defaults);
    ASSERT_INT(1, feed_text(&a, "2[\"e\",1,{\"a\":[2]}]", &m, NULL));
    ASSERT_STR(AGX_STR("e"), m.name);
    ASSERT_NULL(m.sole);
    agx_sio_args_init(&it, &m);
    ASSERT_TRUE(agx_sio_args_next(&it, &arg));
    ASSERT_STR(AGX_STR("1"), arg.json);
    ASSERT_TRUE(agx_sio_args_next(&it, &arg));
    ASSERT_STR(AGX_STR("{\"a\":[2]}"), arg.json);
    ASSERT_NULL(arg.attachment);
    ASSERT_FALSE(agx_sio_args_next(&it, &arg));
}

TEST(packet_without_arguments_is_complete_at_once)
{
    struct agx_sio_message m;
    struct agx_sio_args it;
    struct agx_sio_arg arg;

    ASSEMBLER(a, &defaults);
    ASSERT_INT(1, feed_text(&a, "0/x,{\"token\":\"t\"}", &m, NULL));
    ASSERT_INT(AGX_SIO_CONNECT, m.packet.type);
    ASSERT_UINT(0, m.name.len);
    agx_sio_args_init(&it, &m);
    ASSERT_FALSE(agx_sio_args_next(&it, &arg));
    ASSERT_INT(1, feed_text(&a, "1", &m, NULL));
    agx_sio_args_init(&it, &m);
    ASSERT_FALSE(agx_sio_args_next(&it, &arg));
}

TEST(common_binary_event_waits_for_its_attachment_and_borrows_it)
{
    char header[] = "51-[\"unary\",{\"_placeholder\":true,\"num\":0}]";
    const struct agx_str bytes = AGX_STR("\x82\xa7");
    struct agx_sio_message m;

    ASSEMBLER(a, &defaults);
    for (int i = 0; i < 3; i++) {
        header[0] = '5';
        ASSERT_INT(0, feed_text(&a, header, &m, NULL));
        memset(header, 0, 1); /* the header's bytes may be gone when the attachment comes */
        ASSERT_INT(1, feed_bytes(&a, bytes, &m, NULL));
        ASSERT_INT(AGX_SIO_BINARY_EVENT, m.packet.type);
        ASSERT_STR(AGX_STR("unary"), m.name);
        ASSERT_STR(AGX_STR("/"), m.packet.nsp);
        ASSERT_STR(AGX_STR("[\"unary\",{\"_placeholder\":true,\"num\":0}]"), m.packet.data);
        ASSERT_NOT_NULL(m.sole);
        ASSERT_TRUE(m.sole == m.attachments);
        ASSERT_TRUE(m.sole->bytes.ptr == bytes.ptr);
        ASSERT_UINT(2, m.sole->bytes.len);
    }
}

TEST(general_binary_event_with_one_argument_has_the_same_sole_attachment)
{
    struct agx_sio_message m;

    ASSEMBLER(a, &defaults);
    ASSERT_INT(0,
               feed_text(&a, "51-7[\"un\\u0061ry\", {\"num\":0,\"_placeholder\":true}]", &m, NULL));
    ASSERT_INT(1, feed_bytes(&a, AGX_STR("x"), &m, NULL));
    ASSERT_STR(AGX_STR("unary"), m.name);
    ASSERT_UINT(7, m.packet.id);
    ASSERT_NOT_NULL(m.sole);
    ASSERT_STR(AGX_STR("x"), m.sole->bytes);
    /* one attachment that is not the only argument is not sole */
    ASSERT_INT(0, feed_text(&a, "51-[\"e\",{\"_placeholder\":true,\"num\":0},1]", &m, NULL));
    ASSERT_INT(1, feed_bytes(&a, AGX_STR("x"), &m, NULL));
    ASSERT_NULL(m.sole);
    ASSERT_INT(0, feed_text(&a, "51-[\"e\",[{\"_placeholder\":true,\"num\":0}]]", &m, NULL));
    ASSERT_INT(1, feed_bytes(&a, AGX_STR("x"), &m, NULL));
    ASSERT_NULL(m.sole);
}

TEST(attachments_go_to_the_arguments_that_name_them)
{
    struct agx_sio_message m;
    struct agx_sio_args it;
    struct agx_sio_arg arg;

    ASSEMBLER(a, &defaults);
    ASSERT_INT(0, feed_text(&a,
                            "63-/n,5[{\"_placeholder\":true,\"num\":2},\"t\","
                            "{\"_placeholder\":true,\"num\":0},"
                            "{\"x\":[{\"_placeholder\":true,\"num\":1}]}]",
                            &m, NULL));
    ASSERT_INT(0, feed_bytes(&a, AGX_STR("zero"), &m, NULL));
    ASSERT_INT(0, feed_bytes(&a, AGX_STR(""), &m, NULL));
    ASSERT_INT(1, feed_bytes(&a, AGX_STR("two"), &m, NULL));
    ASSERT_STR(AGX_STR("/n"), m.packet.nsp);
    ASSERT_STR(AGX_STR("zero"), m.attachments[0].bytes);
    ASSERT_STR(AGX_STR(""), m.attachments[1].bytes);
    agx_sio_args_init(&it, &m);
    ASSERT_TRUE(agx_sio_args_next(&it, &arg));
    ASSERT_STR(AGX_STR("two"), arg.attachment->bytes);
    ASSERT_TRUE(agx_sio_args_next(&it, &arg));
    ASSERT_NULL(arg.attachment);
    ASSERT_TRUE(agx_sio_args_next(&it, &arg));
    ASSERT_STR(AGX_STR("zero"), arg.attachment->bytes);
    ASSERT_TRUE(agx_sio_args_next(&it, &arg));
    ASSERT_NULL(arg.attachment);
    ASSERT_FALSE(agx_sio_args_next(&it, &arg));
}

TEST(binary_packet_without_attachments_is_complete_at_once)
{
    struct agx_sio_message m;

    ASSEMBLER(a, &defaults);
    ASSERT_INT(1, feed_text(&a, "50-[\"e\"]", &m, NULL));
    ASSERT_STR(AGX_STR("e"), m.name);
}

TEST(name_that_is_a_number_is_its_digits)
{
    struct agx_sio_message m;

    ASSEMBLER(a, &defaults);
    ASSERT_INT(1, feed_text(&a, "2[17]", &m, NULL));
    ASSERT_STR(AGX_STR("17"), m.name);
}

TEST(placeholders_that_do_not_match_the_attachments_are_invalid)
{
    static const struct {
        const char *text, *words;
    } bad[] = {
        { "51-[\"e\"]", "attachment 0 has no placeholder" },
        { "52-[\"e\",{\"_placeholder\":true,\"num\":0}]", "attachment 1 has no placeholder" },
        { "51-[\"e\",{\"_placeholder\":true,\"num\":1}]", "placeholder 1, but only 1" },
        { "50-[\"e\",{\"_placeholder\":true,\"num\":0}]", "placeholder 0, but only 0" },
        { "51-[\"e\",{\"_placeholder\":true,\"num\":0},{\"_placeholder\":true,\"num\":0}]",
          "twice" },
        { "51-[\"e\",{\"_placeholder\":false,\"num\":0}]", "no placeholder" },
        { "51-[\"e\",{\"_placeholder\":true,\"num\":-1}]", "no placeholder" },
        { "51-[\"e\",{\"_placeholder\":true,\"num\":0.0}]", "no placeholder" },
        { "51-[\"e\",{\"_placeholder\":true,\"num\":\"0\"}]", "no placeholder" },
        { "51-[\"e\",{\"_placeholder\":true,\"num\":0,\"x\":1}]", "no placeholder" },
        { "51-[\"e\",{\"_placeholder\":true,\"_placeholder\":true,\"num\":0}]", "no placeholder" },
        { "51-[\"e\",{\"_placeholder\":true}]", "no placeholder" },
        { "51-[\"e\",{\"_placeholder\":true,\"num\":99999999999999999999}]", "no placeholder" },
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++) {
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;
        struct agx_sio_message m;

        ASSEMBLER(a, &defaults);
        ASSERT_CODE(AGX_INVALID_ARGUMENT, feed_text(&a, bad[i].text, &m, &err));
        ASSERT_MESSAGE(err, bad[i].words);
    }
}

TEST(packets_out_of_order_are_invalid_and_leave_the_assembler_empty)
{
    static const char header[] = "52-[\"e\",{\"_placeholder\":true,\"num\":0},"
                                 "{\"_placeholder\":true,\"num\":1}]";
    _cleanup_(agx_error_freep) struct agx_error *err = NULL, *err2 = NULL;
    struct agx_sio_message m;

    ASSEMBLER(a, &defaults);
    ASSERT_CODE(AGX_INVALID_ARGUMENT, feed_bytes(&a, AGX_STR("abc"), &m, &err));
    ASSERT_MESSAGE(err, "3 bytes without a header");
    ASSERT_INT(0, feed_text(&a, header, &m, NULL));
    ASSERT_INT(0, feed_bytes(&a, AGX_STR("abc"), &m, NULL));
    ASSERT_CODE(AGX_INVALID_ARGUMENT, feed_text(&a, header, &m, &err2));
    ASSERT_MESSAGE(err2, "expected attachment 2 of 2");
    ASSERT_CODE(AGX_INVALID_ARGUMENT, feed_bytes(&a, AGX_STR("abc"), &m, NULL));
    ASSERT_INT(1, feed_text(&a, "2[\"e\"]", &m, NULL));
}

TEST(message_past_a_limit_is_resource_exhausted_and_at_it_fits)
{
    const struct agx_sio_limits limits = {
        .header_max = 80, .attachments_max = 2, .bytes_max = 5, .depth_max = 2
    };
    static const char header[] = "52-[\"e\",{\"_placeholder\":true,\"num\":0},"
                                 "{\"_placeholder\":true,\"num\":1}]";
    _cleanup_(agx_error_freep) struct agx_error *err = NULL, *err2 = NULL;
    char longer[100];
    struct agx_sio_message m;

    ASSEMBLER(a, &limits);
    ASSERT_INT(0, feed_text(&a, header, &m, NULL));
    ASSERT_INT(0, feed_bytes(&a, AGX_STR("abc"), &m, NULL));
    ASSERT_INT(1, feed_bytes(&a, AGX_STR("de"), &m, NULL));
    ASSERT_INT(0, feed_text(&a, header, &m, NULL));
    ASSERT_INT(0, feed_bytes(&a, AGX_STR("abc"), &m, NULL));
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, feed_bytes(&a, AGX_STR("def"), &m, &err));
    ASSERT_MESSAGE(err, "limit of 5 bytes");
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, feed_text(&a, "53-[\"e\"]", &m, NULL));
    memset(longer, '5', sizeof(longer));
    longer[sizeof(longer) - 1] = '\0';
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, feed_text(&a, longer, &m, &err2));
    ASSERT_MESSAGE(err2, "99 bytes (limit 80)");
}

TEST(common_binary_event_past_a_limit_is_resource_exhausted_all_the_same)
{
    static const char header[] = "51-[\"e\",{\"_placeholder\":true,\"num\":0}]";
    struct agx_sio_limits limits = defaults;
    struct agx_sio_message m;

    limits.attachments_max = 0;
    ASSEMBLER(a, &limits);
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, feed_text(&a, header, &m, NULL));
    limits = defaults;
    limits.depth_max = 1;
    ASSEMBLER(b, &limits);
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, feed_text(&b, header, &m, NULL));
}

TEST(memory_of_a_large_message_is_not_kept)
{
    static char large[200000];
    struct agx_sio_message m;

    ASSEMBLER(a, &defaults);
    ASSERT_INT(0, feed_text(&a,
                            "52-[\"e\",{\"_placeholder\":true,\"num\":0},"
                            "{\"_placeholder\":true,\"num\":1}]",
                            &m, NULL));
    ASSERT_INT(0, feed_bytes(&a, agx_str_bytes(large, sizeof(large)), &m, NULL));
    ASSERT_INT(1, feed_bytes(&a, AGX_STR("b"), &m, NULL));
    ASSERT_UINT(sizeof(large), m.attachments[0].bytes.len);
    ASSERT_INT(1, feed_text(&a, "2[\"e\"]", &m, NULL));
    ASSERT_UINT(0, a.bytes.cap);
}
