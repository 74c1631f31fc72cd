#include "codec/eio_payload.h"
#include "tests/support/test.h"

static const struct agx_eio_limits defaults = AGX_EIO_LIMITS_INIT;

static int read_all(struct agx_str body, const struct agx_eio_limits *limits, size_t *ret_n,
                    struct agx_error **err)
{
    _cleanup_(agx_eio_reader_done) struct agx_eio_reader rd = { .packets = 0 };
    struct agx_eio_packet p;
    int r = agx_eio_reader_init(&rd, body, limits, err);

    if (r < 0)
        return r;
    for (*ret_n = 0; (r = agx_eio_reader_next(&rd, &p, err)) > 0; (*ret_n)++)
        ;
    return r;
}

TEST(payload_with_text_and_binary_reads_packet_by_packet)
{
    _cleanup_(agx_eio_reader_done) struct agx_eio_reader rd = { .packets = 0 };
    struct agx_eio_packet p;

    ASSERT_OK(agx_eio_reader_init(&rd,
                                  AGX_STR("451-[]\x1e"
                                          "bAP8=\x1e"
                                          "2\x1e"
                                          "b"),
                                  &defaults, NULL));
    ASSERT_INT(1, agx_eio_reader_next(&rd, &p, NULL));
    ASSERT_STR(AGX_STR("51-[]"), p.data);
    ASSERT_INT(1, agx_eio_reader_next(&rd, &p, NULL));
    ASSERT_TRUE(p.binary);
    ASSERT_STR(AGX_STR("\x00\xff"), p.data);
    ASSERT_INT(1, agx_eio_reader_next(&rd, &p, NULL));
    ASSERT_INT(AGX_EIO_PING, p.type);
    ASSERT_INT(1, agx_eio_reader_next(&rd, &p, NULL));
    ASSERT_TRUE(p.binary);
    ASSERT_UINT(0, p.data.len);
    ASSERT_INT(0, agx_eio_reader_next(&rd, &p, NULL));
    ASSERT_INT(0, agx_eio_reader_next(&rd, &p, NULL));
}

TEST(payload_that_is_empty_has_no_packets)
{
    size_t n;

    ASSERT_OK(read_all(AGX_STR(""), &defaults, &n, NULL));
    ASSERT_UINT(0, n);
}

TEST(payload_with_a_bad_packet_is_invalid_and_names_it)
{
    static const char *const bad[] = { "2\x1e",
                                       "\x1e"
                                       "2",
                                       "2\x1e\x1e"
                                       "2",
                                       "2\x1e"
                                       "9",
                                       "2\x1e"
                                       "b*",
                                       "2\x1e"
                                       "bA" };
    size_t n = 0;

    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++) {
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;

        ASSERT_CODE(AGX_INVALID_ARGUMENT, read_all(agx_str_from(bad[i]), &defaults, &n, &err));
        ASSERT_MESSAGE(err, n == 0 ? "packet 0" : "packet 1");
    }
}

TEST(payload_over_its_packets_or_bytes_is_resource_exhausted_and_at_them_fits)
{
    const struct agx_eio_limits limits = { .packets_max = 2, .bytes_max = 5 };
    _cleanup_(agx_error_freep) struct agx_error *err = NULL, *err2 = NULL;
    size_t n;

    ASSERT_OK(read_all(AGX_STR("4a\x1e"
                               "4b"),
                       &limits, &n, NULL));
    ASSERT_UINT(2, n);
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, read_all(AGX_STR("2\x1e"
                                                         "2\x1e"
                                                         "2"),
                                                 &limits, &n, &err));
    ASSERT_MESSAGE(err, "more than 2 packets");
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, read_all(AGX_STR("4a\x1e"
                                                         "4bc"),
                                                 &limits, &n, &err2));
    ASSERT_MESSAGE(err2, "limit of 5");
}

