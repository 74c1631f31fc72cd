#include "image/pull.h"
#include "tests/support/httpd.h"
#include "tests/support/images.h"

/* An engine that has one image, and who wants it. */
struct fixture {
    struct test_images *t;
    struct test_httpd *httpd;
    struct agx_puller *puller;
    struct agx_puller_config config;
    struct agx_fetch_endpoint engine;
    struct test_tar archive; /* what it saves */
    char id[AGX_DIGEST_SIZE];
    bool held, cut;
    unsigned n_asked;
    char target[200];
    struct agx_puller_want *want;
    unsigned n_done, n_progress;
    struct agx_image *image;
    enum agx_code code;
    char error[700];
};

static void serve(void *user, const struct test_httpd_request *q)
{
    struct fixture *f = user;
    char head[100];

    f->n_asked++;
    (void)snprintf(f->target, sizeof(f->target), "%.*s", AGX_STR_ARG(q->target));
    if (f->held)
        return;
    if (strstr(f->target, "missing")) {
        test_httpd_answer(q->conn, 404, "{\"message\":\"no such image\\u001b\"}");
        return;
    }
    if (strstr(f->target, "broken")) {
        test_httpd_answer(q->conn, 500, "oh");
        return;
    }
    (void)snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n",
                   f->archive.bytes.len);
    test_httpd_send(q->conn, agx_str_from(head));
    if (f->cut) {
        test_httpd_send(q->conn, agx_str_bytes(f->archive.bytes.data, f->archive.bytes.len / 2));
        test_httpd_hang_up(q->conn);
        return;
    }
    test_httpd_send(q->conn, agx_buf_peek(&f->archive.bytes));
}

/* As `docker save` writes it, with one file in one layer. */
static void save(struct fixture *f, const char *file, const char *text)
{
    struct test_tar layer = test_images_tar(file, text);
    char diff_id[AGX_DIGEST_SIZE], config[300], name[100], manifest[400];

    test_digest_of(agx_buf_peek(&layer.bytes), diff_id);
    (void)snprintf(config, sizeof(config),
                   "{\"os\":\"linux\",\"config\":{},\"rootfs\":{\"diff_ids\":[\"%s\"]}}", diff_id);
    test_digest_of(agx_str_from(config), f->id);
    (void)snprintf(name, sizeof(name), "%s.json", f->id + strlen("sha256:"));
    (void)snprintf(manifest, sizeof(manifest),
                   "[{\"Config\":\"%s\",\"RepoTags\":[\"other:1\"],\"Layers\":[\"l/layer.tar\"]}]",
                   name);
    f->archive = test_tar_new();
    test_tar_add(&f->archive, (struct test_tar_entry){ .name = "l/layer.tar",
                                                       .data = agx_buf_peek(&layer.bytes) });
    test_tar_add(&f->archive,
                 (struct test_tar_entry){ .name = name, .data = agx_str_from(config) });
    test_tar_add(&f->archive, (struct test_tar_entry){ .name = "manifest.json",
                                                       .data = agx_str_from(manifest) });
    test_tar_end(&f->archive);
    test_tar_done(&layer);
}

static void on_progress(void *user, const struct agx_pull *p)
{
    struct fixture *f = user;

    ASSERT_TRUE(strncmp(p->image, "docker-daemon:", 14) == 0);
    f->n_progress++;
}

static void on_done(void *user, struct agx_image *image, struct agx_error *error)
{
    struct fixture *f = user;

    f->n_done++;
    f->code = error ? error->code : AGX_OK;
    ASSERT_INT(!error, image != NULL);
    f->image = image ? agx_image_ref(image) : NULL;
    if (error)
        agx_error_format(error, f->error, sizeof(f->error));
    agx_error_free(error);
}

static const struct agx_puller_ops ops = { on_progress, on_done };

static void setup(struct fixture *f)
{
    *f = (struct fixture){ .t = test_images_new(), .config = AGX_PULLER_CONFIG_INIT };
    f->httpd = test_httpd_open(f->t->loop, false, serve, f);
    f->engine = (struct agx_fetch_endpoint){ .unix_socket = test_httpd_where(f->httpd),
                                             .base = "http://engine" };
    f->config.engine = &f->engine;
    ASSERT_OK(agx_puller_open(f->t->loop, f->t->images, &f->config, &f->puller, NULL));
    save(f, "a", "text");
}

static void teardown(struct fixture *f)
{
    f->puller = agx_puller_close(f->puller);
    f->httpd = test_httpd_close(f->httpd);
    f->image = agx_image_unref(f->image);
    test_images_free(f->t);
    test_tar_done(&f->archive);
}

static void start(struct fixture *f, bool always, const char *ref)
{
    f->image = agx_image_unref(f->image);
    f->n_done = f->n_progress = 0;
    f->error[0] = '\0';
    ASSERT_OK(
        (always ? agx_puller_pull : agx_puller_ensure)(f->puller, ref, &ops, f, &f->want, NULL));
    ASSERT_UINT(0, f->n_done);
}

#define UNTIL(f, condition)                                                                        \
    while (!(condition))                                                                           \
    (void)uv_run(agx_loop_uv((f)->t->loop), UV_RUN_ONCE)

static void run(struct fixture *f, bool always, const char *ref)
{
    start(f, always, ref);
    UNTIL(f, f->n_done > 0);
    ASSERT_UINT(1, f->n_done);
}

