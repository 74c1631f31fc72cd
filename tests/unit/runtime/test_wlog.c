#include "base/buf.h"
#include "base/fd.h"
#include "runtime/wlog.h"
#include "tests/support/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

TEST(wlog_gives_records_in_order_and_tells_what_is_lost)
{
    struct agx_wlog_config config = AGX_WLOG_CONFIG_INIT;
    struct agx_wlog_record rec;
    struct agx_wlog *log = NULL;
    uint64_t next = 1;

    config.max_records = 3;
    ASSERT_OK(agx_wlog_open(&config, &log, NULL));
    ASSERT_FALSE(agx_wlog_read(log, &next, &rec));
    agx_wlog_append(log, AGX_WLOG_STDOUT, AGX_STR("a"), 10);
    ASSERT_TRUE(agx_wlog_read(log, &next, &rec));
    ASSERT_STR(AGX_STR("a"), rec.text);
    ASSERT_UINT(1, rec.seq);
    ASSERT_UINT(0, rec.lost);
    for (int i = 0; i < 5; i++)
        agx_wlog_append(log, AGX_WLOG_STDERR, AGX_STR("b"), 11);
    ASSERT_TRUE(agx_wlog_read(log, &next, &rec));
    ASSERT_UINT(4, rec.seq);
    ASSERT_UINT(2, rec.lost);
    ASSERT_TRUE(agx_wlog_read(log, &next, &rec));
    ASSERT_UINT(0, rec.lost);
    ASSERT_TRUE(agx_wlog_read(log, &next, &rec));
    ASSERT_FALSE(agx_wlog_read(log, &next, &rec));
    agx_wlog_close(log);
}

TEST(wlog_keeps_within_its_bytes_and_always_the_newest)
{
    struct agx_wlog_config config = AGX_WLOG_CONFIG_INIT;
    struct agx_wlog_record rec;
    struct agx_wlog *log = NULL;
    uint64_t next = 0;

    config.max_bytes = 8;
    ASSERT_OK(agx_wlog_open(&config, &log, NULL));
    agx_wlog_append(log, AGX_WLOG_STDOUT, AGX_STR("12345"), 1);
    agx_wlog_append(log, AGX_WLOG_STDOUT, AGX_STR("67890"), 1);
    ASSERT_TRUE(agx_wlog_read(log, &next, &rec));
    ASSERT_STR(AGX_STR("67890"), rec.text);
    agx_wlog_append(log, AGX_WLOG_STDOUT, AGX_STR("longer than all of it"), 1);
    ASSERT_TRUE(agx_wlog_read(log, &next, &rec));
    ASSERT_STR(AGX_STR("longer than all of it"), rec.text);
    agx_wlog_close(log);
}

TEST(wlog_makes_text_of_any_bytes)
{
    struct agx_wlog_config config = AGX_WLOG_CONFIG_INIT;
    struct agx_wlog_record rec;
    struct agx_wlog *log = NULL;
    uint64_t next = 0;

    ASSERT_OK(agx_wlog_open(&config, &log, NULL));
    agx_wlog_append(log, AGX_WLOG_STDERR,
                    AGX_STR("\xff"
                            "ok\xc3\xa9\xe2\x82"),
                    1);
    ASSERT_TRUE(agx_wlog_read(log, &next, &rec));
    ASSERT_STR(AGX_STR("\xef\xbf\xbdok\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd"), rec.text);
    agx_wlog_append(log, AGX_WLOG_STDERR, AGX_STR(""), 1);
    agx_wlog_append(log, AGX_WLOG_STDOUT, AGX_STR("out"), 1);
    ASSERT_STR(AGX_STR("\xef\xbf\xbdok\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd"),
               agx_wlog_peek_last(log, 1));
    ASSERT_STR(AGX_STR(""), agx_wlog_peek_last(log, agx_wlog_next(log)));
    agx_wlog_close(log);
}

TEST(wlog_file_is_rotated_once_it_is_full_and_a_missing_directory_is_an_error)
{
    struct agx_wlog_config config = AGX_WLOG_CONFIG_INIT;
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(1000);
    char dir[] = "/tmp/agx-wlog-XXXXXX", path[64];
    struct agx_wlog *log = NULL;

    ASSERT_NOT_NULL(mkdtemp(dir));
    config.dir = dir;
    config.file_max = 10;
    ASSERT_OK(agx_wlog_open(&config, &log, NULL));
    agx_wlog_append(log, AGX_WLOG_STDOUT, AGX_STR("first"), 1);
    agx_wlog_append(log, AGX_WLOG_STDERR, AGX_STR("second"), 1);
    agx_wlog_close(log);
    (void)snprintf(path, sizeof(path), "%s/worker.log", dir);
    ASSERT_OK(agx_fd_read_file(AT_FDCWD, path, &text, NULL));
    ASSERT_STR(AGX_STR("err second\n"), agx_buf_peek(&text));
    ASSERT_INT(0, unlink(path));
    agx_buf_clear(&text);
    (void)snprintf(path, sizeof(path), "%s/worker.log.1", dir);
    ASSERT_OK(agx_fd_read_file(AT_FDCWD, path, &text, NULL));
    ASSERT_STR(AGX_STR("out first\n"), agx_buf_peek(&text));
    ASSERT_INT(0, unlink(path));
    ASSERT_INT(0, rmdir(dir));
    ASSERT_CODE(AGX_NOT_FOUND, agx_wlog_open(&config, &log, &err));
    ASSERT_MESSAGE(err, dir);
}