static const struct agx_eio_packet event[] = {
    { AGX_EIO_MESSAGE, false, { "51-[]", 5 } },
    { AGX_EIO_MESSAGE, true, { "\x00\xff", 2 } },
};

TEST(writer_joins_units_and_the_reader_reads_them_back)
{
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(64);
    struct agx_eio_packet noop = { .type = AGX_EIO_NOOP };
    struct agx_eio_writer w;
    size_t n;

    agx_eio_writer_init(&w, &b, &defaults);
    ASSERT_INT(1, agx_eio_writer_add(&w, event, 2, NULL));
    ASSERT_INT(1, agx_eio_writer_add(&w, &noop, 1, NULL));
    ASSERT_STR(AGX_STR("451-[]\x1e"
                       "bAP8=\x1e"
                       "6"),
               agx_buf_peek(&b));
    ASSERT_OK(read_all(agx_buf_peek(&b), &defaults, &n, NULL));
    ASSERT_UINT(3, n);
}

TEST(writer_stops_before_a_unit_that_would_pass_the_packets)
{
    const struct agx_eio_limits limits = { .packets_max = 3, .bytes_max = 100 };
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(100);
    struct agx_eio_writer w;

    agx_eio_writer_init(&w, &b, &limits);
    ASSERT_INT(1, agx_eio_writer_add(&w, event, 2, NULL));
    ASSERT_INT(0, agx_eio_writer_add(&w, event, 2, NULL));
    ASSERT_STR(AGX_STR("451-[]\x1e"
                       "bAP8="),
               agx_buf_peek(&b));
    ASSERT_INT(1, agx_eio_writer_add(&w, event, 1, NULL));
}

TEST(writer_stops_before_a_unit_that_would_pass_the_bytes)
{
    struct agx_eio_limits limits = { .packets_max = 16, .bytes_max = 25 };
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(100);
    struct agx_eio_writer w;

    /* one unit has 12 bytes, two and a separator have 25 */
    agx_eio_writer_init(&w, &b, &limits);
    ASSERT_INT(1, agx_eio_writer_add(&w, event, 2, NULL));
    ASSERT_INT(1, agx_eio_writer_add(&w, event, 2, NULL));
    ASSERT_UINT(25, b.len);
    ASSERT_INT(0, agx_eio_writer_add(&w, event, 1, NULL));
    agx_buf_clear(&b);
    limits.bytes_max = 24;
    agx_eio_writer_init(&w, &b, &limits);
    ASSERT_INT(1, agx_eio_writer_add(&w, event, 2, NULL));
    ASSERT_INT(0, agx_eio_writer_add(&w, event, 2, NULL));
    ASSERT_UINT(12, b.len);
}

TEST(writer_of_a_unit_that_fits_into_no_payload_is_an_error)
{
    struct agx_eio_limits limits = { .packets_max = 1, .bytes_max = 100 };
    _cleanup_(agx_error_freep) struct agx_error *err = NULL, *err2 = NULL;
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(100), small = AGX_BUF_INIT(8);
    struct agx_eio_packet huge = { AGX_EIO_MESSAGE, true, { "", SIZE_MAX } };
    struct agx_eio_writer w;

    agx_eio_writer_init(&w, &b, &limits);
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_eio_writer_add(&w, event, 2, &err));
    ASSERT_MESSAGE(err, "2 packets do not fit");
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_eio_writer_add(&w, &huge, 1, NULL));
    limits = (struct agx_eio_limits){ .packets_max = 2, .bytes_max = 11 };
    agx_eio_writer_init(&w, &b, &limits);
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_eio_writer_add(&w, event, 2, NULL));
    ASSERT_UINT(0, b.len);
    /* the buffer's own limit counts too, and half a unit is taken back */
    agx_eio_writer_init(&w, &small, &defaults);
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_eio_writer_add(&w, event, 2, &err2));
    ASSERT_MESSAGE(err2, "no room");
    ASSERT_UINT(0, small.len);
}
