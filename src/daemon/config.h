/*
 * config.h: the daemon's configuration: one table of keys, read from YAML and written as YAML.
 *
 * A key is "section.name", or a name at the top level. Unknown keys are refused. An invalid value
 * is refused with the file, the line, the key and the allowed values.
 */
#ifndef AGX_DAEMON_CONFIG_H
#define AGX_DAEMON_CONFIG_H

#include "backend/docker/control_mode.h"
#include "base/buf.h"
#include "base/log.h"
#include "daemon/manager/manager.h"
#include "grpc/server.h"
#include "image/images.h"
#include "store/store_lmdb.h"

/* User ids that may use the daemon, in addition to its own user and root. */
struct agx_config_uids {
    uint32_t ids[AGX_ALLOW_UIDS_MAX];
    size_t len;
};

/* For the Docker backend: see agx_docker_config. */
struct agx_config_docker {
    char *pool, *init; /* owned; NULL: AGX_SUBNETS_POOL, the installed init */
    uint32_t pool_prefix, networks_ready, pids;
    enum agx_docker_control control;
    bool isolation_off;
};

/* For the images that the daemon stores itself. */
struct agx_config_images {
    struct agx_images_config store;
    char *insecure_registries; /* "host:port,..."; owned; NULL: none */
};

/* For the native backend: see agx_native_config. */
struct agx_config_native {
    char *pool, *init; /* owned; NULL: AGX_SUBNETS_POOL, the installed init */
    uint32_t id_base, ready, pids;
};

/* Fields of the subsystems that no key sets are filled in where each subsystem is opened. */
struct agx_config {
    char *backend; /* "NAME" or "NAME:TARGET"; empty: not set. Owned. */
    bool compat;   /* serve the programs of agents-sandbox too */
    struct agx_config_uids allow_uids;
    bool lan_blocked; /* blocks private addresses outside the host too */
    struct agx_config_docker docker;
    struct agx_config_images images;
    struct agx_config_native native;
    struct agx_manager_config manager;
    struct agx_grpc_config rpc;
    struct agx_store_lmdb_config store;
    uint32_t subscribers_per_uid; /* 0: no limit */
    struct agx_log_config log;
    uint64_t log_file_max;                         /* bytes of the log file before it is rotated */
    uint32_t log_keep;                             /* rotated files that are kept */
    uint64_t log_check_ms;                         /* how often the file's size is checked */
    uint64_t shutdown_grace_ms, shutdown_limit_ms; /* for running calls; for the whole shutdown */
};

/* The defaults: those of the subsystems, and these. */
#define AGX_CONFIG_INIT                                                                            \
    {                                                                                              \
        .docker = { .pool_prefix = AGX_SUBNETS_PREFIX, .pids = AGX_DOCKER_PIDS },                  \
        .native = { .id_base = AGX_NSSET_ID_BASE,                                                  \
                    .ready = AGX_NSSET_READY,                                                      \
                    .pids = AGX_NATIVE_PIDS },                                                     \
        .images = { .store = AGX_IMAGES_CONFIG_INIT }, .manager = AGX_MANAGER_CONFIG_INIT,         \
        .rpc = AGX_GRPC_CONFIG_INIT, .store = AGX_STORE_LMDB_CONFIG_INIT,                          \
        .log = AGX_LOG_CONFIG_INIT, .subscribers_per_uid = AGX_SUBSCRIBERS_PER_UID,                \
        .log_file_max = AGX_LOG_FILE_MAX, .log_keep = AGX_LOG_FILES_KEPT,                          \
        .log_check_ms = AGX_LOG_CHECK_MS, .shutdown_grace_ms = AGX_SHUTDOWN_GRACE_MS,              \
        .shutdown_limit_ms = AGX_SHUTDOWN_LIMIT_MS                                                 \
    }

/* Accepts NULL. */
void agx_config_done(struct agx_config *c);

/* Sets the keys that the file has; `name` names the file in messages. On -AGX_INVALID_ARGUMENT
 * some keys may already be set. */
int agx_config_read(struct agx_config *c, struct agx_str yaml, const char *name,
                    struct agx_error **err) AGX_MUST_CHECK;

/* Sets one key, from the command line. */
int agx_config_set(struct agx_config *c, const char *key, const char *value,
                   struct agx_error **err) AGX_MUST_CHECK;

/* Checks that concern more than one key. */
int agx_config_check(const struct agx_config *c, struct agx_error **err) AGX_MUST_CHECK;

/* Appends all keys with values and meanings, as YAML that reads back to the same values. */
int agx_config_print(const struct agx_config *c, struct agx_buf *out) AGX_MUST_CHECK;

#endif
