/*
 * spec.h: what a sandbox is to be: the request's create_spec, a YAML file, or both joined.
 *
 * A spec is plain data that it owns. agx_spec_accept() turns one from outside into one that may be
 * stored; after that it never changes.
 */
#ifndef AGX_CORE_SPEC_H
#define AGX_CORE_SPEC_H

#include "core/pairs.h"

#include <stdint.h>

/* A duration that is not there, unlike one of zero. */
#define AGX_NS_UNSET INT64_MIN

/* What a writable mount has of the setuid and setgid bits of files. */
enum agx_suid {
    AGX_SUID_DENY,  /* none is set */
    AGX_SUID_ALLOW, /* as anywhere in the sandbox */
    AGX_SUID_COUNT,
};

struct agx_mount {
    char *source, *target;
    bool writable;
    int32_t suid; /* enum agx_suid */
};

struct agx_copy {
    char *source, *target;
    struct agx_words exclude_patterns;
};

/* The numbers are those of the wire; the spec may hold others until it was accepted. */
enum agx_protocol { AGX_PROTOCOL_TCP, AGX_PROTOCOL_UDP, AGX_PROTOCOL_SCTP, AGX_PROTOCOL_COUNT };

struct agx_port {
    uint32_t container_port, host_port;
    int32_t protocol;
};

struct agx_healthcheck {
    bool set; /* false: there is none, and the rest is empty */
    struct agx_words test;
    int64_t interval_ns, timeout_ns, start_period_ns, start_interval_ns; /* or AGX_NS_UNSET */
    uint32_t retries;                                                    /* 0: not set */
};

/* As people write them; agx_limits_parse() has the numbers. */
struct agx_limit_texts {
    char *cpu, *memory, *disk; /* NULL: no limit */
};

struct agx_companion {
    char *name, *image;
    struct agx_pairs envs;
    struct agx_healthcheck healthcheck;
    struct agx_words post_start_on_primary;
    struct agx_words command; /* empty: the image's */
    struct agx_limit_texts limits;
};

/* How much of the network a sandbox sees. */
enum agx_network {
    AGX_NETWORK_NAT,    /* outbound, but for the host and other sandboxes */
    AGX_NETWORK_NONE,   /* loopback alone */
    AGX_NETWORK_EGRESS, /* only what `egress` names */
    AGX_NETWORK_COUNT,
};

struct agx_spec {
    char *image;
    struct agx_mount *mounts;
    size_t mounts_len;
    struct agx_copy *copies;
    size_t copies_len;
    struct agx_port *ports;
    size_t ports_len;
    struct agx_companion *companions;
    size_t companions_len;
    struct agx_words builtin_tools;
    struct agx_pairs labels;
    struct agx_pairs envs;
    int64_t idle_ttl_ns;      /* AGX_NS_UNSET: the daemon's default; 0: never stopped for idling */
    struct agx_words command; /* empty: the daemon's own idle loop */
    struct agx_limit_texts limits;
    char *gpus; /* NULL or "all" */
    int32_t network;
    struct agx_words egress; /* see core/egress.h */
};

/* The numbers of limits; 0: no limit. */
struct agx_limits {
    int64_t cpu_millicores, memory_bytes, disk_bytes;
};

void agx_spec_init(struct agx_spec *s);
/* Also for a half-built one; empty afterwards, as after init. Accepts NULL. */
void agx_spec_done(struct agx_spec *s);
/* `to` is overwritten; nothing is to be freed on failure. */
int agx_spec_copy(struct agx_spec *to, const struct agx_spec *from,
                  struct agx_error **err) AGX_MUST_CHECK;

/* Has it a writable mount where setuid bits are not allowed? */
bool agx_spec_needs_suid_guard(const struct agx_spec *s);

/* Each adds an element with nothing in it; *ret is borrowed until the next add.
 * -AGX_INVALID_ARGUMENT past AGX_SPEC_ITEMS_MAX. */
int agx_spec_add_mount(struct agx_spec *s, struct agx_mount **ret,
                       struct agx_error **err) AGX_MUST_CHECK;
int agx_spec_add_copy(struct agx_spec *s, struct agx_copy **ret,
                      struct agx_error **err) AGX_MUST_CHECK;
int agx_spec_add_port(struct agx_spec *s, struct agx_port **ret,
                      struct agx_error **err) AGX_MUST_CHECK;
int agx_spec_add_companion(struct agx_spec *s, struct agx_companion **ret,
                           struct agx_error **err) AGX_MUST_CHECK;

/* For one that outlives its spec. `to` holds nothing yet; after a failure it is only to be done. */
int agx_companion_copy(struct agx_companion *to, const struct agx_companion *from,
                       struct agx_error **err) AGX_MUST_CHECK;
void agx_companion_done(struct agx_companion *c);

/*
 * Lays `over` (the request) on `base` (the YAML file): values that are set replace, maps join with
 * `over` winning, lists are appended, tools named twice count once, a command replaces the whole.
 * On failure `base` is good for nothing but agx_spec_done().
 */
int agx_spec_merge(struct agx_spec *base, const struct agx_spec *over,
                   struct agx_error **err) AGX_MUST_CHECK;

/* What a path names on the host, by lstat(2). */
enum agx_path_kind {
    AGX_PATH_FILE,
    AGX_PATH_DIRECTORY,
    AGX_PATH_SOCKET,
    AGX_PATH_SYMLINK,
    AGX_PATH_OTHER,
};

/* What acceptance must know of the host: core itself looks at nothing. */
struct agx_spec_host {
    const char *home;         /* of "~" in sources; absolute */
    const char *sandbox_home; /* of "~" in targets; absolute */
    /* Looks without following a symlink at the end. A failure's message becomes part of ours. */
    int (*look)(void *user, const char *path, enum agx_path_kind *ret, struct agx_error **err);
    void *user;
    bool whole_tools; /* builtin tools have no parts (core/tool.h) */
};

/*
 * All checks, in the order that clients know; the first that fails is the error
 * (-AGX_INVALID_ARGUMENT). Paths come out absolute, without "~", "." and "..". The spec is good
 * for nothing but agx_spec_done() after a failure.
 */
int agx_spec_accept(struct agx_spec *s, const struct agx_spec_host *host,
                    struct agx_error **err) AGX_MUST_CHECK;

/* `field` is the path of what has the limits in messages: "", or "companion_containers[db].". */
int agx_limits_parse(const struct agx_limit_texts *texts, const char *field, struct agx_limits *ret,
                     struct agx_error **err) AGX_MUST_CHECK;

/* "tcp", "udp", "sctp". */
const char *agx_protocol_name(enum agx_protocol p);

/*
 * How long a companion has from its start to become healthy before its post-start commands are
 * given up, by its healthcheck.
 */
int64_t agx_healthcheck_budget_ns(const struct agx_healthcheck *h);

#endif
