/*
 * images.c: the store in memory: opening, finding, closing. images_load.c reads the disk, change.c
 * changes it.
 */
#include "image/images_internal.h"

#include "base/mem.h"
#include "base/path.h"
#include "core/imageref.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/banned.h"

enum { ID_PREFIX_MIN = 12 }; /* digits of an abbreviated id */

/* ---- finding ---- */

static bool is_hex(struct agx_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!(s.ptr[i] >= '0' && s.ptr[i] <= '9') && !(s.ptr[i] >= 'a' && s.ptr[i] <= 'f'))
            return false;
    return true;
}

/* By the beginning of its id, if only one image has it; NULL otherwise. */
static struct agx_image *find_id(struct agx_images *s, struct agx_str text)
{
    struct agx_image *i, *found = NULL;
    const size_t head = strlen("sha256:");

    if (agx_str_starts(text, AGX_STR("sha256:")))
        text = agx_str_skip(text, head);
    if (text.len < ID_PREFIX_MIN || text.len > AGX_DIGEST_SIZE - 1 - head || !is_hex(text))
        return NULL;
    for (size_t at = 0; (i = agx_images_next(s, &at));)
        if (agx_str_starts(agx_str_from(i->id + head), text)) {
            if (found)
                return NULL;
            found = i;
        }
    return found;
}

static struct agx_image *find_digest(struct agx_images *s, const char *digest)
{
    struct agx_image *i;

    for (size_t at = 0; (i = agx_images_next(s, &at));)
        if (i->digest && strcmp(i->digest, digest) == 0)
            return i;
    return NULL;
}

int images_resolve(struct agx_images *s, struct agx_str ref, struct agx_image **ret_image,
                   char **ret_name, struct agx_error **err)
{
    _cleanup_(agx_imageref_done) struct agx_imageref r = { 0 };
    _cleanup_free_ char *name = NULL;
    struct agx_image *found;
    int n;

    *ret_name = NULL;
    if (agx_str_eq(ref, AGX_STR("scratch"))) {
        *ret_image = agx_image_ref(s->scratch);
        return 0;
    }
    n = agx_imageref_parse(&r, ref, err);
    if (n < 0)
        return n;
    name = agx_imageref_text(&r);
    if (!name)
        return agx_error_no_memory(err);
    found = agx_map_get(&s->names, agx_str_from(name));
    if (found)
        *ret_name = AGX_TAKE_PTR(name);
    if (!found && r.digest)
        found = find_digest(s, r.digest);
    if (!found)
        found = find_id(s, ref);
    if (!found)
        return agx_error_set(err, AGX_NOT_FOUND, "there is no image '%.*s'", AGX_STR_ARG(ref));
    *ret_image = agx_image_ref(found);
    return 0;
}

int agx_images_find(struct agx_images *s, struct agx_str ref, struct agx_image **ret_image,
                    struct agx_error **err)
{
    _cleanup_free_ char *name = NULL;

    agx_loop_assert(s->loop);
    return images_resolve(s, ref, ret_image, &name, err);
}

struct agx_image *agx_images_next(struct agx_images *s, size_t *at)
{
    void *value;

    return agx_map_next(&s->images, at, NULL, &value) ? value : NULL;
}

/* ---- later ---- */

struct later {
    uv_timer_t timer;
    void (*fn)(void *user);
    void *user;
};

static void later_now(uv_handle_t *h)
{
    struct later *l = container_of((uv_timer_t *)h, struct later, timer);
    struct later later = *l;

    free(l);
    later.fn(later.user);
}

static void later_due(uv_timer_t *timer)
{
    uv_close((uv_handle_t *)timer, later_now);
}

void images_later(struct agx_images *s, void (*fn)(void *user), void *user)
{
    struct later *l = agx_new(struct later);

    l->fn = fn;
    l->user = user;
    (void)uv_timer_init(agx_loop_uv(s->loop), &l->timer);
    (void)uv_timer_start(&l->timer, later_due, 0, 0);
}

int images_job(struct agx_job *j, struct agx_pool *pool, struct agx_error **err)
{
    if (!pool)
        return agx_error_set(err, AGX_UNAVAILABLE, "the store of images is closing");
    return agx_job_start(j, pool, err);
}

/* ---- opening and ending ---- */

static void images_free(struct agx_images *s)
{
    void *value;

    for (size_t at = 0; agx_map_next(&s->images, &at, NULL, &value);)
        agx_image_unref(value);
    for (size_t at = 0; agx_map_next(&s->layers, &at, NULL, &value);)
        free(value);
    agx_map_done(&s->images);
    agx_map_done(&s->names);
    agx_map_done(&s->layers);
    agx_image_unref(s->scratch);
    agx_closep(&s->dirfd);
    agx_closep(&s->tmpfd);
    agx_error_free(s->stop_error);
    free(s->dir);
    free(s);
}

