/*
 * credentials.c: looks a registry's credentials up.
 *
 *     start --(no helper)--> timer of 0 ms --> TELL
 *       |                                       ^
 *       +--> helper --ends, or is killed at the deadline or by a cancel
 *
 * A lookup is freed when its timer is closed and its helper has ended.
 */
#include "image/credentials.h"

#include "base/fd.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/mem.h"
#include "codec/base64.h"
#include "loop/child.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>

#include "base/banned.h"

/* Docker Hub's name in config.json. */
#define HUB_KEY "https://index.docker.io/v1/"

/* With this user name a helper says that the secret is a token. */
#define TOKEN_USER "<token>"

struct agx_credentials_lookup {
    struct agx_loop *loop;
    agx_credentials_fn done; /* NULL: called already, or cancelled */
    void *user;
    char *key;    /* of the registry */
    char *helper; /* "docker-credential-x"; for messages */
    char *name;   /* of the user; NULL: a token */
    char *secret; /* NULL: none found */
    struct agx_error *error;
    struct agx_child *child;
    int out; /* the helper's output; -1: none */
    uv_timer_t timer;
    bool timer_open;
};

/* ---- the environment ---- */

static char *credentials_copy(const char *s)
{
    char *c = s ? strdup(s) : NULL;

    if (s && !c)
        abort(); /* small, as with agx_new() */
    return c;
}

struct agx_credentials_env agx_credentials_env_dup(const struct agx_credentials_env *env)
{
    size_t n = 0;
    char **all;

    while (env->all && env->all[n])
        n++;
    all = agx_alloc((n + 1) * sizeof(*all));
    for (size_t i = 0; i < n; i++)
        all[i] = credentials_copy(env->all[i]);
    return (struct agx_credentials_env){ .config = credentials_copy(env->config),
                                         .home = credentials_copy(env->home),
                                         .path = credentials_copy(env->path),
                                         .all = (const char *const *)all };
}

void agx_credentials_env_done(struct agx_credentials_env *env)
{
    if (!env)
        return;
    for (const char *const *line = env->all; line && *line; line++)
        free((char *)*line);
    free((void *)env->all);
    free((char *)env->config);
    free((char *)env->home);
    free((char *)env->path);
    *env = (struct agx_credentials_env){ 0 };
}

char *agx_credentials_dir(const char *config, const char *home)
{
    char *dir = NULL;

    if (config && *config)
        return strdup(config);
    if (home && *home && asprintf(&dir, "%s/.docker", home) < 0)
        dir = NULL;
    return dir;
}

/* ---- what is found ---- */

static void credentials_keep(struct agx_credentials_lookup *k, const char *user, const char *secret)
{
    k->name = strcmp(user, TOKEN_USER) == 0 ? NULL : credentials_copy(user);
    k->secret = credentials_copy(secret);
}

/* ---- config.json ---- */

static const char *text_of(const json_t *object, const char *member)
{
    const char *text = json_string_value(json_object_get(object, member));

    return text && *text ? text : NULL;
}

/* "https://host/v1/" and "host" are one registry. */
static struct agx_str host_of(const char *key)
{
    struct agx_str s = { key, strlen(key) };

    if (agx_str_starts(s, AGX_STR("https://")))
        s = agx_str_skip(s, strlen("https://"));
    else if (agx_str_starts(s, AGX_STR("http://")))
        s = agx_str_skip(s, strlen("http://"));
    s.len = agx_str_find(s, '/');
    return s;
}

static json_t *find_entry(json_t *auths, const char *key)
{
    json_t *entry = json_object_get(auths, key);
    const char *name;

    if (entry)
        return entry;
    json_object_foreach(auths, name, entry)
    {
        if (agx_str_eq(host_of(name), host_of(key)))
            return entry;
    }
    return NULL;
}

/* `auth` of an entry: user and password as base64. */
static void keep_pair(struct agx_credentials_lookup *k, const char *pair)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(AGX_CREDENTIALS_MAX);
    char *colon;

    if (agx_base64_decode(&text, agx_str_from(pair), NULL) < 0 || agx_buf_push(&text, 0) < 0 ||
        !(colon = strchr((char *)text.data, ':'))) {
        (void)agx_error_set(&k->error, AGX_INVALID_ARGUMENT,
                            "Docker's config.json has unreadable credentials for '%s'", k->key);
        return;
    }
    *colon = '\0';
    credentials_keep(k, (char *)text.data, colon + 1);
}

