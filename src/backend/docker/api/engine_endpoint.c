/* engine_endpoint.c: finds the engine endpoint. */
#include "backend/docker/api/engine_endpoint.h"

#include "base/fd.h"
#include "base/json.h"
#include "base/limits.h"
#include "image/credentials.h"
#include "image/digest.h"

#include <fcntl.h>

#include "base/banned.h"

#define DEFAULT_HOST "unix:///var/run/docker.sock"
/* libcurl needs a host in the URL even for a Unix socket. */
#define SOCKET_BASE "http://docker"

/* An empty variable counts as not set. */
static const char *engine_endpoint_set(const char *value)
{
    return value && *value ? value : NULL;
}

AGX_PRINTF(2, 3) static int print(char **ret, const char *fmt, ...)
{
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vasprintf(ret, fmt, ap);
    va_end(ap);
    if (n < 0)
        *ret = NULL;
    return n < 0 ? -AGX_RESOURCE_EXHAUSTED : 0;
}

void agx_engine_endpoint_done(struct agx_engine_endpoint *w)
{
    if (!w)
        return;
    free(w->host);
    free(w->unix_socket);
    free(w->base);
    free(w->ca_file);
    free(w->cert_file);
    free(w->key_file);
    *w = (struct agx_engine_endpoint){ 0 };
}

/* "host[:port][/path]" for TCP. An IPv6 address is in brackets. */
static int use_tcp(struct agx_engine_endpoint *w, const char *rest, bool tls,
                   struct agx_error **err)
{
    struct agx_str host = { rest, strcspn(rest, "/") };
    const char *path = rest + host.len, *bracket = memchr(host.ptr, ']', host.len);
    struct agx_str behind = bracket ? (struct agx_str){ bracket, (size_t)(path - bracket) } : host;
    bool has_port = agx_str_find(behind, ':') < behind.len;
    const char *port = has_port ? "" : tls ? ":2376" : ":2375";

    if (host.len == 0)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "Docker host '%s' names no host", w->host);
    if (strcspn(rest, " \t\r\n?#@") != strlen(rest))
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "Docker host '%s' is not an address",
                             w->host);
    if (strcmp(path, "/") == 0)
        path = "";
    if (print(&w->base, "%s://%.*s%s%s", tls ? "https" : "http", AGX_STR_ARG(host), port, path) < 0)
        return agx_error_no_memory(err);
    return 0;
}

static int use_host(struct agx_engine_endpoint *w, const char *host, bool tls,
                    struct agx_error **err)
{
    struct agx_str h = agx_str_from(host);

    w->host = strdup(host);
    if (!w->host)
        return agx_error_no_memory(err);
    if (agx_str_starts(h, AGX_STR("unix://"))) {
        const char *path = host + strlen("unix://");

        if (*path != '/')
            return agx_error_set(err, AGX_INVALID_ARGUMENT,
                                 "Docker host '%s': the socket's path must be absolute", host);
        w->is_local = true;
        if (print(&w->unix_socket, "%s", path) < 0 || print(&w->base, SOCKET_BASE) < 0)
            return agx_error_no_memory(err);
        return 0;
    }
    if (agx_str_starts(h, AGX_STR("tcp://")))
        return use_tcp(w, host + strlen("tcp://"), tls, err);
    if (agx_str_starts(h, AGX_STR("http://")))
        return use_tcp(w, host + strlen("http://"), tls, err);
    if (agx_str_starts(h, AGX_STR("https://")))
        return use_tcp(w, host + strlen("https://"), true, err);
    return agx_error_set(err, AGX_INVALID_ARGUMENT,
                         "Docker host '%s': only unix:// and tcp:// are supported", host);
}

/* The file in `dir`; NULL where it does not exist. */
static int use_file(char **slot, const char *dir, const char *name, struct agx_error **err)
{
    if (print(slot, "%s/%s", dir, name) < 0)
        return agx_error_no_memory(err);
    if (access(*slot, F_OK) < 0) {
        free(*slot);
        *slot = NULL;
    }
    return 0;
}

static int use_certificates(struct agx_engine_endpoint *w, const char *dir, struct agx_error **err)
{
    if (use_file(&w->ca_file, dir, "ca.pem", err) < 0 ||
        use_file(&w->cert_file, dir, "cert.pem", err) < 0 ||
        use_file(&w->key_file, dir, "key.pem", err) < 0)
        return -AGX_RESOURCE_EXHAUSTED;
    return 0;
}

