/* config_table.c: every key, once: where it is stored, what is allowed, its meaning. */
#include "daemon/config_internal.h"

#include "base/banned.h"

/* Longer than any useful value, and far from where sums overflow. */
#define SPAN_MAX_MS ((uint64_t)3650 * 24 * 3600 * 1000)
#define NS_PER_MS 1000000u
#define NS_PER_S 1000000000u
#define SPAN_MAX_NS (SPAN_MAX_MS * NS_PER_MS)
#define COUNT_MAX 1000000000u
#define SIZE_MAX_BYTES ((uint64_t)1 << 50)

#define AT(field)                                                                                  \
    .offset = offsetof(struct agx_config, field),                                                  \
    .width = sizeof(((struct agx_config *)NULL)->field)

#define FLAG(key, field, text)                                                                     \
    {                                                                                              \
        .name = (key), .kind = AGX_CONFIG_FLAG, AT(field), .max = 1, .means = (text)               \
    }
#define COUNT(key, field, least, most, text)                                                       \
    {                                                                                              \
        .name = (key), .kind = AGX_CONFIG_COUNT, AT(field), .min = (least), .max = (most),         \
        .means = (text)                                                                            \
    }
#define SIZE(key, field, least, most, text)                                                        \
    {                                                                                              \
        .name = (key), .kind = AGX_CONFIG_SIZE, AT(field), .min = (least), .max = (most),          \
        .means = (text)                                                                            \
    }
#define SPAN(key, field, unit, least, most, text)                                                  \
    {                                                                                              \
        .name = (key), .kind = AGX_CONFIG_SPAN, AT(field), .unit_ns = (unit), .min = (least),      \
        .max = (most), .means = (text)                                                             \
    }
/* In milliseconds, at least one. */
#define SPAN_MS(key, field, text) SPAN(key, field, NS_PER_MS, 1, SPAN_MAX_MS, text)
#define CHOICE(key, field, list, text)                                                             \
    {                                                                                              \
        .name = (key), .kind = AGX_CONFIG_CHOICE, AT(field), .words = (list),                      \
        .max = AGX_ARRAY_LEN(list) - 2, .means = (text)                                            \
    }

#define TEXT(key, field, otherwise, text)                                                          \
    {                                                                                              \
        .name = (key), .kind = AGX_CONFIG_TEXT, AT(field), .preset = (otherwise), .means = (text)  \
    }

static const char *const compat_words[] = { "none", "agbox", NULL };
static const char *const level_words[] = { "debug", "info", "warn", "error", NULL };
static const char *const format_words[] = { "logfmt", "json", NULL };
static const char *const lan_words[] = { "allow", "block", NULL };
static const char *const isolation_words[] = { "required", "off", NULL };
/* In the order of enum agx_docker_control. */
static const char *const control_words[] = { "auto", "pidfd", "stdio", "engine", NULL };