static void keep_entry(struct agx_credentials_lookup *k, const json_t *entry)
{
    const char *token = text_of(entry, "identitytoken"), *pair = text_of(entry, "auth");
    const char *user = text_of(entry, "username"), *password = text_of(entry, "password");

    if (token)
        credentials_keep(k, TOKEN_USER, token);
    else if (pair)
        keep_pair(k, pair);
    else if (user && password)
        credentials_keep(k, user, password);
}

/* NULL: there is no such file, or an error. */
static json_t *read_config(const struct agx_credentials_env *env, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(AGX_JSON_MAX);
    _cleanup_free_ char *dir = agx_credentials_dir(env->config, env->home), *path = NULL;
    struct agx_error *why = NULL;
    json_t *config = NULL;
    int r;

    if (!dir || asprintf(&path, "%s/config.json", dir) < 0)
        return NULL;
    r = agx_fd_read_file(AT_FDCWD, path, &text, &why);
    if (r == 0)
        r = agx_json_parse(agx_buf_peek(&text), AGX_JSON_MAX, AGX_DEPTH_MAX, &config, &why);
    if (r == -AGX_NOT_FOUND)
        why = agx_error_free(why);
    if (why) {
        agx_error_propagate(err, &why);
        (void)agx_error_wrap(err, r, "read Docker's '%s'", path);
    }
    return config;
}

/* ---- a helper ---- */

static void lookup_free(struct agx_credentials_lookup *k)
{
    if (k->timer_open || k->child)
        return;
    if (k->out >= 0)
        (void)close(k->out);
    free(k->key);
    free(k->helper);
    free(k->name);
    if (k->secret)
        explicit_bzero(k->secret, strlen(k->secret));
    free(k->secret);
    agx_error_free(k->error);
    free(k);
}

static void on_timer_closed(uv_handle_t *h)
{
    struct agx_credentials_lookup *k =
        container_of((uv_timer_t *)h, struct agx_credentials_lookup, timer);

    k->timer_open = false;
    lookup_free(k);
}

static void credentials_tell(struct agx_credentials_lookup *k)
{
    agx_credentials_fn done = k->done;

    k->done = NULL;
    uv_close((uv_handle_t *)&k->timer, on_timer_closed);
    if (done)
        done(k->user, k->secret ? &(struct agx_credentials){ k->key, k->name, k->secret } : NULL,
             AGX_TAKE_PTR(k->error));
}

/* The helper's output: {"Username": ..., "Secret": ...}. */
static void read_helper(struct agx_credentials_lookup *k)
{
    uint8_t text[AGX_CREDENTIALS_MAX];
    _cleanup_json_ json_t *value = NULL;
    const char *user, *secret;
    ssize_t n = read(k->out, text, sizeof(text));

    if (n > 0)
        (void)!agx_json_parse(agx_str_bytes(text, (size_t)n), sizeof(text), AGX_DEPTH_MAX, &value,
                              NULL);
    user = text_of(value, "Username");
    secret = text_of(value, "Secret");
    if (user && secret)
        credentials_keep(k, user, secret);
    else
        (void)agx_error_set(&k->error, AGX_DATA_LOSS, "'%s' gave no credentials for '%s'",
                            k->helper, k->key);
    explicit_bzero(text, sizeof(text));
}

static void on_exit_(void *user, const struct agx_child_status *status)
{
    struct agx_credentials_lookup *k = user;

    k->child = NULL;
    if (!k->done) {
        lookup_free(k);
        return;
    }
    /* A helper that does not know the registry exits with 1. */
    if (status->code == 0 && !k->error)
        read_helper(k);
    else if (!k->error && status->code != 1)
        (void)agx_error_set(&k->error, AGX_UNAVAILABLE, "'%s' failed", k->helper);
    credentials_tell(k);
}

static void on_deadline(uv_timer_t *timer)
{
    struct agx_credentials_lookup *k = container_of(timer, struct agx_credentials_lookup, timer);

    (void)agx_error_set(&k->error, AGX_DEADLINE_EXCEEDED, "'%s' does not answer", k->helper);
    agx_child_kill_group(k->child, SIGKILL);
}

/* The program's path, owned, from PATH; NULL: none. */
static char *find_program(const char *path, const char *name)
{
    struct agx_str rest = agx_str_from(path), dir;

    while (path && agx_str_split(&rest, ':', &dir)) {
        char *file = NULL;

        if (dir.len == 0 || dir.ptr[0] != '/')
            continue;
        if (asprintf(&file, "%.*s/%s", AGX_STR_ARG(dir), name) < 0)
            return NULL;
        if (access(file, X_OK) == 0)
            return file;
        free(file);
    }
    return NULL;
}

