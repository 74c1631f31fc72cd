#include "image/manifest.h"
#include "image/pull.h"
#include "tests/support/httpd.h"
#include "tests/support/images.h"

enum { THINGS_MAX = 24, WANTS_MAX = 4 };

/* Something that the registry has. */
struct thing {
    char path[160]; /* "blobs/sha256:...", behind the repository */
    struct agx_buf bytes;
    unsigned n_asked, n_ranges;
    bool held;     /* not answered; the connection is kept in `conn` */
    bool cut_once; /* half of it, once */
    struct test_httpd_conn *conn;
};

struct want {
    struct fixture *f;
    struct agx_puller_want *want;
    unsigned n_done, n_progress;
    struct agx_pull progress; /* the last */
    struct agx_image *image;
    enum agx_code code;
    char error[700];
    bool cancel_in_progress, close_in_progress, close_in_done;
};

struct fixture {
    struct test_images *t;
    struct test_httpd *httpd;
    struct agx_puller *puller;
    struct agx_puller_config config;
    char host[64];
    struct thing things[THINGS_MAX];
    size_t n_things;
    const char *authorization; /* "Basic ..."; NULL: none is asked for */
    struct want wants[WANTS_MAX];
};

/* ---- the registry ---- */

static struct thing *find(struct fixture *f, struct agx_str path)
{
    for (size_t i = 0; i < f->n_things; i++)
        if (agx_str_eq(path, agx_str_from(f->things[i].path)))
            return &f->things[i];
    return NULL;
}

static void answer(struct thing *t, struct test_httpd_conn *conn, struct agx_str range)
{
    struct agx_str bytes = agx_buf_peek(&t->bytes);
    uint64_t from = 0;
    char head[200];

    if (agx_str_starts(range, AGX_STR("bytes="))) {
        range = agx_str_skip(range, strlen("bytes="));
        range.len--;
        ASSERT_TRUE(agx_parse_u64(range, bytes.len, &from));
        t->n_ranges++;
    }
    (void)snprintf(head, sizeof(head),
                   "HTTP/1.1 %s\r\nContent-Length: %zu\r\nContent-Range: bytes %zu-%zu/%zu\r\n\r\n",
                   from ? "206 Part" : "200 OK", bytes.len - (size_t)from, (size_t)from,
                   bytes.len - 1, bytes.len);
    test_httpd_send(conn, agx_str_from(head));
    bytes = agx_str_skip(bytes, (size_t)from);
    if (t->cut_once) {
        t->cut_once = false;
        bytes.len /= 2;
        test_httpd_send(conn, bytes);
        test_httpd_hang_up(conn);
        return;
    }
    test_httpd_send(conn, bytes);
}

static void serve(void *user, const struct test_httpd_request *q)
{
    static const char refusal[] =
        "HTTP/1.1 401 X\r\nWWW-Authenticate: Basic realm=\"r\"\r\nContent-Length: 0\r\n\r\n";
    struct fixture *f = user;
    struct agx_str path = q->path;
    struct thing *t;

    if (f->authorization &&
        !agx_str_eq(test_httpd_header(q, "Authorization"), agx_str_from(f->authorization))) {
        test_httpd_send(q->conn, agx_str_from(refusal));
        return;
    }
    ASSERT_TRUE(agx_str_starts(path, AGX_STR("/v2/")));
    path = agx_str_skip(path, strlen("/v2/"));
    path = agx_str_skip(path, agx_str_find(path, '/') + 1); /* one word is the repository */
    t = find(f, path);
    if (!t) {
        test_httpd_answer(q->conn, 404, "{\"errors\":[{\"message\":\"unknown here\"}]}");
        return;
    }
    t->n_asked++;
    t->conn = q->conn;
    if (!t->held)
        answer(t, q->conn, test_httpd_header(q, "Range"));
}

static struct thing *add_thing(struct fixture *f, const char *path, struct agx_str bytes)
{
    struct thing *t = &f->things[f->n_things];

