/* Layers and configurations of images, with each allocation failing in turn. */
#include "base/path.h"
#include "image/image.h"
#include "image/unpack.h"
#include "tests/support/fault.h"
#include "tests/support/tar.h"

#include <fcntl.h>
#include <sys/stat.h>

TEST(image_config_without_memory_is_resource_exhausted)
{
    static const char text[] =
        "{\"os\":\"linux\",\"created\":\"2026-01-01T00:00:00Z\",\"config\":{\"User\":\"me\","
        "\"WorkingDir\":\"app\","
        "\"Env\":[\"A=b\",\"C=d\"],\"Entrypoint\":[\"/"
        "e\"],\"Cmd\":[\"c\"],\"Labels\":{\"k\":\"v\"},"
        "\"ExposedPorts\":{\"80/tcp\":{}},\"Healthcheck\":{\"Test\":[\"CMD\",\"x\"]}},"
        "\"rootfs\":{\"diff_ids\":[]}}";

    FAULT_EACH_ALLOCATION
    {
        struct agx_image_config c;
        int r = agx_image_config_parse(&c, agx_str_from(text), NULL);

        ASSERT_TRUE(r == 0 || r == -AGX_RESOURCE_EXHAUSTED);
        if (r == 0)
            agx_image_config_done(&c);
    }
}

struct input {
    const struct test_tar *tar;
    size_t given;
};

static ssize_t give(void *user, void *buf, size_t size, struct agx_error **err)
{
    struct input *in = user;
    size_t n = AGX_MIN(size, in->tar->bytes.len - in->given);

    (void)err;
    memcpy(buf, in->tar->bytes.data + in->given, n);
    in->given += n;
    return (ssize_t)n;
}

TEST(unpack_without_memory_is_resource_exhausted)
{
    char dir[] = "/tmp/agx-fault-unpack-XXXXXX";
    struct test_tar tar = test_tar_new();
    int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC), root;

    test_tar_add(&tar, (struct test_tar_entry){ .name = "a/", .type = '5', .mode = 0755 });
    test_tar_add(&tar, (struct test_tar_entry){ .name = "a/b", .data = AGX_STR("text") });
    test_tar_add(&tar, (struct test_tar_entry){ .name = "a/c", .type = '1', .link = "a/b" });
    test_tar_end(&tar);
    ASSERT_NOT_NULL(mkdtemp(dir));
    root = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    FAULT_EACH_ALLOCATION
    {
        struct input in = { &tar, 0 };
        const struct agx_unpack_params p = { .read = give,
                                             .user = &in,
                                             .limits = AGX_UNPACK_LIMITS_INIT };
        struct agx_unpack_result result;
        int r = agx_unpack(root, &p, &result, NULL);

        ASSERT_TRUE(r == 0 || r == -AGX_RESOURCE_EXHAUSTED);
    }
    close(root);
    ASSERT_OK(agx_path_remove_tree(tmp, dir + strlen("/tmp/"), NULL));
    close(tmp);
    test_tar_done(&tar);
}
