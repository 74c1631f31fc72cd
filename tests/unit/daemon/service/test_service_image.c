/* agentix.v1.ImageService, on an image store in a directory of the test. */
#include "tests/support/service.h"

#include "base/path.h"
#include "image/images.h"
#include "image/pull.h"
#include "tests/support/tar.h"
#include "wire/image_request.h"
#include "wire/image_wire.h"

#include <fcntl.h>
#include <stdlib.h>

#include "base/banned.h"

/* What the fixture's service is opened with; `change` of service_setup() has no argument for it. */
static struct {
    char dir[32];
    struct agx_images *images;
    struct agx_puller *puller;
    bool stopped;
} world;

static void open_world(struct agx_service_config *c)
{
    struct agx_images_config images = AGX_IMAGES_CONFIG_INIT;
    struct agx_puller_config puller = AGX_PULLER_CONFIG_INIT;

    snprintf(world.dir, sizeof(world.dir), "/tmp/agx-service-XXXXXX");
    ASSERT_NOT_NULL(mkdtemp(world.dir));
    images.dir = world.dir;
    images.import_max_bytes = 1 << 20;
    puller.tries = 1;
    world.stopped = false;
    ASSERT_OK(agx_images_open(c->loop, &images, &world.images, NULL));
    ASSERT_OK(agx_puller_open(c->loop, world.images, &puller, &world.puller, NULL));
    c->images = world.images;
    c->puller = world.puller;
}

static void on_stopped(void *user, struct agx_error *error)
{
    (void)user;
    ASSERT_NULL(error);
    world.stopped = true;
}

/* In the order of the daemon: calls end first, and with them imports and pulls. */
static void teardown(struct service_fixture *f)
{
    int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    rpc_client_close(&f->rpc.client);
    rpc_stop(&f->rpc, 0);
    test_loop_run(f->rpc.loop);
    world.puller = agx_puller_close(world.puller);
    agx_images_stop(world.images, on_stopped, NULL);
    test_loop_run(f->rpc.loop);
    ASSERT_TRUE(world.stopped);
    service_teardown(f);
    ASSERT_OK(agx_path_remove_tree(tmp, world.dir + strlen("/tmp/"), NULL));
    close(tmp);
}

static struct test_tar one_file(const char *name)
{
    struct test_tar tar = test_tar_new();

    test_tar_add(&tar, (struct test_tar_entry){ .name = name, .data = AGX_STR("text") });
    test_tar_end(&tar);
    return tar;
}

static void put(struct service_fixture *f, struct rpc_request *q, const char *name,
                struct agx_str bytes)
{
    _cleanup_buf_ struct agx_buf message = AGX_BUF_INIT((size_t)4 << 20);

    ASSERT_OK(agx_import_request_encode(&message, name, bytes));
    rpc_write(&f->rpc.client, q, agx_buf_peek(&message));
}

/* An image of one file; its id in f->reply's first image. */
static void import(struct service_fixture *f, const char *file, const char *name)
{
    struct test_tar tar = one_file(file);
    struct rpc_request q;

    rpc_start(&f->rpc.client, &q, AGX_METHOD_IMPORT_IMAGE, NULL);
    put(f, &q, name, agx_buf_peek(&tar.bytes));
    rpc_write_end(&f->rpc.client, &q);
    service_until_closed(f, &q);
    ASSERT_CSTR("0", q.grpc_status);
    agx_buf_clear(&f->reply);
    ASSERT_TRUE(rpc_read(&q, &f->reply));
    rpc_request_done(&q);
    test_tar_done(&tar);
}

static size_t count_images(struct service_fixture *f)
{
    struct agx_image_views v;
    struct rpc_request q;
    size_t n;

    ASSERT_INT(AGX_OK, service_call(f, &q, AGX_METHOD_LIST_IMAGES));
    ASSERT_OK(agx_image_views_decode(&v, agx_buf_peek(&f->reply), NULL));
    n = v.len;
    agx_image_views_done(&v);
    rpc_request_done(&q);
    return n;
}