    ASSERT_TRUE(f->n_things++ < THINGS_MAX);
    (void)snprintf(t->path, sizeof(t->path), "%s", path);
    t->bytes = (struct agx_buf)AGX_BUF_INIT(1 << 20);
    ASSERT_OK(agx_buf_append(&t->bytes, bytes));
    return t;
}

static struct thing *add_blob(struct fixture *f, struct agx_str bytes, char digest[AGX_DIGEST_SIZE])
{
    char path[160];
    struct thing *t;

    (void)snprintf(path, sizeof(path), "blobs/%s", test_digest_of(bytes, digest));
    t = find(f, agx_str_from(path));
    return t ? t : add_thing(f, path, bytes);
}

/* A layer with one file: its blob. */
static struct thing *add_layer(struct fixture *f, const char *file, char digest[AGX_DIGEST_SIZE])
{
    struct test_tar tar = test_images_tar(file, file);
    struct thing *t = add_blob(f, agx_buf_peek(&tar.bytes), digest);

    test_tar_done(&tar);
    return t;
}

/* The parts of an image of these files, each a layer, with the manifest under a tag. */
struct parts {
    struct thing *layers[3], *config, *manifest, *by_digest;
    char diff_ids[3][AGX_DIGEST_SIZE], config_digest[AGX_DIGEST_SIZE];
    char digest[AGX_DIGEST_SIZE]; /* of the manifest */
};

static void add_manifest(struct fixture *f, struct parts *p, const char *tag, const char *text)
{
    char path[160];

    test_digest_of(agx_str_from(text), p->digest);
    (void)snprintf(path, sizeof(path), "manifests/%s", tag);
    p->manifest = add_thing(f, path, agx_str_from(text));
    (void)snprintf(path, sizeof(path), "manifests/%s", p->digest);
    p->by_digest = add_thing(f, path, agx_str_from(text));
}

static struct parts add_image(struct fixture *f, const char *tag, const char *const *files)
{
    struct agx_buf config = AGX_BUF_INIT(4096), manifest = AGX_BUF_INIT(4096);
    struct parts p = { 0 };
    size_t n = 0;

    ASSERT_OK(agx_buf_printf(&config,
                             "{\"os\":\"linux\",\"config\":{\"User\":\"%s\"},"
                             "\"rootfs\":{\"diff_ids\":[",
                             tag));
    for (; files[n]; n++) {
        p.layers[n] = add_layer(f, files[n], p.diff_ids[n]);
        ASSERT_OK(agx_buf_printf(&config, "%s\"%s\"", n ? "," : "", p.diff_ids[n]));
    }
    ASSERT_OK(agx_buf_append(&config, AGX_STR("]}}")));
    p.config = add_blob(f, agx_buf_peek(&config), p.config_digest);
    ASSERT_OK(agx_buf_printf(&manifest,
                             "{\"schemaVersion\":2,\"config\":{\"digest\":\"%s\",\"size\":%zu},"
                             "\"layers\":[",
                             p.config_digest, config.len));
    for (size_t i = 0; i < n; i++)
        ASSERT_OK(agx_buf_printf(&manifest, "%s{\"digest\":\"%s\",\"size\":%zu}", i ? "," : "",
                                 p.diff_ids[i], p.layers[i]->bytes.len));
    ASSERT_OK(agx_buf_append(&manifest, AGX_STR("]}")));
    ASSERT_OK(agx_buf_push(&manifest, 0));
    add_manifest(f, &p, tag, (char *)manifest.data);
    agx_buf_done(&config);
    agx_buf_done(&manifest);
    return p;
}

#define FILES(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* ---- who wants ---- */

static void on_progress(void *user, const struct agx_pull *p)
{
    struct want *w = user;

    w->n_progress++;
    w->progress = *p;
    if (w->cancel_in_progress)
        agx_puller_cancel(w->want);
    if (w->close_in_progress)
        w->f->puller = agx_puller_close(w->f->puller);
}