const struct agx_config_key agx_config_keys[] = {
    TEXT("backend", backend, NULL,
         "which backend makes sandboxes: native (Linux only), docker or docker:HOST; with compat "
         "the "
         "default is docker"),
    CHOICE("compat", compat, compat_words,
           "other clients to serve beside our own: none, or agbox (agents-sandbox)"),
    { .name = "allow_uids",
      .kind = AGX_CONFIG_UIDS,
      AT(allow_uids),
      .means = "user ids that may use the daemon, beside its own user and root; the socket "
               "is then open to all local users, and the daemon checks each caller's user id" },

    CHOICE("log.level", log.level, level_words, "the lowest level that is logged"),
    CHOICE("log.format", log.format, format_words, "logfmt for people, json for programs"),
    SIZE("log.max_size", log_file_max, 1, SIZE_MAX_BYTES,
         "the log file is rotated to agentixd.log.1 at this size"),
    COUNT("log.keep", log_keep, 0, 1000, "how many rotated log files are kept"),
    SPAN_MS("log.check", log_check_ms, "how often the log file's size is checked"),

    SIZE("limits.message", rpc.message_max, 1 << 10, AGX_MESSAGE_MAX, "the largest request"),
    COUNT("limits.connections", rpc.conns_max, 1, COUNT_MAX,
          "concurrent client connections; fewer where the limit of open files is lower"),
    COUNT("limits.streams", rpc.streams_max, 1, 1 << 20, "concurrent calls on one connection"),
    COUNT("limits.sandboxes_per_uid", manager.sandboxes_per_uid, 0, COUNT_MAX,
          "sandboxes per user; 0: no limit"),
    COUNT("limits.execs_per_uid", manager.execs_per_uid, 0, COUNT_MAX,
          "concurrent commands per user; 0: no limit"),
    COUNT("limits.subscribers_per_uid", subscribers_per_uid, 0, COUNT_MAX,
          "event streams per user; 0: no limit"),

    SPAN("sandbox.idle_ttl", manager.idle_ttl_ns, 1, 0, SPAN_MAX_NS,
         "stop a sandbox that was idle for this long; 0: never"),
    SPAN("sandbox.cleanup_ttl", manager.cleanup_ttl_ns, 1, 1, SPAN_MAX_NS,
         "delete a sandbox this long after its stop, and purge it this long after its delete"),
    SPAN_MS("sandbox.sweep", manager.sweep_ms, "how often idle_ttl and cleanup_ttl are checked"),
    SPAN_MS("sandbox.look", manager.look_ms,
            "how often the backend is asked what runs if it reports no events"),
    SPAN("sandbox.stop_grace", manager.stop_grace_ms, NS_PER_MS, 0, SPAN_MAX_MS,
         "from TERM to KILL when a sandbox is stopped"),

    SPAN("exec.grace", manager.exec_grace_ms, NS_PER_MS, 0, SPAN_MAX_MS,
         "from TERM to KILL when a command is cancelled or past its deadline"),
    SIZE("exec.log_head", manager.log_head_max, 1, SIZE_MAX_BYTES,
         "how many of the first bytes of a command's output are kept"),
    SIZE("exec.log_tail", manager.log_tail_max, 1, SIZE_MAX_BYTES,
         "how many of the last bytes of a command's output are kept"),

    CHOICE("network.lan", lan_blocked, lan_words,
           "whether sandboxes may reach private addresses of other machines; they never reach the "
           "host and other sandboxes"),

    CHOICE(
        "docker.control", docker.control, control_words,
        "how commands enter a sandbox: pidfd (needs root), stdio, engine (for an engine on another "
        "machine), or auto"),
    CHOICE("docker.isolation", docker.isolation_off, isolation_words,
           "`required`: the daemon does not start without CAP_NET_ADMIN, and an engine on another "
           "machine gets no sandboxes with a network, because it could not isolate them"),
    TEXT("docker.pool", docker.pool, AGX_SUBNETS_POOL, "addresses for the networks of sandboxes"),
    COUNT("docker.pool_prefix", docker.pool_prefix, 1, 126,
          "the prefix length of each sandbox network"),
    COUNT("docker.networks_ready", docker.networks_ready, 0, AGX_DOCKER_READY_MAX,
          "networks prepared in advance for the next sandboxes; not with compat"),
    COUNT("docker.pids", docker.pids, 0, COUNT_MAX,
          "concurrent processes in each container; 0: no limit"),
    TEXT("docker.init", docker.init, NULL,
         "the program agentix-init; empty: beside agentixd, or where it was installed"),

    TEXT("images.insecure_registries", images.insecure_registries, NULL,
         "registries (host:port, separated by commas) that are used without TLS, as those on the "
         "loopback always are"),
    SIZE("images.import_max", images.store.import_max_bytes, 1 << 10, SIZE_MAX_BYTES,
         "the largest archive that may be imported"),
    SIZE("images.layer_max", images.store.limits.bytes, 1 << 10, SIZE_MAX_BYTES,
         "the largest layer: the total size of its files"),
    COUNT("images.layer_entries", images.store.limits.entries, 1, COUNT_MAX,
          "the most files and directories in a layer"),

    TEXT("native.pool", native.pool, AGX_SUBNETS_POOL, "addresses for the networks of sandboxes"),
    COUNT("native.id_base", native.id_base, 65536, 0xf0000000u,
          "the first of the host user and group ids for sandboxes; each sandbox takes "
          "65536 of them"),
    COUNT("native.ready", native.ready, 0, AGX_NSSET_READY_MAX,
          "namespace sets prepared in advance for the next sandboxes"),
    COUNT("native.pids", native.pids, 1, COUNT_MAX,
          "concurrent processes in each sandbox or companion"),
    TEXT("native.init", native.init, NULL,
         "the program agentix-init; empty: beside agentixd, or where it was installed"),

    SPAN_MS("crash.window", manager.watch.window_ms,
            "a main process that keeps failing for longer than this is not restarted again"),
    SPAN_MS("crash.stable", manager.watch.stable_ms,
            "a main process that ran for this long counts as recovered"),
    SPAN_MS("crash.first_retry", manager.watch.first_retry_ms,
            "pause before its first restart; doubles each time"),
    SPAN_MS("crash.max_retry", manager.watch.max_retry_ms, "the longest pause between restarts"),

    SPAN_MS("deadline.create", manager.create_ms,
            "how long the backend may take to create a sandbox; this may include an image pull"),
    SPAN_MS("deadline.resume", manager.resume_ms, "to resume a sandbox after a stop"),
    SPAN_MS("deadline.stop", manager.stop_ms, "to stop a sandbox, including the grace period"),
    SPAN_MS("deadline.delete", manager.delete_ms,
            "to delete a sandbox, including the grace period"),
    SPAN_MS("deadline.look", manager.look_deadline_ms, "to report what runs"),
    SPAN_MS("deadline.exec_start", manager.exec_start_ms, "to start a command"),
    SPAN_MS(
        "deadline.abandon", manager.abandon_ms,
        "an operation past its deadline is cancelled; if that is not confirmed in this time, it "
        "is abandoned"),

    SPAN_MS("retry.first", manager.retry_first_ms,
            "pause before a retry after a disk or backend failure; doubles each time"),
    SPAN_MS("retry.max", manager.retry_max_ms, "the longest pause between retries"),

    SIZE("store.map_size", store.map_bytes, 1 << 20, SIZE_MAX_BYTES,
         "the store's initial address space; doubles as needed"),
    SIZE("store.map_max", store.map_max, 1 << 20, SIZE_MAX_BYTES,
         "the largest size of the store's file"),
    SIZE("store.queue", store.queue_max, 1 << 20, SIZE_MAX_BYTES,
         "bytes that may wait to be written to the disk"),
    FLAG("store.grouping", store.grouping,
         "several requests share one write; turn it off only to measure the gain"),
    SPAN("store.verify", store.verify_s, NS_PER_S, 1, SPAN_MAX_MS / 1000,
         "how long the check after an unclean exit may take"),

    SPAN("shutdown.grace", shutdown_grace_ms, NS_PER_MS, 0, 4000,
         "how long running calls may continue after SIGTERM"),
    SPAN("shutdown.limit", shutdown_limit_ms, NS_PER_MS, 1, 5000,
         "how long the whole shutdown may take, whatever clients and disks do"),
};

const size_t agx_config_keys_len = AGX_ARRAY_LEN(agx_config_keys);