TEST(image_that_was_imported_is_listed_and_displayed)
{
    struct agx_image_details d;
    struct agx_image_views v;
    struct service_fixture f;
    struct rpc_request q;

    service_setup(&f, open_world);
    ASSERT_UINT(0, count_images(&f));
    import(&f, "a", "tool:1");
    ASSERT_UINT(1, count_images(&f));
    ASSERT_INT(AGX_OK, service_call_id(&f, &q, AGX_METHOD_INSPECT_IMAGE, "tool:1"));
    ASSERT_OK(agx_image_views_decode(&v, agx_buf_peek(&f.reply), NULL));
    ASSERT_UINT(1, v.len);
    ASSERT_CSTR("docker.io/library/tool:1", v.items[0].names.items[0]);
    ASSERT_UINT(4, v.items[0].size_bytes);
    ASSERT_UINT(0, v.items[0].sandboxes);
    ASSERT_TRUE(v.items[0].added_at_ns > 0);
    ASSERT_OK(agx_image_details_decode(&d, agx_buf_peek(&f.reply), NULL));
    ASSERT_UINT(1, d.layers.len);
    agx_image_details_done(&d);
    agx_image_views_done(&v);
    rpc_request_done(&q);
    teardown(&f);
}

TEST(image_in_use_is_not_removed_until_it_is_free)
{
    struct agx_images_removed_view v;
    struct agx_image *image = NULL;
    struct service_fixture f;
    struct rpc_request q;

    service_setup(&f, open_world);
    import(&f, "a", "tool:1");
    ASSERT_OK(agx_images_find(world.images, AGX_STR("tool:1"), &image, NULL));
    agx_image_pin(image);
    ASSERT_INT(AGX_FAILED_PRECONDITION, service_call_id(&f, &q, AGX_METHOD_REMOVE_IMAGE, "tool:1"));
    ASSERT_TRUE(strlen(q.details) > 0);
    ASSERT_UINT(1, count_images(&f));
    rpc_request_done(&q);
    agx_image_unpin(image);
    image = agx_image_unref(image);
    ASSERT_INT(AGX_OK, service_call_id(&f, &q, AGX_METHOD_REMOVE_IMAGE, "tool:1"));
    ASSERT_OK(agx_images_removed_decode(&v, agx_buf_peek(&f.reply), NULL));
    ASSERT_UINT(1, v.names.len);
    ASSERT_UINT(1, v.ids.len);
    ASSERT_UINT(4, v.bytes);
    agx_images_removed_done(&v);
    ASSERT_UINT(0, count_images(&f));
    rpc_request_done(&q);
    teardown(&f);
}

TEST(prune_removes_what_has_neither_name_nor_sandbox)
{
    struct agx_images_removed_view v;
    struct service_fixture f;
    struct rpc_request q;

    service_setup(&f, open_world);
    import(&f, "a", "tool:1");
    import(&f, "b", "tool:1"); /* which takes the name */
    import(&f, "c", NULL);
    ASSERT_UINT(3, count_images(&f));
    ASSERT_INT(AGX_OK, service_call(&f, &q, AGX_METHOD_PRUNE_IMAGES));
    ASSERT_OK(agx_images_removed_decode(&v, agx_buf_peek(&f.reply), NULL));
    ASSERT_UINT(2, v.ids.len);
    agx_images_removed_done(&v);
    ASSERT_UINT(1, count_images(&f));
    rpc_request_done(&q);
    teardown(&f);
}

TEST(image_that_is_not_there_is_refused_with_a_reason)
{
    struct service_fixture f;
    struct rpc_request q;

    service_setup(&f, open_world);
    ASSERT_INT(AGX_NOT_FOUND, service_call_id(&f, &q, AGX_METHOD_INSPECT_IMAGE, "none"));
    service_refused(&q, AGX_NOT_FOUND, q.grpc_message, "IMAGE_NOT_FOUND", "image", "none");
    rpc_request_done(&q);
    ASSERT_INT(AGX_NOT_FOUND, service_call_id(&f, &q, AGX_METHOD_REMOVE_IMAGE, "none"));
    rpc_request_done(&q);
    ASSERT_INT(AGX_INVALID_ARGUMENT, service_call(&f, &q, AGX_METHOD_REMOVE_IMAGE));
    rpc_request_done(&q);
    teardown(&f);
}