static void on_done(void *user, struct agx_image *image, struct agx_error *error)
{
    struct want *w = user;

    w->n_done++;
    w->code = error ? error->code : AGX_OK;
    ASSERT_INT(!error, image != NULL);
    w->image = image ? agx_image_ref(image) : NULL;
    if (error)
        agx_error_format(error, w->error, sizeof(w->error));
    agx_error_free(error);
    if (w->close_in_done)
        w->f->puller = agx_puller_close(w->f->puller);
}

static const struct agx_puller_ops ops = { on_progress, on_done };

static void setup(struct fixture *f)
{
    *f = (struct fixture){ .t = test_images_new(), .config = AGX_PULLER_CONFIG_INIT };
    f->httpd = test_httpd_open(f->t->loop, true, serve, f);
    (void)snprintf(f->host, sizeof(f->host), "%s", test_httpd_where(f->httpd) + strlen("http://"));
    f->config.retry_ms = 1;
    ASSERT_OK(agx_puller_open(f->t->loop, f->t->images, &f->config, &f->puller, NULL));
}

static void reopen(struct fixture *f)
{
    f->puller = agx_puller_close(f->puller);
    ASSERT_OK(agx_puller_open(f->t->loop, f->t->images, &f->config, &f->puller, NULL));
}

static void teardown(struct fixture *f)
{
    f->puller = agx_puller_close(f->puller);
    f->httpd = test_httpd_close(f->httpd);
    for (size_t i = 0; i < WANTS_MAX; i++)
        f->wants[i].image = agx_image_unref(f->wants[i].image);
    test_images_free(f->t);
    for (size_t i = 0; i < f->n_things; i++)
        agx_buf_done(&f->things[i].bytes);
}

/* "x:tag" of our registry. */
static const char *name(const struct fixture *f, const char *rest)
{
    static char text[300];

    (void)snprintf(text, sizeof(text), "%s/%s", f->host, rest);
    return text;
}

static struct want *start(struct fixture *f, size_t i, bool always, const char *rest)
{
    struct want *w = &f->wants[i];

    agx_image_unref(w->image);
    *w = (struct want){ .f = f,
                        .cancel_in_progress = w->cancel_in_progress,
                        .close_in_progress = w->close_in_progress,
                        .close_in_done = w->close_in_done };
    ASSERT_OK((always ? agx_puller_pull : agx_puller_ensure)(f->puller, name(f, rest), &ops, w,
                                                             &w->want, NULL));
    ASSERT_UINT(0, w->n_done + w->n_progress);
    return w;
}

#define UNTIL(f, condition)                                                                        \
    while (!(condition))                                                                           \
    (void)uv_run(agx_loop_uv((f)->t->loop), UV_RUN_ONCE)

static struct want *run(struct fixture *f, bool always, const char *rest)
{
    struct want *w = start(f, 0, always, rest);

    UNTIL(f, w->n_done > 0);
    return w;
}

static void refuse(struct fixture *f, enum agx_code code, const char *words, const char *rest)
{
    const struct want *w = run(f, false, rest);

    ASSERT_INT(code, w->code);
    if (!strstr(w->error, words))
        FAIL("'%s' is not in '%s'", words, w->error);
    ASSERT_NOT_NULL(strstr(w->error, "pull image '"));
    ASSERT_NULL(test_images_find(f->t, name(f, rest)));
}

/* ---- what there is ---- */

TEST(pull_brings_an_image_with_all_its_layers)
{
    struct fixture f;
    struct parts p;
    const struct want *w;

    setup(&f);
    p = add_image(&f, "one", FILES("a", "b", "c"));
    w = run(&f, false, "x:one");
    ASSERT_INT(AGX_OK, w->code);
    ASSERT_CSTR(p.config_digest, w->image->id);
    ASSERT_CSTR(p.digest, w->image->digest);
    ASSERT_CSTR("one", w->image->config.user);
    ASSERT_UINT(3, w->image->layers.len);
    ASSERT_TRUE(test_images_has_file(w->image, 0, "c")); /* the top one first */
    ASSERT_TRUE(test_images_has_file(w->image, 2, "a"));
    ASSERT_TRUE(w->image == test_images_find(f.t, name(&f, "x:one")));
    ASSERT_TRUE(w->n_progress > 0);
    ASSERT_UINT(1, p.layers[0]->n_asked);
    teardown(&f);
}

