#include "backend/program_path.h"
#include "base/path.h"
#include "tests/support/test.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

struct tree {
    char root[32];
    char program[64], found[96];
    int fd;
};

static void setup(struct tree *t)
{
    *t = (struct tree){ .root = "/tmp/agx-init-XXXXXX" };
    ASSERT_NOT_NULL(mkdtemp(t->root));
    (void)snprintf(t->program, sizeof(t->program), "%s/bin/agentixd", t->root);
    t->fd = open(t->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ASSERT_OK(t->fd);
    agx_closep(&(int){ agx_path_mkdirs(t->fd, "bin", 0755, NULL) });
    agx_closep(&(int){ agx_path_mkdirs(t->fd, "lib/agentix", 0755, NULL) });
}

static void teardown(struct tree *t)
{
    _cleanup_close_ int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    close(t->fd);
    ASSERT_OK(agx_path_remove_tree(tmp, t->root + strlen("/tmp/"), NULL));
}

static void put(const struct tree *t, const char *path, mode_t mode)
{
    ASSERT_OK(agx_path_write_file(t->fd, path, AGX_STR("x"), mode, NULL));
}

/* It is found at this path beneath the root. */
static void finds(struct tree *t, const char *want)
{
    _cleanup_free_ char *path = NULL;

    (void)snprintf(t->found, sizeof(t->found), "%s/%s", t->root, want);
    ASSERT_OK(agx_program_path_find("agentix-init", NULL, t->program, &path, NULL));
    ASSERT_CSTR(t->found, path);
}

TEST(program_path_is_beside_the_program_or_where_it_is_installed)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    char *path = NULL;
    struct tree t;

    setup(&t);
    ASSERT_CODE(AGX_FAILED_PRECONDITION,
                agx_program_path_find("agentix-init", "", t.program, &path, &err));
    ASSERT_MESSAGE(err, "agentix-init was found neither");
    ASSERT_MESSAGE(err, t.program);
    put(&t, "lib/agentix/agentix-init", 0755);
    finds(&t, "lib/agentix/agentix-init");
    put(&t, "bin/agentix-init", 0644);
    finds(&t, "lib/agentix/agentix-init");
    put(&t, "bin/agentix-init", 0755);
    finds(&t, "bin/agentix-init");
    teardown(&t);
}

TEST(program_path_that_is_named_is_taken_or_refused)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    _cleanup_free_ char *path = NULL;
    char named[64];
    struct tree t;

    setup(&t);
    (void)snprintf(named, sizeof(named), "%s/other", t.root);
    put(&t, "bin/agentix-init", 0755);
    ASSERT_CODE(AGX_FAILED_PRECONDITION,
                agx_program_path_find("agentix-init", named, t.program, &path, &err));
    ASSERT_MESSAGE(err, named);
    ASSERT_OK(symlinkat("bin/agentix-init", t.fd, "other"));
    ASSERT_OK(agx_program_path_find("agentix-init", named, t.program, &path, NULL));
    ASSERT_NOT_NULL(strstr(path, "/bin/agentix-init"));
    teardown(&t);
}