TEST(import_that_its_client_gives_up_leaves_nothing)
{
    struct test_tar tar = one_file("a");
    struct service_fixture f;
    struct rpc_request q;

    service_setup(&f, open_world);
    rpc_start(&f.rpc.client, &q, AGX_METHOD_IMPORT_IMAGE, NULL);
    service_turns(&f, 3);
    service_cancel(&f, &q); /* before its first message */
    rpc_request_done(&q);
    rpc_start(&f.rpc.client, &q, AGX_METHOD_IMPORT_IMAGE, NULL);
    put(&f, &q, "tool:1", agx_buf_peek(&tar.bytes));
    service_turns(&f, 3);
    service_cancel(&f, &q);
    rpc_request_done(&q);
    ASSERT_UINT(0, count_images(&f));
    test_tar_done(&tar);
    teardown(&f);
}

TEST(import_under_way_ends_with_the_server)
{
    struct test_tar tar = one_file("a");
    struct service_fixture f;
    struct rpc_request q;

    service_setup(&f, open_world);
    rpc_start(&f.rpc.client, &q, AGX_METHOD_IMPORT_IMAGE, NULL);
    put(&f, &q, "tool:1", agx_buf_peek(&tar.bytes));
    service_turns(&f, 3);
    teardown(&f);
    rpc_request_done(&q);
    test_tar_done(&tar);
}

static void refused_import(struct service_fixture *f, const char *name, struct agx_str bytes,
                           enum agx_code code)
{
    struct rpc_request q;
    char number[8];

    rpc_start(&f->rpc.client, &q, AGX_METHOD_IMPORT_IMAGE, NULL);
    if (bytes.len > 0)
        put(f, &q, name, bytes);
    rpc_write_end(&f->rpc.client, &q);
    service_until_closed(f, &q);
    snprintf(number, sizeof(number), "%d", code);
    ASSERT_CSTR(number, q.grpc_status);
    rpc_request_done(&q);
    ASSERT_UINT(0, count_images(f));
}

TEST(import_of_what_is_no_image_is_refused)
{
    _cleanup_buf_ struct agx_buf large = AGX_BUF_INIT((size_t)2 << 20);
    struct test_tar tar = one_file("a");
    struct service_fixture f;

    service_setup(&f, open_world);
    refused_import(&f, NULL, AGX_STR(""), AGX_INVALID_ARGUMENT);
    refused_import(&f, NULL, AGX_STR("no archive"), AGX_INVALID_ARGUMENT);
    refused_import(&f, "NO NAME", agx_buf_peek(&tar.bytes), AGX_INVALID_ARGUMENT);
    ASSERT_OK(agx_buf_reserve(&large, (size_t)2 << 20));
    memset(large.data, 'x', (size_t)2 << 20);
    large.len = (size_t)2 << 20;
    refused_import(&f, NULL, agx_buf_peek(&large), AGX_RESOURCE_EXHAUSTED);
    test_tar_done(&tar);
    teardown(&f);
}

TEST(pull_that_cannot_be_is_refused_and_one_given_up_ends)
{
    struct service_fixture f;
    struct rpc_request q;

    service_setup(&f, open_world);
    ASSERT_INT(AGX_INVALID_ARGUMENT, service_call_id(&f, &q, AGX_METHOD_PULL_IMAGE, "NO NAME"));
    rpc_request_done(&q);
    /* Nobody listens at port 1. */
    ASSERT_INT(AGX_UNAVAILABLE, service_call_id(&f, &q, AGX_METHOD_PULL_IMAGE, "127.0.0.1:1/x"));
    service_refused(&q, AGX_UNAVAILABLE, q.grpc_message, "IMAGE_PULL_FAILED", "image",
                    "127.0.0.1:1/x");
    rpc_request_done(&q);
    ASSERT_OK(agx_buf_append(&f.message, AGX_STR("\x0a\x0d"
                                                 "127.0.0.1:1/x")));
    service_start(&f, &q, AGX_METHOD_PULL_IMAGE);
    service_turns(&f, 1);
    if (!q.closed)
        service_cancel(&f, &q);
    rpc_request_done(&q);
    teardown(&f);
}

TEST(service_without_a_store_has_no_images)
{
    struct service_fixture f;
    struct rpc_request q;

    service_setup(&f, NULL);
    ASSERT_INT(AGX_UNIMPLEMENTED, service_call(&f, &q, AGX_METHOD_LIST_IMAGES));
    rpc_request_done(&q);
    service_teardown(&f);
}