TEST(pull_tells_how_far_it_is_while_the_bytes_of_a_layer_come)
{
    struct fixture f;
    struct parts p;
    const struct want *w;
    struct agx_str bytes;
    char head[100];

    setup(&f);
    p = add_image(&f, "one", FILES("a"));
    p.layers[0]->held = true;
    w = start(&f, 0, false, "x:one");
    UNTIL(&f, p.layers[0]->conn);
    bytes = agx_buf_peek(&p.layers[0]->bytes);
    (void)snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", bytes.len);
    test_httpd_send(p.layers[0]->conn, agx_str_from(head));
    test_httpd_send(p.layers[0]->conn, (struct agx_str){ bytes.ptr, 100 });
    UNTIL(&f, w->progress.bytes_done == 100);
    ASSERT_UINT(bytes.len, w->progress.bytes_total);
    ASSERT_UINT(1, w->progress.layers_total);
    ASSERT_UINT(0, w->progress.layers_done);
    test_httpd_send(p.layers[0]->conn, agx_str_skip(bytes, 100));
    UNTIL(&f, w->n_done > 0);
    ASSERT_INT(AGX_OK, w->code);
    teardown(&f);
}

TEST(pull_of_what_is_there_is_asked_for_only_by_pull)
{
    struct fixture f;
    struct parts p;
    const struct want *w;
    unsigned n;

    setup(&f);
    p = add_image(&f, "one", FILES("a"));
    ASSERT_INT(AGX_OK, run(&f, false, "x:one")->code);
    n = test_httpd_requests(f.httpd);
    w = run(&f, false, "x:one");
    ASSERT_INT(AGX_OK, w->code);
    ASSERT_UINT(0, w->n_progress);
    ASSERT_UINT(n, test_httpd_requests(f.httpd));
    w = run(&f, true, "x:one");
    ASSERT_INT(AGX_OK, w->code);
    ASSERT_UINT(2, p.manifest->n_asked);
    ASSERT_UINT(1, p.layers[0]->n_asked);
    /* The tag means another one now. */
    ASSERT_OK(agx_buf_printf(&p.manifest->bytes, "%s", ""));
    (void)snprintf(p.manifest->path, sizeof(p.manifest->path), "manifests/old");
    p = add_image(&f, "one", FILES("a", "b"));
    ASSERT_UINT(1, run(&f, false, "x:one")->image->layers.len);
    ASSERT_UINT(2, run(&f, true, "x:one")->image->layers.len);
    ASSERT_UINT(1, p.layers[0]->n_asked);
    teardown(&f);
}

TEST(pull_of_scratch_asks_nobody)
{
    struct want *w;
    struct fixture f;

    setup(&f);
    w = &f.wants[0];
    w->f = &f;
    ASSERT_OK(agx_puller_pull(f.puller, "scratch", &ops, w, &w->want, NULL));
    UNTIL(&f, w->n_done == 1);
    ASSERT_NOT_NULL(w->image);
    ASSERT_UINT(0, test_httpd_requests(f.httpd));
    teardown(&f);
}

