/*
 * engine_endpoint.h: the engine endpoint, found as Docker's own command line does.
 *
 * In this order: our target ("unix:///run/docker.sock"), DOCKER_HOST, the context that
 * DOCKER_CONTEXT names, or `currentContext` of config.json, and else /var/run/docker.sock. Unix
 * sockets and TCP, plain or with TLS; ssh:// and npipe:// are refused by name.
 */
#ifndef AGX_BACKEND_DOCKER_API_ENGINE_ENDPOINT_H
#define AGX_BACKEND_DOCKER_API_ENGINE_ENDPOINT_H

#include "base/error.h"

/* Values of the environment; each may be NULL, and an empty one counts as not set. Borrowed: main()
 * reads them. */
struct agx_docker_env {
    const char *host;        /* DOCKER_HOST */
    const char *context;     /* DOCKER_CONTEXT */
    const char *config;      /* DOCKER_CONFIG: the directory of config.json */
    const char *cert_path;   /* DOCKER_CERT_PATH */
    const char *tls_verify;  /* DOCKER_TLS_VERIFY */
    const char *api_version; /* DOCKER_API_VERSION */
    const char *home;        /* HOME */
    const char *path;        /* PATH, where credential helpers are */
    const char *const *all;  /* the whole environment, for the helpers; ends with NULL */
};

struct agx_engine_endpoint {
    char *host;                           /* as given by the user: "unix:///var/run/docker.sock" */
    char *unix_socket;                    /* its path; NULL: TCP */
    char *base;                           /* "http://engine", "https://host:2376" */
    char *ca_file, *cert_file, *key_file; /* with TLS, those that exist */
    bool insecure;                        /* TLS without verifying its certificate */
    bool is_local;                        /* a Unix socket: the engine is on this machine */
};

/* `target` is the text behind "docker:"; NULL or empty: from the environment. Writes *ret_where
 * only on success. */
int agx_engine_endpoint_find(const char *target, const struct agx_docker_env *env,
                             struct agx_engine_endpoint *ret_where,
                             struct agx_error **err) AGX_MUST_CHECK;

/* Accepts NULL and a half-built one. */
void agx_engine_endpoint_done(struct agx_engine_endpoint *w);

#endif
