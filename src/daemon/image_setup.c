/* image_setup.c: keys and variables into the configurations of the store and the puller. */
#include "daemon/image_setup.h"

#include "base/log.h"
#include "core/pairs.h"
#include "fetch/fetch.h"

#include "base/banned.h"

static void on_notice(void *user, const char *text)
{
    (void)user;
    AGX_LOG(AGX_LOG_WARN, "images.notice", AGX_F_STR("msg", text), AGX_F_BOOL("ignored", true));
}

int agx_image_setup_store(struct agx_loop *l, const struct agx_image_setup *s,
                          struct agx_images **ret_images, struct agx_error **err)
{
    struct agx_images_config c = s->config->images.store;

    c.dir = s->dir;
    c.idmap = s->idmap;
    c.notice = on_notice;
    return agx_images_open(l, &c, ret_images, err);
}

/* "host:port, host:port" as words, and the NULL that ends such an array. */
static int split_registries(const char *text, struct agx_words *words, const char ***ret_array,
                            struct agx_error **err)
{
    struct agx_str rest = agx_str_from(text), word;
    const char **array;
    int r = 0;

    while (r == 0 && agx_str_split(&rest, ',', &word)) {
        word = agx_str_trim(word);
        if (word.len > 0)
            r = agx_words_add(words, word, err);
    }
    if (r < 0)
        return r;
    array = calloc(words->len + 1, sizeof(*array));
    if (!array)
        return agx_error_no_memory(err);
    for (size_t i = 0; i < words->len; i++)
        array[i] = words->items[i];
    *ret_array = array;
    return 0;
}

static struct agx_fetch_endpoint engine_at(const struct agx_engine_endpoint *w)
{
    return (struct agx_fetch_endpoint){ .unix_socket = w->unix_socket,
                                        .base = w->base,
                                        .ca_file = w->ca_file,
                                        .cert_file = w->cert_file,
                                        .key_file = w->key_file,
                                        .insecure = w->insecure };
}

static int open_puller(struct agx_loop *l, const struct agx_image_setup *s,
                       struct agx_images *images, const char *const *insecure,
                       struct agx_puller **ret_puller, struct agx_error **err)
{
    const struct agx_credentials_env env = {
        .config = s->env->config, .home = s->env->home, .path = s->env->path, .all = s->env->all
    };
    _cleanup_(agx_error_freep) struct agx_error *no_engine = NULL;
    struct agx_puller_config c = AGX_PULLER_CONFIG_INIT;
    struct agx_engine_endpoint endpoint = { 0 };
    struct agx_fetch_endpoint engine;
    char text[512];
    int r;

    c.env = &env;
    c.insecure = insecure;
    if (agx_engine_endpoint_find(NULL, s->env, &endpoint, &no_engine) == 0) {
        engine = engine_at(&endpoint);
        c.engine = &engine;
    } else {
        c.no_engine = agx_error_format(no_engine, text, sizeof(text));
    }
    r = agx_puller_open(l, images, &c, ret_puller, err);
    agx_engine_endpoint_done(&endpoint);
    return r;
}

int agx_image_setup_puller(struct agx_loop *l, const struct agx_image_setup *s,
                           struct agx_images *images, struct agx_puller **ret_puller,
                           struct agx_error **err)
{
    _cleanup_free_ const char **insecure = NULL;
    struct agx_words words = { 0 };
    int r =
        split_registries(agx_text(s->config->images.insecure_registries), &words, &insecure, err);

    if (r == 0)
        r = open_puller(l, s, images, insecure, ret_puller, err);
    agx_words_done(&words);
    return r;
}
