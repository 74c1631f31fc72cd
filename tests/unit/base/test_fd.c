#include "base/fd.h"
#include "tests/support/test.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

static int file_with(struct agx_str content)
{
    int fd = memfd_create("test", MFD_CLOEXEC);

    ASSERT_TRUE(fd >= 0);
    ASSERT_OK(agx_fd_write_all(fd, content, NULL));
    ASSERT_INT(0, lseek(fd, 0, SEEK_SET));
    return fd;
}

TEST(fd_read_all_appends_up_to_the_buffers_max)
{
    _cleanup_close_ int fd = file_with(AGX_STR("12345"));
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(7);

    ASSERT_OK(agx_buf_append(&b, AGX_STR("ab")));
    ASSERT_OK(agx_fd_read_all(fd, &b, NULL));
    ASSERT_STR(AGX_STR("ab12345"), agx_buf_peek(&b));
}

TEST(fd_read_all_past_the_max_is_resource_exhausted_and_keeps_the_content)
{
    _cleanup_close_ int fd = file_with(AGX_STR("123456"));
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(7);
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;

    ASSERT_OK(agx_buf_append(&b, AGX_STR("ab")));
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_fd_read_all(fd, &b, &err));
    ASSERT_MESSAGE(err, "longer than 7 bytes");
    ASSERT_STR(AGX_STR("ab"), agx_buf_peek(&b));
}

/* Returns NULL when all went well. */
static void *write_a_megabyte(void *user)
{
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(1 << 20);
    int fd = *(int *)user, r;

    while (b.len < b.max && agx_buf_push(&b, (uint8_t)(b.len * 31)) == 0)
        ;
    r = agx_fd_write_all(fd, agx_buf_peek(&b), NULL);
    (void)close(fd);
    return r < 0 ? user : NULL;
}

TEST(fd_write_all_and_read_all_move_more_than_a_pipe_holds)
{
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(2 << 20);
    void *failed = NULL;
    pthread_t t;
    int p[2];

    ASSERT_INT(0, pipe2(p, O_CLOEXEC));
    ASSERT_INT(0, pthread_create(&t, NULL, write_a_megabyte, &p[1]));
    ASSERT_OK(agx_fd_read_all(p[0], &b, NULL));
    ASSERT_INT(0, pthread_join(t, &failed));
    ASSERT_NULL(failed);
    ASSERT_INT(0, close(p[0]));
    ASSERT_UINT(1 << 20, b.len);
    for (size_t i = 0; i < b.len; i++)
        ASSERT_TRUE(b.data[i] == (uint8_t)(i * 31));
}

TEST(fd_write_all_to_a_closed_pipe_is_unavailable)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    int p[2];

    ASSERT_TRUE(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
    ASSERT_INT(0, pipe2(p, O_CLOEXEC));
    ASSERT_INT(0, close(p[0]));
    ASSERT_CODE(AGX_UNAVAILABLE, agx_fd_write_all(p[1], AGX_STR("x"), &err));
    ASSERT_MESSAGE(err, "write 1 bytes: Broken pipe");
    ASSERT_INT(0, close(p[1]));
}

TEST(fd_read_file_names_the_file_that_fails)
{
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(100000);
    _cleanup_(agx_error_freep) struct agx_error *err = NULL, *dir = NULL;

    ASSERT_OK(agx_fd_read_file(AT_FDCWD, "/proc/self/stat", &b, NULL));
    ASSERT_TRUE(b.len > 0);
    ASSERT_CODE(AGX_NOT_FOUND, agx_fd_read_file(AT_FDCWD, "/nonexistent/f", &b, &err));
    ASSERT_MESSAGE(err, "open '/nonexistent/f': No such file");
    ASSERT_CODE(AGX_INTERNAL, agx_fd_read_file(AT_FDCWD, "/", &b, &dir));
    ASSERT_MESSAGE(dir, "read file '/'");
}

TEST(fd_set_nonblock_makes_a_full_pipe_unavailable)
{
    static const char block[65536];
    int p[2], r;

    ASSERT_INT(0, pipe2(p, O_CLOEXEC));
    ASSERT_OK(agx_fd_set_nonblock(p[1], true, NULL));
    do
        r = agx_fd_write_all(p[1], agx_str_bytes(block, sizeof(block)), NULL);
    while (r == 0);
    ASSERT_CODE(AGX_UNAVAILABLE, r);
    ASSERT_OK(agx_fd_set_nonblock(p[1], false, NULL));
    ASSERT_INT(0, fcntl(p[1], F_GETFL) & O_NONBLOCK);
    ASSERT_CODE(AGX_INTERNAL, agx_fd_set_nonblock(-1, true, NULL));
    ASSERT_INT(0, close(p[0]));
    ASSERT_INT(0, close(p[1]));
}
