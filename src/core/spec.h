/*
 * spec.h: what a sandbox should be: the request's create_spec, a YAML file, or both merged.
 *
 * A spec is plain data that owns its strings. agx_spec_accept() validates a foreign spec, which may
 * then be stored and never changes again.
 */
#ifndef AGX_CORE_SPEC_H
#define AGX_CORE_SPEC_H

#include "core/pairs.h"

#include <stdint.h>

/* An absent duration, as opposed to zero. */
#define AGX_NS_UNSET INT64_MIN

/* Whether files in a writable mount may have setuid and setgid bits. */
enum agx_suid {
    AGX_SUID_DENY,  /* they cannot be set */
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

/* The numbers of the wire; an unaccepted spec may hold others. */
enum agx_protocol { AGX_PROTOCOL_TCP, AGX_PROTOCOL_UDP, AGX_PROTOCOL_SCTP, AGX_PROTOCOL_COUNT };

struct agx_port {
    uint32_t container_port, host_port;
    int32_t protocol;
};

struct agx_healthcheck {
    bool set; /* false: no healthcheck, and the rest is empty */
    struct agx_words test;
    int64_t interval_ns, timeout_ns, start_period_ns, start_interval_ns; /* or AGX_NS_UNSET */
    uint32_t retries;                                                    /* 0: not set */
};

/* As users write them; agx_limits_parse() gives the numbers. */
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

/* A sandbox's network access. */
enum agx_network {
    AGX_NETWORK_NAT,    /* outbound, except the host and other sandboxes */
    AGX_NETWORK_NONE,   /* only loopback */
    AGX_NETWORK_EGRESS, /* only the entries of `egress` */
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

/* Parsed limits; 0: no limit. */
struct agx_limits {
    int64_t cpu_millicores, memory_bytes, disk_bytes;
};

void agx_spec_init(struct agx_spec *s);
/* Also for a half-built spec; empty afterwards, as after init. Accepts NULL. */
void agx_spec_done(struct agx_spec *s);
/* `to` is overwritten; on failure there is nothing to free. */
int agx_spec_copy(struct agx_spec *to, const struct agx_spec *from,
                  struct agx_error **err) AGX_MUST_CHECK;

/* Does it have a writable mount where setuid bits are not allowed? */
bool agx_spec_needs_suid_guard(const struct agx_spec *s);

/* Each adds an empty element; *ret is borrowed until the next add. -AGX_INVALID_ARGUMENT past
 * AGX_SPEC_ITEMS_MAX. */
int agx_spec_add_mount(struct agx_spec *s, struct agx_mount **ret,
                       struct agx_error **err) AGX_MUST_CHECK;
int agx_spec_add_copy(struct agx_spec *s, struct agx_copy **ret,
                      struct agx_error **err) AGX_MUST_CHECK;
int agx_spec_add_port(struct agx_spec *s, struct agx_port **ret,
                      struct agx_error **err) AGX_MUST_CHECK;
int agx_spec_add_companion(struct agx_spec *s, struct agx_companion **ret,
                           struct agx_error **err) AGX_MUST_CHECK;

/* For a copy that outlives its spec. `to` is empty; after a failure only free it. */
int agx_companion_copy(struct agx_companion *to, const struct agx_companion *from,
                       struct agx_error **err) AGX_MUST_CHECK;
void agx_companion_done(struct agx_companion *c);

/*
 * Merges `over` (the request) into `base` (the YAML file): set values replace, maps are joined with
 * `over` winning, lists are appended, duplicate tools are removed, a command replaces the whole
 * one. After a failure only agx_spec_done() may be called on `base`.
 */
int agx_spec_merge(struct agx_spec *base, const struct agx_spec *over,
                   struct agx_error **err) AGX_MUST_CHECK;

/* The kind of a host path, by lstat(2). */
enum agx_path_kind {
    AGX_PATH_FILE,
    AGX_PATH_DIRECTORY,
    AGX_PATH_SOCKET,
    AGX_PATH_SYMLINK,
    AGX_PATH_OTHER,
};

/* Host facts for agx_spec_accept(): core itself does no I/O. */
struct agx_spec_host {
    const char *home;         /* for "~" in sources; absolute */
    const char *sandbox_home; /* for "~" in targets; absolute */
    /* Does not follow a symlink at the end. On failure its message becomes part of ours. */
    int (*look)(void *user, const char *path, enum agx_path_kind *ret, struct agx_error **err);
    void *user;
    bool whole_tools; /* builtin tools have no parts (core/tool.h) */
    /* Names of companions need not be DNS labels; blanks, control characters and '#' are refused
     * all the same. */
    bool any_companion_names;
};

/*
 * All checks, in the order that clients rely on; the first failure is the error
 * (-AGX_INVALID_ARGUMENT). Makes paths absolute, without "~", "." and "..". After a failure only
 * agx_spec_done() may be called.
 */
int agx_spec_accept(struct agx_spec *s, const struct agx_spec_host *host,
                    struct agx_error **err) AGX_MUST_CHECK;

/* `field` is the prefix of field names in messages: "", or "companion_containers[db].". */
int agx_limits_parse(const struct agx_limit_texts *texts, const char *field, struct agx_limits *ret,
                     struct agx_error **err) AGX_MUST_CHECK;

/* "tcp", "udp", "sctp". */
const char *agx_protocol_name(enum agx_protocol p);

/*
 * How long a companion may take from its start to become healthy, by its healthcheck, before its
 * post-start commands are given up.
 */
int64_t agx_healthcheck_budget_ns(const struct agx_healthcheck *h);

#endif