/* A host from the environment or our own target: its TLS settings come from the environment. */
static int find_host(struct agx_engine_endpoint *w, const char *host,
                     const struct agx_docker_env *env, struct agx_error **err)
{
    bool verify = engine_endpoint_set(env->tls_verify),
         tls = verify || engine_endpoint_set(env->cert_path);
    _cleanup_free_ char *config = NULL;
    int r = use_host(w, host, tls, err);

    if (r < 0 || w->is_local || !(tls || agx_str_starts(agx_str_from(w->base), AGX_STR("https:"))))
        return r;
    w->insecure = tls && !verify;
    if (engine_endpoint_set(env->cert_path))
        return use_certificates(w, env->cert_path, err);
    config = agx_credentials_dir(env->config, env->home);
    return config ? use_certificates(w, config, err) : 0;
}

/* A JSON file of Docker's; *ret_value is NULL where there is no such file. */
static int read_json(const char *path, json_t **ret_value, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(AGX_JSON_MAX);
    struct agx_error *why = NULL;
    int r = agx_fd_read_file(AT_FDCWD, path, &text, &why);

    *ret_value = NULL;
    if (r == -AGX_NOT_FOUND) {
        why = agx_error_free(why);
        return 0;
    }
    if (r == 0)
        r = agx_json_parse(agx_buf_peek(&text), AGX_JSON_MAX, AGX_DEPTH_MAX, ret_value, &why);
    if (r == 0)
        return 0;
    agx_error_propagate(err, &why);
    return agx_error_wrap(err, r, "read Docker's '%s'", path);
}

/* The context that is chosen by name; *ret_name is owned, NULL: none. */
static int find_context(const struct agx_docker_env *env, const char *config, char **ret_name,
                        struct agx_error **err)
{
    _cleanup_free_ char *path = NULL;
    _cleanup_json_ json_t *json = NULL;
    const char *name = engine_endpoint_set(env->context);
    int r;

    *ret_name = NULL;
    if (!name && config) {
        if (print(&path, "%s/config.json", config) < 0)
            return agx_error_no_memory(err);
        r = read_json(path, &json, err);
        if (r < 0)
            return r;
        name = engine_endpoint_set(json_string_value(json_object_get(json, "currentContext")));
    }
    if (!name || strcmp(name, "default") == 0)
        return 0;
    return print(ret_name, "%s", name) < 0 ? agx_error_no_memory(err) : 0;
}

static int use_context(struct agx_engine_endpoint *w, const char *config, const char *name,
                       struct agx_error **err)
{
    char digest[AGX_DIGEST_SIZE];
    const char *id = digest + strlen("sha256:"); /* as Docker names the directories of a context */
    _cleanup_free_ char *path = NULL, *tls_dir = NULL;
    _cleanup_json_ json_t *json = NULL;
    const json_t *endpoint;
    const char *host;
    bool tls;
    int r;

    if (!config)
        return agx_error_set(err, AGX_FAILED_PRECONDITION,
                             "Docker context '%s': neither DOCKER_CONFIG nor HOME is set", name);
    r = agx_digest_of(agx_str_from(name), digest, err);
    if (r < 0)
        return r;
    if (print(&path, "%s/contexts/meta/%s/meta.json", config, id) < 0 ||
        print(&tls_dir, "%s/contexts/tls/%s/docker", config, id) < 0)
        return agx_error_no_memory(err);
    r = read_json(path, &json, err);
    if (r < 0)
        return agx_error_wrap(err, r, "Docker context '%s'", name);
    endpoint = json_object_get(json_object_get(json, "Endpoints"), "docker");
    host = engine_endpoint_set(json_string_value(json_object_get(endpoint, "Host")));
    if (!host)
        return agx_error_set(err, AGX_NOT_FOUND, "Docker context '%s' names no host in '%s'", name,
                             path);
    tls = access(tls_dir, F_OK) == 0;
    w->insecure = json_is_true(json_object_get(endpoint, "SkipTLSVerify"));
    r = use_host(w, host, tls || w->insecure, err);
    if (r < 0)
        return agx_error_wrap(err, r, "Docker context '%s'", name);
    return tls && !w->is_local ? use_certificates(w, tls_dir, err) : 0;
}

int agx_engine_endpoint_find(const char *target, const struct agx_docker_env *env,
                             struct agx_engine_endpoint *ret_where, struct agx_error **err)
{
    _cleanup_(agx_engine_endpoint_done) struct agx_engine_endpoint w = { 0 };
    _cleanup_free_ char *config = NULL, *context = NULL;
    const char *host = engine_endpoint_set(target) ? target : engine_endpoint_set(env->host);
    int r;

    if (host) {
        r = find_host(&w, host, env, err);
    } else {
        config = agx_credentials_dir(env->config, env->home);
        r = find_context(env, config, &context, err);
        if (r == 0)
            r = context ? use_context(&w, config, context, err)
                        : find_host(&w, DEFAULT_HOST, env, err);
    }
    if (r < 0)
        return r;
    *ret_where = w;
    w = (struct agx_engine_endpoint){ 0 };
    return 0;
}
