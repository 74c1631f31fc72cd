/*
 * pull_driver.c: pulls images into an image store.
 *
 *     pull_driver DIR CONFIG REF...
 *
 * DIR is the store, CONFIG the directory of Docker's config.json. The variable PULL_ENGINE names
 * the socket of a Docker Engine, PULL_INSECURE a registry without TLS. All images are pulled at the
 * same time.
 *
 * Lines: "progress REF LAYERS/TOTAL BYTES/TOTAL", "got REF ID LAYER..." with the directories of the
 * layers, the top one first; "failed REF CODE TEXT".
 *
 * A store that stops leaves unfinished removals to its next start, so the driver stops it only when
 * DIR/tmp is empty, or after TIDY_TRIES looks.
 */
#include "base/macros.h"
#include "image/pull.h"
#include "loop/signals.h"

#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { REFS_MAX = 64, TIDY_MS = 20, TIDY_TRIES = 1500 };

struct wish {
    const char *ref;
    struct agx_puller_want *want;
};

static struct {
    struct agx_loop *loop;
    struct agx_images *images;
    struct agx_puller *puller;
    struct wish wishes[REFS_MAX];
    size_t n_left;
    char tmp[PATH_MAX];
    uv_timer_t tidy;
    unsigned n_looks;
} d;

static void must(int r, struct agx_error *error, const char *what)
{
    char text[1024];

    if (r >= 0)
        return;
    (void)fprintf(stderr, "pull_driver: %s: %s\n", what,
                  agx_error_format(error, text, sizeof(text)));
    exit(2);
}

static void on_stopped(void *user, struct agx_error *error)
{
    (void)user;
    must(error ? -1 : 0, error, "stop the store");
}

static bool tmp_is_empty(void)
{
    DIR *dir = opendir(d.tmp);
    const struct dirent *e;
    size_t n = 0;

    while (dir && (e = readdir(dir)))
        n += e->d_name[0] != '.';
    if (dir)
        (void)closedir(dir);
    return n == 0;
}

static void tidy(uv_timer_t *timer)
{
    if (!tmp_is_empty() && ++d.n_looks < TIDY_TRIES)
        return;
    uv_close((uv_handle_t *)timer, NULL);
    agx_images_stop(d.images, on_stopped, NULL);
}

static void on_progress(void *user, const struct agx_pull *p)
{
    const struct wish *w = user;

    (void)printf("progress %s %" PRIu32 "/%" PRIu32 " %" PRIu64 "/%" PRIu64 "\n", w->ref,
                 p->layers_done, p->layers_total, p->bytes_done, p->bytes_total);
    (void)fflush(stdout);
}

static void on_done(void *user, struct agx_image *image, struct agx_error *error)
{
    const struct wish *w = user;
    char text[1024];

    if (error) {
        (void)printf("failed %s %d %s\n", w->ref, (int)error->code,
                     agx_error_format(error, text, sizeof(text)));
    } else {
        (void)printf("got %s %s", w->ref, image->id);
        for (size_t i = 0; i < image->layers.len; i++)
            (void)printf(" %s", image->layers.items[i]);
        (void)printf("\n");
    }
    (void)fflush(stdout);
    agx_error_free(error);
    if (--d.n_left > 0)
        return;
    d.puller = agx_puller_close(d.puller);
    (void)uv_timer_start(&d.tidy, tidy, 0, TIDY_MS);
}

int main(int argc, char **argv)
{
    static const struct agx_puller_ops ops = { on_progress, on_done };
    const struct agx_credentials_env env = { .config = argc > 2 ? argv[2] : NULL,
                                             .path = getenv("PATH") };
    const struct agx_fetch_endpoint engine = { .unix_socket = getenv("PULL_ENGINE"),
                                               .base = "http://engine" };
    const char *const insecure[] = { getenv("PULL_INSECURE"), NULL };
    struct agx_images_config images = AGX_IMAGES_CONFIG_INIT;
    struct agx_puller_config config = AGX_PULLER_CONFIG_INIT;
    struct agx_error *err = NULL;

    if (argc < 4 || argc - 3 > REFS_MAX) {
        (void)fprintf(stderr, "usage: pull_driver DIR CONFIG REF...\n");
        return 2;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    images.dir = argv[1];
    config.env = &env;
    config.insecure = insecure;
    if (engine.unix_socket)
        config.engine = &engine;
    config.retry_ms = 50;
    must(agx_loop_open(&d.loop, &err), err, "open a loop");
    (void)uv_timer_init(agx_loop_uv(d.loop), &d.tidy);
    (void)snprintf(d.tmp, sizeof(d.tmp), "%s/tmp", argv[1]);
    must(agx_images_open(d.loop, &images, &d.images, &err), err, "open the store");
    must(agx_puller_open(d.loop, d.images, &config, &d.puller, &err), err, "open a puller");
    for (d.n_left = 0; argv[3 + d.n_left]; d.n_left++) {
        struct wish *w = &d.wishes[d.n_left];

        w->ref = argv[3 + d.n_left];
        must(agx_puller_pull(d.puller, w->ref, &ops, w, &w->want, &err), err, w->ref);
    }
    agx_loop_run(d.loop);
    must(agx_loop_close(d.loop, &err), err, "close the loop");
    return 0;
}
