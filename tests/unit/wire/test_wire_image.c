#include "tests/support/wire.h"
#include "tests/support/wire_image.h"
#include "wire/image_request.h"
#include "wire/sandbox_request.h"

static void same_image(const struct agx_image_view *a, const struct agx_image_view *b)
{
    ASSERT_CSTR(agx_text(a->id), agx_text(b->id));
    ASSERT_TRUE(agx_words_eq(&a->names, &b->names));
    ASSERT_CSTR(agx_text(a->digest), agx_text(b->digest));
    ASSERT_INT(a->added_at_ns, b->added_at_ns);
    ASSERT_UINT(a->size_bytes, b->size_bytes);
    ASSERT_UINT(a->sandboxes, b->sandboxes);
}

TEST(images_one_behind_the_other_are_a_list)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(WIRE_OUT_MAX);
    const struct agx_image_view image = wire_image(), bare = { .id = (char *)"sha256:00" };
    struct agx_image_views v;

    ASSERT_OK(agx_image_views_decode(&v, AGX_STR(""), NULL));
    ASSERT_UINT(0, v.len);
    ASSERT_OK(agx_reply_image(&out, &image));
    ASSERT_OK(agx_reply_image(&out, &bare));
    ASSERT_OK(agx_image_views_decode(&v, agx_buf_peek(&out), NULL));
    ASSERT_UINT(2, v.len);
    same_image(&image, &v.items[0]);
    same_image(&bare, &v.items[1]);
    ASSERT_NULL(v.items[1].digest);
    agx_image_views_done(&v);
    agx_image_views_done(NULL);
}

TEST(image_and_its_details_are_one_answer)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(WIRE_OUT_MAX);
    const struct agx_image_details d = wire_image_details();
    const struct agx_image_view image = wire_image();
    struct agx_image_details back;
    struct agx_image_views v;

    ASSERT_OK(agx_reply_image(&out, &image));
    ASSERT_OK(agx_reply_image_details(&out, &d));
    ASSERT_OK(agx_image_views_decode(&v, agx_buf_peek(&out), NULL));
    ASSERT_UINT(1, v.len);
    ASSERT_OK(agx_image_details_decode(&back, agx_buf_peek(&out), NULL));
    ASSERT_CSTR(d.user, back.user);
    ASSERT_CSTR(d.working_dir, back.working_dir);
    ASSERT_CSTR(d.stop_signal, back.stop_signal);
    ASSERT_CSTR(d.architecture, back.architecture);
    ASSERT_CSTR(d.created, back.created);
    ASSERT_TRUE(agx_words_eq(&d.env, &back.env));
    ASSERT_TRUE(agx_words_eq(&d.entrypoint, &back.entrypoint));
    ASSERT_TRUE(agx_words_eq(&d.command, &back.command));
    ASSERT_TRUE(agx_words_eq(&d.exposed_ports, &back.exposed_ports));
    ASSERT_TRUE(agx_words_eq(&d.layers, &back.layers));
    ASSERT_TRUE(test_pairs_eq(&d.labels, &back.labels));
    ASSERT_TRUE(back.healthcheck.set);
    ASSERT_TRUE(agx_words_eq(&d.healthcheck.test, &back.healthcheck.test));
    ASSERT_INT(1500000000, back.healthcheck.interval_ns);
    ASSERT_INT(AGX_NS_UNSET, back.healthcheck.timeout_ns);
    ASSERT_UINT(4, back.healthcheck.retries);
    agx_image_details_done(&back);
    agx_image_details_done(NULL);
    agx_image_views_done(&v);
}

TEST(pull_tells_how_far_it_is_and_then_the_image)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(WIRE_OUT_MAX);
    const struct agx_pull pull = { "python:3.13", 1, 2, 3, 4 };
    const struct agx_image_view image = wire_image();
    struct agx_pull_view v;

    ASSERT_OK(agx_reply_image_pull(&out, &pull));
    ASSERT_INT(1, agx_image_pull_decode(&v, agx_buf_peek(&out), NULL));
    ASSERT_CSTR("python:3.13", v.pull.image);
    ASSERT_UINT(1, v.pull.layers_done);
    ASSERT_UINT(2, v.pull.layers_total);
    ASSERT_UINT(3, v.pull.bytes_done);
    ASSERT_UINT(4, v.pull.bytes_total);
    agx_pull_view_done(&v);
    agx_buf_clear(&out);
    ASSERT_OK(agx_reply_image(&out, &image));
    ASSERT_INT(0, agx_image_pull_decode(&v, agx_buf_peek(&out), NULL));
}

TEST(what_was_removed_is_told)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(WIRE_OUT_MAX);
    const struct agx_images_removed_view v = wire_images_removed();
    struct agx_images_removed_view back;
    struct agx_error *err = NULL;

    ASSERT_OK(agx_reply_images_removed(&out, &v));
    ASSERT_OK(agx_images_removed_decode(&back, agx_buf_peek(&out), NULL));
    ASSERT_TRUE(agx_words_eq(&v.names, &back.names));
    ASSERT_TRUE(agx_words_eq(&v.ids, &back.ids));
    ASSERT_UINT(12345, back.bytes);
    agx_images_removed_done(&back);
    ASSERT_CODE(AGX_INTERNAL, agx_images_removed_decode(&back, AGX_STR(""), &err));
    ASSERT_MESSAGE(err, "removed is missing");
    agx_error_free(err);
    agx_images_removed_done(NULL);
}

TEST(request_names_an_image)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(WIRE_OUT_MAX);
    struct agx_error *err = NULL;
    char *image = NULL;

    ASSERT_OK(agx_id_encode(&out, "python:3.13"));
    ASSERT_OK(agx_image_ref_decode(agx_buf_peek(&out), &image, NULL));
    ASSERT_CSTR("python:3.13", image);
    free(image);
    image = NULL;
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_image_ref_decode(AGX_STR(""), &image, &err));
    ASSERT_MESSAGE(err, "image is required");
    err = agx_error_free(err);
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_image_ref_decode(AGX_STR("\x0a\x01\xff"), &image, &err));
    ASSERT_MESSAGE(err, "image is not UTF-8");
    agx_error_free(err);
    ASSERT_NULL(image);
}

TEST(import_request_borrows_its_bytes)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(WIRE_OUT_MAX);
    struct agx_import_request q;
    struct agx_error *err = NULL;

    ASSERT_OK(agx_import_request_encode(&out, "tool:1", AGX_STR("\0\xff tar")));
    ASSERT_OK(agx_import_request_decode(&q, agx_buf_peek(&out), NULL));
    ASSERT_STR(AGX_STR("tool:1"), q.name);
    ASSERT_STR(AGX_STR("\0\xff tar"), q.data);
    ASSERT_TRUE((const uint8_t *)q.data.ptr > out.data &&
                (const uint8_t *)q.data.ptr < out.data + out.len);
    agx_buf_clear(&out);
    ASSERT_OK(agx_import_request_encode(&out, NULL, AGX_STR("")));
    ASSERT_UINT(0, out.len);
    ASSERT_OK(agx_import_request_decode(&q, agx_buf_peek(&out), NULL));
    ASSERT_UINT(0, q.name.len);
    ASSERT_UINT(0, q.data.len);
    /* A name that is none, and bytes that end in the middle. */
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_import_request_decode(&q, AGX_STR("\x0a\x01\xff"), &err));
    ASSERT_MESSAGE(err, "name is not UTF-8");
    err = agx_error_free(err);
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_import_request_decode(&q, AGX_STR("\x12\x05tar"), &err));
    ASSERT_MESSAGE(err, "malformed");
    agx_error_free(err);
}
