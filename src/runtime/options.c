/* options.c: the options and variables of agentix-server; see options.h. */
#include "runtime/options.h"

#include "base/banned.h"
#include "base/duration.h"
#include "base/fd.h"
#include "base/size.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/in.h>
#include <stdio.h>

enum {
    TOKEN_MAX = 4096,
    MESSAGE_MIN = 4 << 10,
    MESSAGE_MOST = AGX_MESSAGE_MAX, /* what a worker accepts */
};

static const char help[] =
    "usage: agentix-server [options]\n"
    "\n"
    "Runs functions for remote clients: one worker process, one port or "
    "socket.\n"
    "\n"
    "Where it listens (default: TCP on 127.0.0.1, port 8000; with --socket alone, only there)\n"
    "  --host HOST          address for TCP [AGENTIX_BIND_HOST]\n"
    "  --port PORT          port for TCP; 0 takes a free one [AGENTIX_BIND_PORT]\n"
    "  --socket PATH        Unix socket, for its owner only (mode 0600)\n"
    "  --port-file PATH     write the TCP port there once it is bound\n"
    "\n"
    "Who may call\n"
    "  --token-file PATH    clients must bring the token in this file [AGENTIX_TOKEN]\n"
    "  --insecure           without a token: anybody, also from beyond this machine and as any "
    "user\n"
    "                       [AGENTIX_INSECURE=1]\n"
    "  --origin ORIGIN      web pages of this origin may call, such as https://example.org "
    "[AGENTIX_ORIGIN];\n"
    "                       those of the server's own address may without; may be repeated\n"
    "  --host-name NAME     without a token: a name by which clients may call us, beside "
    "localhost\n"
    "                       and addresses of the loopback [AGENTIX_HOST_NAME]; may be repeated\n"
    "\n"
    "What runs\n"
    "  --python PROGRAM     interpreter of the worker (default: the one beside agentix-server, "
    "else\n"
    "                       python3)\n"
    "  --path DIRS          directories of user code, separated by colons [AGENTIX_PATH]\n"
    "  --worker PROGRAM     another worker program, such as agentix-worker for C functions only\n"
    "  --package DIR        take the package `agentix` from there instead of the interpreter's "
    "own\n"
    "\n"
    "Limits\n"
    "  --max-message SIZE   largest message, up and down (default and most: 256m)\n"
    "  --max-calls N        calls of one client at a time (default 65536)\n"
    "  --resume TIME        how long a lost client may take to come back (default 1m)\n"
    "  --grace TIME         how long calls may go on after SIGTERM (default 5s)\n"
    "  --spin TIME          stay awake so long after a message while many come (default 200us; 0: "
    "never)\n"
    "\n"
    "  --log-level LEVEL    debug, info, warn, error (default info) [AGENTIX_LOG_LEVEL]\n"
    "  --log-format FORMAT  logfmt, json (default logfmt) [AGENTIX_LOG_FORMAT]\n"
    "  --log-dir DIR        keep what the worker prints in DIR/worker.log [AGENTIX_LOG_DIR]\n"
    "  --help, --version\n";

enum {
    OPT_HOST = 1000,
    OPT_PORT,
    OPT_SOCKET,
    OPT_PORT_FILE,
    OPT_TOKEN_FILE,
    OPT_INSECURE,
    OPT_ORIGIN,
    OPT_HOST_NAME,
    OPT_PYTHON,
    OPT_PATH,
    OPT_WORKER,
    OPT_PACKAGE,
    OPT_MAX_MESSAGE,
    OPT_MAX_CALLS,
    OPT_RESUME,
    OPT_GRACE,
    OPT_SPIN,
    OPT_LOG_LEVEL,
    OPT_LOG_FORMAT,
    OPT_LOG_DIR,
    OPT_HELP,
    OPT_VERSION,
};