TEST(pull_by_index_takes_the_manifest_of_this_machine)
{
    char index[2000], rest[200], digest[AGX_DIGEST_SIZE], path[160];
    const struct want *w;
    struct fixture f;
    struct parts p;

    setup(&f);
    p = add_image(&f, "mine", FILES("a"));
    (void)snprintf(index, sizeof(index),
                   "{\"schemaVersion\":2,\"manifests\":[{\"digest\":\"%s\",\"size\":5,"
                   "\"platform\":{\"os\":\"windows\",\"architecture\":\"%s\"}},"
                   "{\"digest\":\"%s\",\"size\":%zu,\"platform\":{\"os\":\"linux\","
                   "\"architecture\":\"%s\"}}]}",
                   p.config_digest, agx_platform_here.architecture, p.digest, p.manifest->bytes.len,
                   agx_platform_here.architecture);
    (void)snprintf(path, sizeof(path), "manifests/%s", test_digest_of(agx_str_from(index), digest));
    add_thing(&f, "manifests/all", agx_str_from(index));
    add_thing(&f, path, agx_str_from(index));
    w = run(&f, false, "x:all");
    ASSERT_INT(AGX_OK, w->code);
    ASSERT_CSTR(p.digest, w->image->digest);
    ASSERT_UINT(0, p.manifest->n_asked);
    ASSERT_UINT(1, p.by_digest->n_asked);
    /* By the digest of the index, and then found under it. */
    (void)snprintf(rest, sizeof(rest), "x@%s", digest);
    ASSERT_INT(AGX_OK, run(&f, false, rest)->code);
    ASSERT_NOT_NULL(test_images_find(f.t, name(&f, rest)));
    teardown(&f);
}

TEST(pull_of_an_index_within_an_index_is_refused)
{
    char index[2000], path[160], digest[AGX_DIGEST_SIZE];
    struct fixture f;

    setup(&f);
    (void)snprintf(index, sizeof(index),
                   "{\"schemaVersion\":2,\"manifests\":[{\"digest\":\"sha256:"
                   "0000000000000000000000000000000000000000000000000000000000000000\",\"size\":9,"
                   "\"platform\":{\"os\":\"linux\",\"architecture\":\"%s\"}}]}",
                   agx_platform_here.architecture);
    (void)snprintf(path, sizeof(path), "manifests/%s", test_digest_of(agx_str_from(index), digest));
    add_thing(&f, path, agx_str_from(index));
    (void)snprintf(index, sizeof(index),
                   "{\"schemaVersion\":2,\"manifests\":[{\"digest\":\"%s\","
                   "\"size\":%zu,\"platform\":{\"os\":\"linux\",\"architecture\":\"%s\"}}]}",
                   digest, f.things[0].bytes.len, agx_platform_here.architecture);
    add_thing(&f, "manifests/deep", agx_str_from(index));
    refuse(&f, AGX_FAILED_PRECONDITION, "another index", "x:deep");
    teardown(&f);
}

/* ---- sharing ---- */

TEST(pull_is_shared_by_all_who_want_the_name)
{
    struct fixture f;
    struct parts p;

    setup(&f);
    p = add_image(&f, "latest", FILES("a"));
    p.manifest->held = true;
    start(&f, 0, false, "x");
    start(&f, 1, true, "x:latest");
    start(&f, 2, false, "x");
    UNTIL(&f, p.manifest->n_asked == 1);
    agx_puller_cancel(f.wants[0].want);
    answer(p.manifest, p.manifest->conn, AGX_STR(""));
    UNTIL(&f, f.wants[1].n_done && f.wants[2].n_done);
    ASSERT_UINT(0, f.wants[0].n_done);
    ASSERT_TRUE(f.wants[1].image && f.wants[1].image == f.wants[2].image);
    ASSERT_UINT(1, p.manifest->n_asked);
    ASSERT_UINT(1, p.layers[0]->n_asked);
    teardown(&f);
}

TEST(pull_waits_for_a_layer_that_another_brings)
{
    struct parts one, two;
    struct fixture f;

    setup(&f);
    one = add_image(&f, "one", FILES("base", "a"));
    two = add_image(&f, "two", FILES("base", "b", "base"));
    one.layers[0]->held = true;
    start(&f, 0, false, "x:one");
    UNTIL(&f, one.layers[0]->n_asked == 1);
    start(&f, 1, false, "x:two");
    UNTIL(&f, two.layers[1]->n_asked == 1);
    ASSERT_TRUE(one.layers[0] == two.layers[0]);
    answer(one.layers[0], one.layers[0]->conn, AGX_STR(""));
    UNTIL(&f, f.wants[0].n_done && f.wants[1].n_done);
    ASSERT_INT(AGX_OK, f.wants[0].code);
    ASSERT_INT(AGX_OK, f.wants[1].code);
    ASSERT_UINT(1, one.layers[0]->n_asked);
    ASSERT_UINT(3, f.wants[1].image->layers.len);
    teardown(&f);
}

