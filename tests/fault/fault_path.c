#include "base/path.h"
#include "tests/support/fault.h"
#include "tests/support/test.h"

#include <fcntl.h>
#include <stdlib.h>

TEST(path_functions_need_no_memory_to_succeed_and_none_to_fail)
{
    char root[] = "/tmp/agx-fault-path-XXXXXX";
    int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC), top;

    ASSERT_NOT_NULL(mkdtemp(root));
    top = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    FAULT_EACH_ALLOCATION
    {
        struct agx_error *open_err = NULL, *write_err = NULL, *dir_err = NULL;
        int fd = agx_path_mkdirs(top, "a/b", 0700, NULL);

        ASSERT_OK(fd);
        (void)close(fd);
        ASSERT_OK(agx_path_write_file(top, "a/b/f", AGX_STR("x"), 0600, NULL));
        ASSERT_CODE(AGX_NOT_FOUND, agx_path_open(top, "a/none", O_RDONLY, 0, &open_err));
        ASSERT_TRUE(agx_path_write_file(top, "a/b", AGX_STR("x"), 0600, &write_err) < 0);
        ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_path_mkdirs(top, "..", 0700, &dir_err));
        ASSERT_TRUE(open_err && write_err && dir_err);
        agx_error_free(open_err);
        agx_error_free(write_err);
        agx_error_free(dir_err);
        ASSERT_OK(agx_path_remove_tree(top, "a/none/x", NULL));
    }
    (void)close(top);
    ASSERT_OK(agx_path_remove_tree(tmp, root + 5, NULL));
    (void)close(tmp);
}