static const struct option long_options[] = {
    { "host", required_argument, NULL, OPT_HOST },
    { "port", required_argument, NULL, OPT_PORT },
    { "socket", required_argument, NULL, OPT_SOCKET },
    { "port-file", required_argument, NULL, OPT_PORT_FILE },
    { "token-file", required_argument, NULL, OPT_TOKEN_FILE },
    { "insecure", no_argument, NULL, OPT_INSECURE },
    { "origin", required_argument, NULL, OPT_ORIGIN },
    { "host-name", required_argument, NULL, OPT_HOST_NAME },
    { "python", required_argument, NULL, OPT_PYTHON },
    { "path", required_argument, NULL, OPT_PATH },
    { "worker", required_argument, NULL, OPT_WORKER },
    { "package", required_argument, NULL, OPT_PACKAGE },
    { "max-message", required_argument, NULL, OPT_MAX_MESSAGE },
    { "max-calls", required_argument, NULL, OPT_MAX_CALLS },
    { "resume", required_argument, NULL, OPT_RESUME },
    { "grace", required_argument, NULL, OPT_GRACE },
    { "spin", required_argument, NULL, OPT_SPIN },
    { "log-level", required_argument, NULL, OPT_LOG_LEVEL },
    { "log-format", required_argument, NULL, OPT_LOG_FORMAT },
    { "log-dir", required_argument, NULL, OPT_LOG_DIR },
    { "help", no_argument, NULL, OPT_HELP },
    { "version", no_argument, NULL, OPT_VERSION },
    { NULL, 0, NULL, 0 },
};

static int parse_number(const char *what, const char *text, uint64_t max, uint64_t *ret,
                        struct agx_error **err)
{
    if (agx_parse_u64(agx_str_from(text), max, ret))
        return 0;
    return agx_error_set(err, AGX_INVALID_ARGUMENT, "%s '%s' is not a number from 0 to %llu", what,
                         text, (unsigned long long)max);
}

/* A time in units of `unit_ns`. */
static int parse_time(const char *what, const char *text, int64_t unit_ns, uint64_t *ret,
                      struct agx_error **err)
{
    int64_t ns;
    int r = agx_duration_parse(agx_str_from(text), &ns, err);

    if (r == 0 && ns < 0)
        r = agx_error_set(err, AGX_INVALID_ARGUMENT, "'%s' is negative", text);
    if (r < 0)
        return agx_error_wrap(err, r, "%s", what);
    *ret = (uint64_t)(ns / unit_ns);
    return 0;
}

static int set_token(struct agx_server_options *o, struct agx_str text, const char *where,
                     struct agx_error **err)
{
    while (text.len > 0 && strchr("\r\n\t ", text.ptr[text.len - 1]))
        text.len--;
    if (text.len == 0 || memchr(text.ptr, '\0', text.len))
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "the token in %s is empty or has a NUL",
                             where);
    o->server.has_token = true;
    agx_sha256(text, o->server.token_digest);
    return 0;
}

static int read_token(struct agx_server_options *o, const char *path, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(TOKEN_MAX);
    int r = agx_buf_reserve(&text, TOKEN_MAX); /* growing would leave copies in freed memory */

    if (r < 0)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "no memory for a token");
    r = agx_fd_read_file(AT_FDCWD, path, &text, err);
    if (r == 0)
        r = set_token(o, agx_buf_peek(&text), path, err);
    explicit_bzero(text.data, text.cap);
    return r;
}

static int too_many(const char *what, struct agx_error **err)
{
    return agx_error_set(err, AGX_INVALID_ARGUMENT, "more than %d of %s", AGX_CALLERS_MAX, what);
}

static int add_origin(struct agx_server_access *c, struct agx_str text, struct agx_error **err)
{
    if (c->n_origins == AGX_CALLERS_MAX)
        return too_many("--origin", err);
    if (!agx_origin_parse(text, &c->origins[c->n_origins]))
        return agx_error_set(
            err, AGX_INVALID_ARGUMENT,
            "--origin '%.*s' is invalid; write scheme://host, scheme://host:port, or "
            "null",
            AGX_STR_ARG(text));
    c->n_origins++;
    return 0;
}

static int add_host(struct agx_server_access *c, struct agx_str text, struct agx_error **err)
{
    if (c->n_hosts == AGX_CALLERS_MAX)
        return too_many("--host-name", err);
    if (!agx_authority_parse(text, &c->hosts[c->n_hosts]) || c->hosts[c->n_hosts].has_port)
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "--host-name '%.*s' is invalid; write a name or an address (IPv6 in "
                             "brackets), without a port",
                             AGX_STR_ARG(text));
    c->n_hosts++;
    return 0;
}