/* A file with the registry's name, for the helper's standard input. */
static int input_of(const char *key, struct agx_error **err)
{
    _cleanup_close_ int fd = memfd_create("registry", MFD_CLOEXEC);
    int r;

    if (fd < 0)
        return agx_error_errno(err, errno, "make a file in memory");
    r = agx_fd_write_all(fd, agx_str_from(key), err);
    if (r < 0)
        return r;
    if (lseek(fd, 0, SEEK_SET) < 0)
        return agx_error_errno(err, errno, "read a file in memory again");
    return AGX_TAKE_FD(fd);
}

static int start_program(struct agx_credentials_lookup *k,
                         const struct agx_credentials_lookup_params *p, const char *file,
                         struct agx_error **err)
{
    const char *const argv[] = { k->helper, "get", NULL };
    _cleanup_close_ int in = input_of(k->key, err), theirs = -1;
    struct agx_child_fd fds[2] = { { in, 0 } };
    int out[2];

    if (in < 0)
        return in;
    if (pipe2(out, O_CLOEXEC) < 0)
        return agx_error_errno(err, errno, "make a pipe");
    k->out = out[0];
    theirs = out[1];
    fds[1] = (struct agx_child_fd){ theirs, 1 };
    /* It is read once, after the end: a helper's output fits into a pipe. */
    if (agx_fd_set_nonblock(k->out, true, err) < 0)
        return -AGX_INTERNAL;
    return agx_child_start(k->loop,
                           &(struct agx_child_params){ .file = file,
                                                       .argv = argv,
                                                       .env = p->env->all,
                                                       .fds = fds,
                                                       .n_fds = AGX_ARRAY_LEN(fds),
                                                       .group = AGX_CHILD_NEW_SESSION,
                                                       .end_group = true },
                           on_exit_, k, &k->child, err);
}

/* True: it runs, and its end will be reported. */
static bool start_helper(struct agx_credentials_lookup *k,
                         const struct agx_credentials_lookup_params *p, const char *name)
{
    _cleanup_free_ char *file = NULL;

    if (asprintf(&k->helper, "docker-credential-%s", name) < 0)
        abort(); /* small, as with agx_new() */
    if (strchr(name, '/') || !(file = find_program(p->env->path, k->helper))) {
        (void)agx_error_set(&k->error, AGX_NOT_FOUND, "there is no program '%s' in PATH",
                            k->helper);
        return false;
    }
    if (start_program(k, p, file, &k->error) < 0) {
        (void)agx_error_wrap(&k->error, -(int)k->error->code, "run '%s'", file);
        return false;
    }
    (void)uv_timer_start(&k->timer, on_deadline, p->helper_ms, 0);
    return true;
}

static void on_found(uv_timer_t *timer)
{
    credentials_tell(container_of(timer, struct agx_credentials_lookup, timer));
}

struct agx_credentials_lookup *
agx_credentials_lookup_start(struct agx_loop *l, const struct agx_credentials_lookup_params *params,
                             agx_credentials_fn done, void *user)
{
    struct agx_credentials_lookup *k = agx_new(struct agx_credentials_lookup);
    _cleanup_json_ json_t *config = NULL;
    const char *helper;

    k->loop = l;
    k->done = done;
    k->user = user;
    k->out = -1;
    k->key =
        credentials_copy(strcmp(params->registry, "docker.io") == 0 ? HUB_KEY : params->registry);
    (void)uv_timer_init(agx_loop_uv(l), &k->timer); /* never fails */
    k->timer_open = true;
    config = read_config(params->env, &k->error);
    helper = text_of(json_object_get(config, "credHelpers"), k->key);
    if (!helper)
        helper = text_of(config, "credsStore");
    if (helper && start_helper(k, params, helper))
        return k;
    if (!helper)
        keep_entry(k, find_entry(json_object_get(config, "auths"), k->key));
    (void)uv_timer_start(&k->timer, on_found, 0, 0);
    return k;
}

void agx_credentials_lookup_cancel(struct agx_credentials_lookup *k)
{
    if (!k)
        return;
    k->done = NULL;
    if (k->child)
        agx_child_kill_group(k->child, SIGKILL);
    uv_close((uv_handle_t *)&k->timer, on_timer_closed);
}
