#include "codec/eio_open.h"
#include "codec/eio_payload.h"
#include "codec/sio_assembler.h"
#include "tests/support/fault.h"
#include "tests/support/test.h"

TEST(payload_written_and_read_without_memory_is_resource_exhausted)
{
    const struct agx_eio_limits limits = AGX_EIO_LIMITS_INIT;
    const struct agx_eio_packet unit[] = { { AGX_EIO_MESSAGE, false, AGX_STR("2[\"e\"]") },
                                           { AGX_EIO_MESSAGE, true, AGX_STR("bytes") } };

    FAULT_EACH_ALLOCATION
    {
        _cleanup_(agx_eio_reader_done) struct agx_eio_reader rd = { .packets = 0 };
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;
        _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(1000);
        struct agx_eio_packet p;
        struct agx_eio_writer w;
        int r;

        agx_eio_writer_init(&w, &b, &limits);
        r = agx_eio_writer_add(&w, unit, 2, &err);
        if (r > 0)
            r = agx_eio_reader_init(&rd, agx_buf_peek(&b), &limits, &err);
        else
            ASSERT_UINT(0, b.len);
        while (r >= 0 && (r = agx_eio_reader_next(&rd, &p, &err)) > 0)
            ;
        ASSERT_INT(agx_fault_hit() ? -AGX_RESOURCE_EXHAUSTED : 0, r);
        ASSERT_INT(r < 0, err != NULL);
    }
}

TEST(open_packet_without_memory_is_resource_exhausted)
{
    const struct agx_eio_open o = { AGX_STR("id"), true, 1, 2, 3 };

    FAULT_EACH_ALLOCATION
    {
        _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(1000);
        int r = agx_eio_open_encode(&b, &o);

        ASSERT_INT(agx_fault_hit() ? -AGX_RESOURCE_EXHAUSTED : 0, r);
        ASSERT_INT(r < 0, b.len == 0);
    }
}

TEST(message_assembled_without_memory_is_resource_exhausted)
{
    static const char header[] = "52-[\"a\\u0062\",{\"_placeholder\":true,\"num\":1},"
                                 "{\"_placeholder\":true,\"num\":0}]";
    const struct agx_sio_limits limits = AGX_SIO_LIMITS_INIT;
    const struct agx_eio_packet packets[] = {
        { AGX_EIO_MESSAGE, false, AGX_STR("51-[\"e\",{\"_placeholder\":true,\"num\":0}]") },
        { AGX_EIO_MESSAGE, true, AGX_STR("one") },
        { AGX_EIO_MESSAGE, false, { header, sizeof(header) - 1 } },
        { AGX_EIO_MESSAGE, true, AGX_STR("one") },
        { AGX_EIO_MESSAGE, true, AGX_STR("two") },
    };

    FAULT_EACH_ALLOCATION
    {
        _cleanup_(agx_sio_assembler_done) struct agx_sio_assembler a;
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;
        struct agx_sio_message m;
        int r = 0;

        agx_sio_assembler_init(&a, &limits);
        for (size_t i = 0; r >= 0 && i < AGX_ARRAY_LEN(packets); i++)
            r = agx_sio_assembler_feed(&a, &packets[i], &m, &err);
        /* the common event's short path falls back to the general one, which may find memory */
        ASSERT_TRUE(r == 1 || (r == -AGX_RESOURCE_EXHAUSTED && agx_fault_hit() && err));
    }
}