static int set_limit(struct agx_server_options *o, int option, const char *text,
                     struct agx_error **err)
{
    int64_t bytes = 0;
    uint64_t n = 0;
    int r;

    switch (option) {
    case OPT_MAX_MESSAGE:
        r = agx_size_parse(agx_str_from(text), &bytes, err);
        if (r == 0 && (bytes < MESSAGE_MIN || bytes > MESSAGE_MOST))
            r = agx_error_set(err, AGX_INVALID_ARGUMENT, "--max-message is from 4k to 256m");
        o->server.max_message = (size_t)bytes;
        return r;
    case OPT_MAX_CALLS:
        r = parse_number("--max-calls", text, 1 << 24, &n, err);
        o->server.max_calls = (size_t)n;
        return r;
    case OPT_RESUME:
        return parse_time("--resume", text, 1000000, &o->server.resume_ms, err);
    case OPT_GRACE:
        return parse_time("--grace", text, 1000000, &o->server.grace_ms, err);
    default:
        r = parse_time("--spin", text, 1000, &n, err);
        o->server.spin_us = (unsigned)AGX_MIN(n, 10000u);
        return r;
    }
}

static int set_log(struct agx_server_options *o, int option, const char *text,
                   struct agx_error **err)
{
    if (option == OPT_LOG_DIR) {
        o->server.log.dir = text;
        return 0;
    }
    if (option == OPT_LOG_LEVEL ? agx_log_level_parse(agx_str_from(text), &o->log.level)
                                : agx_log_format_parse(agx_str_from(text), &o->log.format))
        return 0;
    return agx_error_set(err, AGX_INVALID_ARGUMENT, "'%s' is not one of %s", text,
                         option == OPT_LOG_LEVEL ? "debug, info, warn, error" : "logfmt, json");
}

static int set_option(struct agx_server_options *o, int option, const char *text,
                      struct agx_error **err)
{
    uint64_t n = 0;
    int r;

    switch (option) {
    case OPT_HOST:
        o->server.host = text;
        o->host_given = true;
        return 0;
    case OPT_PORT:
        r = parse_number("--port", text, UINT16_MAX, &n, err);
        o->server.port = (uint16_t)n;
        o->port_given = true;
        return r;
    case OPT_SOCKET:
        o->server.socket_path = text;
        return 0;
    case OPT_PORT_FILE:
        o->server.port_file = text;
        return 0;
    case OPT_TOKEN_FILE:
        return read_token(o, text, err);
    case OPT_INSECURE:
        o->server.callers.insecure = true;
        return 0;
    case OPT_ORIGIN:
        return add_origin(&o->server.callers, agx_str_from(text), err);
    case OPT_HOST_NAME:
        return add_host(&o->server.callers, agx_str_from(text), err);
    case OPT_PYTHON:
        o->worker.python = text;
        return 0;
    case OPT_PATH:
        o->worker.path = text;
        return 0;
    case OPT_WORKER:
        o->worker.program = text;
        return 0;
    case OPT_PACKAGE:
        o->worker.package = text;
        return 0;
    case OPT_LOG_LEVEL:
    case OPT_LOG_FORMAT:
    case OPT_LOG_DIR:
        return set_log(o, option, text, err);
    default:
        return set_limit(o, option, text, err);
    }
}

/* Lists separated by blanks; options add to them. */
static int read_lists(struct agx_server_access *c, struct agx_error **err)
{
    static const struct {
        const char *name;
        int (*add)(struct agx_server_access *c, struct agx_str text, struct agx_error **err);
    } lists[] = { { "AGENTIX_ORIGIN", add_origin }, { "AGENTIX_HOST_NAME", add_host } };
    int r = 0;

    for (size_t i = 0; i < AGX_ARRAY_LEN(lists); i++) {
        struct agx_str rest = agx_str_from(getenv(lists[i].name)), part;

        while (rest.ptr && agx_str_split(&rest, ' ', &part)) {
            r = part.len > 0 ? lists[i].add(c, part, err) : 0;
            if (r < 0)
                return agx_error_wrap(err, r, "environment variable %s", lists[i].name);
        }
    }
    return 0;
}