TEST(pull_takes_over_a_layer_that_another_gave_up)
{
    struct parts one, two;
    struct fixture f;

    setup(&f);
    one = add_image(&f, "one", FILES("base", "a"));
    two = add_image(&f, "two", FILES("base"));
    one.layers[0]->held = true;
    start(&f, 0, false, "x:one");
    UNTIL(&f, one.layers[0]->n_asked == 1);
    start(&f, 1, false, "x:two");
    UNTIL(&f, two.config->n_asked == 1);
    one.layers[0]->held = false;
    agx_puller_cancel(f.wants[0].want);
    UNTIL(&f, f.wants[1].n_done);
    ASSERT_INT(AGX_OK, f.wants[1].code);
    ASSERT_UINT(0, f.wants[0].n_done);
    teardown(&f);
}

TEST(pull_brings_so_many_layers_at_a_time)
{
    struct fixture f;
    struct parts p;

    setup(&f);
    f.config.layers_at_once = 2;
    reopen(&f);
    p = add_image(&f, "one", FILES("a", "b", "c"));
    for (size_t i = 0; i < 3; i++)
        p.layers[i]->held = true;
    start(&f, 0, false, "x:one");
    UNTIL(&f, p.layers[0]->n_asked && p.layers[1]->n_asked);
    ASSERT_UINT(0, p.layers[2]->n_asked);
    p.layers[2]->held = false;
    answer(p.layers[1], p.layers[1]->conn, AGX_STR(""));
    UNTIL(&f, p.layers[2]->n_asked);
    answer(p.layers[0], p.layers[0]->conn, AGX_STR(""));
    UNTIL(&f, f.wants[0].n_done);
    ASSERT_INT(AGX_OK, f.wants[0].code);
    teardown(&f);
}

/* ---- what goes wrong ---- */

TEST(pull_that_is_interrupted_goes_on)
{
    struct fixture f;
    struct parts p;

    setup(&f);
    p = add_image(&f, "one", FILES("a", "b"));
    p.layers[0]->cut_once = p.layers[1]->cut_once = p.config->cut_once = p.manifest->cut_once =
        true;
    ASSERT_INT(AGX_OK, run(&f, false, "x:one")->code);
    ASSERT_UINT(2, p.layers[0]->n_asked);
    ASSERT_UINT(1, p.layers[0]->n_ranges);
    ASSERT_UINT(1, p.layers[1]->n_ranges);
    ASSERT_UINT(2, p.manifest->n_asked);
    teardown(&f);
}

TEST(pull_of_other_bytes_than_the_digest_says_is_refused)
{
    struct fixture f;
    struct parts p;
    char rest[200];

    setup(&f);
    p = add_image(&f, "one", FILES("a", "b"));
    p.layers[1]->bytes.data[600]++;
    refuse(&f, AGX_DATA_LOSS, p.diff_ids[1], "x:one");
    p.layers[1]->bytes.data[600]--;
    p.config->bytes.data[2]++;
    refuse(&f, AGX_DATA_LOSS, p.config_digest, "x:one");
    p.config->bytes.data[2]--;
    (void)snprintf(rest, sizeof(rest), "x@%s", p.digest);
    p.by_digest->bytes.data[p.by_digest->bytes.len - 1] = ' ';
    refuse(&f, AGX_DATA_LOSS, "does not have the digest", rest);
    /* Nothing of it hinders the right one. */
    ASSERT_INT(AGX_OK, run(&f, false, "x:one")->code);
    teardown(&f);
}