/* The last of the pools and users is gone. */
static void maybe_end(struct agx_images *s)
{
    agx_done_fn stopped = s->stopped;
    void *user = s->stopped_user;
    struct agx_error *error;

    if (!stopped || s->pools_left > 0 || (s->users > 0 && !s->stop_error))
        return;
    s->stopped = NULL;
    error = AGX_TAKE_PTR(s->stop_error);
    /* A thread that was given up may still use the directories: they stay open. */
    if (!error)
        images_free(s);
    stopped(user, error);
}

void images_release(struct agx_images *s)
{
    s->users--;
    maybe_end(s);
}

static void on_pool_stopped(void *user, struct agx_error *error)
{
    struct agx_images *s = user;

    agx_error_propagate(&s->stop_error, &error);
    s->pools_left--;
    maybe_end(s);
}

void agx_images_stop(struct agx_images *s, agx_done_fn stopped, void *user)
{
    s->stopping = true;
    s->stopped = stopped;
    s->stopped_user = user;
    s->pools_left = 3;
    images_start_held(s);
    /* No new job can start, and each pool is freed when its last job ends: a job that ends on one
     * of them must not use another that is gone. */
    agx_pool_stop(AGX_TAKE_PTR(s->unpack_pool), AGX_IMAGES_STOP_MS, on_pool_stopped, s);
    agx_pool_stop(AGX_TAKE_PTR(s->spool_pool), AGX_IMAGES_STOP_MS, on_pool_stopped, s);
    agx_pool_stop(AGX_TAKE_PTR(s->index_pool), AGX_IMAGES_STOP_MS, on_pool_stopped, s);
}

static int open_dirs(struct agx_images *s, const char *dir, struct agx_error **err)
{
    static const char *const below[] = { "layers", "configs", "manifests", "tmp", "empty" };

    if (mkdir(dir, 0700) < 0 && errno != EEXIST)
        return agx_error_errno(err, errno, "make the directory of images '%s'", dir);
    s->dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    s->dir = realpath(dir, NULL);
    if (s->dirfd < 0 || !s->dir)
        return agx_error_errno(err, errno, "open the directory of images '%s'", dir);
    for (size_t i = 0; i < AGX_ARRAY_LEN(below); i++)
        if (mkdirat(s->dirfd, below[i], 0700) < 0 && errno != EEXIST)
            return agx_error_errno(err, errno, "make '%s' in '%s'", below[i], dir);
    s->tmpfd = openat(s->dirfd, "tmp", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (s->tmpfd < 0 || fchmodat(s->dirfd, "empty", 0755, 0) < 0)
        return agx_error_errno(err, errno, "open 'tmp' and 'empty' in '%s'", dir);
    return 0;
}

static int open_pools(struct agx_images *s, struct agx_error **err)
{
    const struct agx_pool_config unpack = { "img-unpack", AGX_IMAGES_UNPACK_THREADS,
                                            AGX_IMAGES_QUEUE };
    const struct agx_pool_config spool = { "img-spool", AGX_IMAGES_SPOOL_THREADS,
                                           AGX_IMAGES_QUEUE };
    const struct agx_pool_config index = { "img-index", 1, AGX_IMAGES_QUEUE };
    int r;

    if ((r = agx_pool_open(s->loop, &unpack, &s->unpack_pool, err)) < 0 ||
        (r = agx_pool_open(s->loop, &spool, &s->spool_pool, err)) < 0)
        return r;
    return agx_pool_open(s->loop, &index, &s->index_pool, err);
}

static void ignore_stopped(void *user, struct agx_error *error)
{
    (void)user;
    agx_error_free(error);
}

/* Undoes a failed opening: pools end on the loop, by themselves. */
static void give_up(struct agx_images *s)
{
    struct agx_pool *pools[] = { s->unpack_pool, s->spool_pool, s->index_pool };

    for (size_t i = 0; i < AGX_ARRAY_LEN(pools); i++)
        if (pools[i])
            agx_pool_stop(pools[i], AGX_IMAGES_STOP_MS, ignore_stopped, NULL);
    images_free(s);
}

int agx_images_open(struct agx_loop *l, const struct agx_images_config *c,
                    struct agx_images **ret_images, struct agx_error **err)
{
    struct agx_images *s = agx_new(struct agx_images);
    struct agx_siphash_key seed;
    int r = agx_random_bytes(&seed, sizeof(seed), err);

    s->loop = l;
    s->config = *c;
    s->config.dir = NULL;
    s->dirfd = s->tmpfd = -1;
    agx_map_init(&s->images, seed);
    agx_map_init(&s->names, seed);
    agx_map_init(&s->layers, seed);
    if (r == 0)
        r = open_dirs(s, c->dir, err);
    if (r == 0)
        r = open_pools(s, err);
    if (r == 0)
        r = images_load(s, err);
    if (r < 0) {
        give_up(s);
        return r;
    }
    *ret_images = s;
    return 0;
}