/* Erases it from our memory too, because /proc/PID/environ reads it there. */
static int take_token_variable(struct agx_server_options *o, struct agx_error **err)
{
    char *value = getenv("AGENTIX_TOKEN");
    int r;

    if (!value || !*value)
        return 0;
    r = set_token(o, agx_str_from(value), "AGENTIX_TOKEN", err);
    explicit_bzero(value, strlen(value));
    return r;
}

/* The environment comes first, so that options win. */
static int read_environment(struct agx_server_options *o, struct agx_error **err)
{
    static const struct {
        const char *name;
        int option;
    } variables[] = {
        { "AGENTIX_PATH", OPT_PATH },           { "AGENTIX_LOG_DIR", OPT_LOG_DIR },
        { "AGENTIX_LOG_LEVEL", OPT_LOG_LEVEL }, { "AGENTIX_LOG_FORMAT", OPT_LOG_FORMAT },
        { "AGENTIX_BIND_HOST", OPT_HOST },      { "AGENTIX_BIND_PORT", OPT_PORT },
    };
    const char *value;
    int r = 0;

    for (size_t i = 0; r == 0 && i < AGX_ARRAY_LEN(variables); i++) {
        value = getenv(variables[i].name);
        if (value && *value) {
            r = set_option(o, variables[i].option, value, err);
            if (r < 0)
                return agx_error_wrap(err, r, "environment variable %s", variables[i].name);
        }
    }
    o->host_given = o->port_given = false; /* defaults for TCP do not enable it */
    value = getenv("AGENTIX_INSECURE");
    o->server.callers.insecure = value && strcmp(value, "1") == 0;
    r = read_lists(&o->server.callers, err);
    if (r < 0)
        return r;
    return take_token_variable(o, err);
}

static bool is_loopback(const char *host)
{
    struct in6_addr v6;
    struct in_addr v4;

    if (inet_pton(AF_INET, host, &v4) == 1)
        return (ntohl(v4.s_addr) >> 24) == 127;
    if (inet_pton(AF_INET6, host, &v6) == 1)
        return IN6_IS_ADDR_LOOPBACK(&v6);
    return strcmp(host, "localhost") == 0;
}

/* TCP is the default; with only a Unix socket there is none. */
int agx_server_options_settle(struct agx_server_options *o, struct agx_error **err)
{
    if (o->server.socket_path && !o->host_given && !o->port_given)
        o->server.host = NULL;
    if (!o->server.host || o->server.has_token)
        return 0;
    if (!is_loopback(o->server.host) && !o->server.callers.insecure)
        return agx_error_set(
            err, AGX_FAILED_PRECONDITION,
            "refusing to listen on '%s' without a token: whoever reaches it could run "
            "code here; give --token-file (or AGENTIX_TOKEN), or --insecure",
            o->server.host);
    AGX_LOG(AGX_LOG_WARN, "server.no_token", AGX_F_STR("host", o->server.host),
            AGX_F_STR("means",
                      o->server.callers.insecure
                          ? "whoever reaches it may run code in the worker"
                          : "whatever this user or root runs on this machine may run code in the "
                            "worker"));
    return 0;
}

int agx_server_options_read(struct agx_server_options *o, int argc, char **argv,
                            struct agx_error **err)
{
    int c, r;

    *o =
        (struct agx_server_options){ .server = AGX_SERVER_CONFIG_INIT, .log = AGX_LOG_CONFIG_INIT };
    o->server.host = "127.0.0.1";
    o->server.port = 8000;
    r = read_environment(o, err);
    while (r == 0 && (c = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        if (c == OPT_HELP) {
            (void)fputs(help, stdout);
            return 1 + EXIT_SUCCESS;
        }
        if (c == OPT_VERSION) {
            (void)printf("agentix-server %s\n", AGX_VERSION);
            return 1 + EXIT_SUCCESS;
        }
        if (c == '?') {
            (void)fputs("agentix-server: see agentix-server --help\n", stderr);
            return 1 + AGX_EXIT_USAGE;
        }
        r = set_option(o, c, optarg, err);
    }
    if (r == 0 && optind < argc)
        r = agx_error_set(err, AGX_INVALID_ARGUMENT, "unexpected argument '%s'", argv[optind]);
    return r;
}