TEST(pull_of_documents_that_do_not_fit_is_refused)
{
    struct fixture f;

    setup(&f);
    add_thing(&f, "manifests/html", AGX_STR("<html>"));
    add_thing(&f, "manifests/v1", AGX_STR("{\"schemaVersion\":1}"));
    refuse(&f, AGX_DATA_LOSS, "manifest is malformed", "x:html");
    refuse(&f, AGX_FAILED_PRECONDITION, "schema 1", "x:v1");
    refuse(&f, AGX_NOT_FOUND, "answers 404: unknown here", "x:missing");
    refuse(&f, AGX_FAILED_PRECONDITION, "SHA-256",
           "x@sha512:00000000000000000000000000000000000000000000000000000000000000000000");
    teardown(&f);
}

/* An image whose configuration is this text. */
static void add_odd(struct fixture *f, const char *tag, const char *config, const char *layers)
{
    char digest[AGX_DIGEST_SIZE], text[2000];
    struct parts p;

    add_blob(f, agx_str_from(config), digest);
    (void)snprintf(
        text, sizeof(text),
        "{\"schemaVersion\":2,\"config\":{\"digest\":\"%s\",\"size\":%zu},\"layers\":[%s]}", digest,
        strlen(config), layers);
    add_manifest(f, &p, tag, text);
}

TEST(pull_of_a_configuration_that_does_not_fit_is_refused)
{
    char digest[AGX_DIGEST_SIZE], layer[200], config[300];
    struct thing *t;
    struct fixture f;

    setup(&f);
    t = add_layer(&f, "a", digest);
    (void)snprintf(layer, sizeof(layer), "{\"digest\":\"%s\",\"size\":%zu}", digest, t->bytes.len);
    add_odd(&f, "more", "{\"os\":\"linux\",\"config\":{},\"rootfs\":{\"diff_ids\":[]}}", layer);
    refuse(&f, AGX_DATA_LOSS, "its manifest has 1 layers, its configuration 0", "x:more");
    add_odd(&f, "text", "not json", "");
    refuse(&f, AGX_INVALID_ARGUMENT, "JSON", "x:text");
    (void)snprintf(config, sizeof(config),
                   "{\"os\":\"windows\",\"config\":{},\"rootfs\":{\"diff_ids\":[\"%s\"]}}", digest);
    add_odd(&f, "windows", config, layer);
    refuse(&f, AGX_INVALID_ARGUMENT, "for 'windows'", "x:windows");
    (void)snprintf(config, sizeof(config),
                   "{\"os\":\"linux\",\"config\":{},\"rootfs\":{\"diff_ids\":[\"sha256:"
                   "1111111111111111111111111111111111111111111111111111111111111111\"]}}");
    add_odd(&f, "other", config, layer);
    refuse(&f, AGX_DATA_LOSS, digest, "x:other");
    (void)snprintf(layer, sizeof(layer), "{\"digest\":\"%s\",\"size\":%llu}", digest,
                   (unsigned long long)AGX_PULL_BLOB_MAX + 1);
    (void)snprintf(config, sizeof(config),
                   "{\"os\":\"linux\",\"config\":{},\"rootfs\":{\"diff_ids\":[\"%s\"]}}", digest);
    add_odd(&f, "huge", config, layer);
    refuse(&f, AGX_RESOURCE_EXHAUSTED, "more than", "x:huge");
    ASSERT_UINT(1, t->n_asked);
    teardown(&f);
}

TEST(pull_of_an_id_or_of_no_name_is_refused_at_once)
{
    _cleanup_(agx_error_freep) struct agx_error *id = NULL, *no_name = NULL, *host = NULL;
    static const char *const insecure[] = { "a:1", "http://b", NULL };
    struct agx_puller_want *want = NULL;
    struct agx_puller *puller = NULL;
    struct fixture f;

    setup(&f);
    ASSERT_CODE(
        AGX_NOT_FOUND,
        agx_puller_ensure(f.puller,
                          "sha256:1111111111111111111111111111111111111111111111111111111111111111",
                          &ops, NULL, &want, &id));
    ASSERT_CODE(AGX_INVALID_ARGUMENT,
                agx_puller_ensure(f.puller, "No Name", &ops, NULL, &want, &no_name));
    ASSERT_NULL(want);
    f.config.insecure = insecure;
    ASSERT_CODE(AGX_INVALID_ARGUMENT,
                agx_puller_open(f.t->loop, f.t->images, &f.config, &puller, &host));
    ASSERT_NOT_NULL(strstr(host->message, "'http://b'"));
    teardown(&f);
}