static void refuse(struct fixture *f, enum agx_code code, const char *words, const char *ref)
{
    run(f, true, ref);
    ASSERT_INT(code, f->code);
    if (!strstr(f->error, words))
        FAIL("'%s' is not in '%s'", words, f->error);
}

TEST(pull_from_an_engine_brings_the_image_under_its_name)
{
    struct fixture f;

    setup(&f);
    run(&f, false, "docker-daemon:tool:1");
    ASSERT_CSTR("", f.error);
    ASSERT_CSTR("/images/docker.io/library/tool:1/get", f.target);
    ASSERT_CSTR(f.id, f.image->id);
    ASSERT_TRUE(test_images_has_file(f.image, 0, "a"));
    ASSERT_TRUE(f.image == test_images_find(f.t, "tool:1"));
    ASSERT_NULL(test_images_find(f.t, "other:1"));
    ASSERT_TRUE(f.n_progress > 0);
    /* It is there now, whoever is named as its source; and asked for again by pull(). */
    run(&f, false, "docker-daemon:tool:1");
    ASSERT_UINT(1, f.n_asked);
    run(&f, true, "docker-daemon:tool:1");
    ASSERT_UINT(2, f.n_asked);
    teardown(&f);
}

TEST(pull_from_an_engine_by_id_has_the_names_that_came)
{
    struct fixture f;
    char ref[100];

    setup(&f);
    (void)snprintf(ref, sizeof(ref), "docker-daemon:%s", f.id);
    run(&f, false, ref);
    ASSERT_INT(AGX_OK, f.code);
    ASSERT_CSTR(f.id, f.image->id);
    ASSERT_NOT_NULL(test_images_find(f.t, "other:1"));
    teardown(&f);
}

TEST(pull_from_an_engine_that_has_not_got_it_or_is_away_says_so)
{
    struct fixture f;

    setup(&f);
    refuse(&f, AGX_NOT_FOUND,
           "pull image 'docker-daemon:missing': the Docker Engine answers 404: no such image",
           "docker-daemon:missing");
    ASSERT_NULL(strchr(f.error, 0x1b));
    refuse(&f, AGX_UNAVAILABLE, "the Docker Engine answers 500", "docker-daemon:broken");
    f.cut = true;
    refuse(&f, AGX_UNAVAILABLE, "ask the Docker Engine", "docker-daemon:tool");
    test_httpd_away(f.httpd);
    refuse(&f, AGX_UNAVAILABLE, "ask the Docker Engine", "docker-daemon:tool");
    teardown(&f);
}

TEST(pull_from_an_engine_that_sends_something_else_is_refused)
{
    struct fixture f;

    setup(&f);
    agx_buf_clear(&f.archive.bytes);
    ASSERT_OK(agx_buf_append(&f.archive.bytes, AGX_STR("this is no tar")));
    run(&f, true, "docker-daemon:tool");
    ASSERT_TRUE(f.code != AGX_OK);
    ASSERT_NULL(test_images_find(f.t, "tool"));
    teardown(&f);
}

TEST(pull_from_an_engine_without_one_says_why_there_is_none)
{
    struct agx_puller_want *want = NULL;
    struct fixture f;

    setup(&f);
    f.puller = agx_puller_close(f.puller);
    f.config.engine = NULL;
    ASSERT_OK(agx_puller_open(f.t->loop, f.t->images, &f.config, &f.puller, NULL));
    refuse(&f, AGX_FAILED_PRECONDITION, "there is no Docker Engine", "docker-daemon:tool");
    f.puller = agx_puller_close(f.puller);
    f.config.no_engine = "ssh:// is not known";
    ASSERT_OK(agx_puller_open(f.t->loop, f.t->images, &f.config, &f.puller, NULL));
    refuse(&f, AGX_FAILED_PRECONDITION, "no Docker Engine: ssh:// is not known",
           "docker-daemon:tool");
    ASSERT_CODE(AGX_INVALID_ARGUMENT,
                agx_puller_pull(f.puller, "docker-daemon:No Name", &ops, &f, &want, NULL));
    teardown(&f);
}

TEST(pull_from_an_engine_that_is_cancelled_or_closed_is_not_told)
{
    struct fixture f;

    setup(&f);
    f.held = true;
    start(&f, true, "docker-daemon:tool");
    UNTIL(&f, f.n_asked == 1);
    agx_puller_cancel(f.want);
    UNTIL(&f, test_httpd_open_conns(f.httpd) == 0);
    start(&f, true, "docker-daemon:tool");
    UNTIL(&f, f.n_asked == 2);
    teardown(&f);
    ASSERT_UINT(0, f.n_done);
}

TEST(pull_from_an_engine_of_a_large_image_waits_for_the_disk)
{
    size_t size = (size_t)24 << 20;
    char *text = malloc(size + 1);
    struct fixture f;

    ASSERT_NOT_NULL(text);
    memset(text, 'x', size);
    text[size] = '\0';
    setup(&f);
    test_tar_done(&f.archive);
    save(&f, "large", text);
    run(&f, true, "docker-daemon:tool");
    ASSERT_CSTR("", f.error);
    ASSERT_UINT(size, f.image->size);
    teardown(&f);
    free(text);
}