TEST(pull_shows_who_we_are_and_says_when_it_could_not)
{
    static const char text[] = "{\"auths\":{\"%s\":{\"auth\":\"bWU6c2VjcmV0\"}},"
                               "\"credHelpers\":{\"%s\":\"none\"}}";
    struct agx_credentials_env env = { 0 };
    char config[500];
    struct fixture f;

    setup(&f);
    add_image(&f, "one", FILES("a"));
    f.authorization = "Basic bWU6c2VjcmV0";
    refuse(&f, AGX_PERMISSION_DENIED, "there are none", "x:one");
    (void)snprintf(config, sizeof(config), text, f.host, "elsewhere");
    ASSERT_OK(agx_path_write_file(f.t->dirfd, "config.json", agx_str_from(config), 0600, NULL));
    env.config = f.t->dir;
    f.config.env = &env;
    reopen(&f);
    ASSERT_INT(AGX_OK, run(&f, true, "x:one")->code);
    (void)snprintf(config, sizeof(config), text, "elsewhere", f.host);
    ASSERT_OK(agx_path_write_file(f.t->dirfd, "config.json", agx_str_from(config), 0600, NULL));
    ASSERT_INT(AGX_PERMISSION_DENIED, run(&f, true, "x:one")->code);
    ASSERT_NOT_NULL(strstr(f.wants[0].error, "without credentials (there is no program "
                                             "'docker-credential-none' in PATH)"));
    teardown(&f);
}

/* ---- its end ---- */

TEST(pull_that_is_cancelled_is_not_told_wherever_it_is)
{
    for (int place = 0; place < 5; place++) {
        struct fixture f;
        struct parts p;

        setup(&f);
        p = add_image(&f, "one", FILES("a"));
        p.manifest->held = place == 1;
        p.config->held = place == 2;
        p.layers[0]->held = place == 3;
        start(&f, 0, false, "x:one");
        if (place == 1)
            UNTIL(&f, p.manifest->n_asked);
        if (place == 2)
            UNTIL(&f, p.config->n_asked);
        if (place >= 3)
            UNTIL(&f, p.layers[0]->n_asked);
        agx_puller_cancel(f.wants[0].want);
        agx_puller_cancel(NULL);
        UNTIL(&f, test_httpd_open_conns(f.httpd) == 0);
        ASSERT_UINT(0, f.wants[0].n_done);
        ASSERT_NULL(test_images_find(f.t, name(&f, "x:one")));
        teardown(&f);
    }
}

TEST(puller_may_be_closed_in_its_callbacks)
{
    for (int place = 0; place < 3; place++) {
        struct fixture f;

        setup(&f);
        add_image(&f, "one", FILES("a"));
        f.wants[0].cancel_in_progress = place == 0;
        f.wants[0].close_in_progress = place == 1;
        f.wants[1].close_in_done = place == 2; /* who came last is told first */
        start(&f, 0, false, "x:one");
        if (place == 2)
            start(&f, 1, false, "x:one");
        UNTIL(&f, place == 0 ? f.wants[0].n_progress : !f.puller);
        ASSERT_UINT(place == 2, f.wants[0].n_done + f.wants[1].n_done);
        teardown(&f);
    }
}

TEST(puller_that_is_closed_leaves_nothing_behind)
{
    struct fixture f;
    struct parts p;

    setup(&f);
    p = add_image(&f, "one", FILES("a", "b", "c"));
    p.layers[1]->held = true;
    start(&f, 0, false, "x:one");
    start(&f, 1, false, "scratch");
    UNTIL(&f, p.layers[1]->n_asked);
    teardown(&f);
    ASSERT_UINT(0, f.wants[0].n_done);
}
