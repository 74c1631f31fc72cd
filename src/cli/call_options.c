/* call_options.c: reads the command line of `agentix call`. */
#include "cli/call_options.h"

#include "base/banned.h"
#include "base/duration.h"
#include "base/fd.h"

#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TOKEN_MAX = 4096,
    NS_PER_MS = 1000000,
};

const char agx_call_help[] =
    "usage: agentix call URL TARGET [KEY=TEXT | KEY:=JSON]... [options]\n"
    "\n"
    "Calls a function in a runtime and prints its result as JSON, on one line.\n"
    "\n"
    "  URL                 unix:///path or http://host:port\n"
    "  TARGET              module::function of Python, or c:library::function\n"
    "  KEY=TEXT            a named argument, as text\n"
    "  KEY:=JSON           a named argument, as JSON: n:=3 list:='[1, 2]' data:='{\"$bytes\": "
    "\"AAE=\"}'\n"
    "\n"
    "  --args JSON         an array: positional arguments; an object: named ones\n"
    "  --stream            the function yields items: print each on its own line\n"
    "  --bidi              the same, and send each line of standard input as a JSON item\n"
    "  --timeout TIME      end the call after TIME (5s, 300ms, 1m30s)\n"
    "  --token-file PATH   the token that the server asks for [AGENTIX_TOKEN]\n"
    "  --traceback         print the function's traceback when it fails\n"
    "  --help\n"
    "\n"
    "What JSON has no form for: bytes are {\"$bytes\": \"<base64>\"}, numbers that are none\n"
    "{\"$float\": \"nan\"}, arrays {\"$ndarray\": {\"dtype\", \"shape\", \"data\"}}.\n"
    "\n"
    "Exit status: 0 the call ended well, 1 it failed (the reason is on standard error), 2 the "
    "command\n"
    "line was wrong, 130 it was interrupted: Ctrl-C cancels the call and waits for its end.\n";

enum {
    OPT_ARGS = 1000,
    OPT_STREAM,
    OPT_BIDI,
    OPT_TIMEOUT,
    OPT_TOKEN_FILE,
    OPT_TRACEBACK,
    OPT_HELP,
};

static const struct option long_options[] = {
    { "args", required_argument, NULL, OPT_ARGS },
    { "stream", no_argument, NULL, OPT_STREAM },
    { "bidi", no_argument, NULL, OPT_BIDI },
    { "timeout", required_argument, NULL, OPT_TIMEOUT },
    { "token-file", required_argument, NULL, OPT_TOKEN_FILE },
    { "traceback", no_argument, NULL, OPT_TRACEBACK },
    { "help", no_argument, NULL, OPT_HELP },
    { NULL, 0, NULL, 0 },
};

/* Prints the error; frees it. */
static int mistake(const char *what, struct agx_error *err)
{
    char text[512];
    int status = agx_cli_usage("call", "%s: %s", what, agx_error_format(err, text, sizeof(text)));

    agx_error_free(err);
    return status;
}

static int parse_timeout(struct agx_call_command *c, const char *text)
{
    struct agx_error *err = NULL;
    int64_t ns = 0;

    if (agx_duration_parse(agx_str_from(text), &ns, &err) < 0)
        return mistake("--timeout", err);
    if (ns < NS_PER_MS || ns / NS_PER_MS > UINT32_MAX)
        return agx_cli_usage("call", "--timeout: '%s' is not between 1ms and 49 days", text);
    c->timeout_ms = (uint32_t)(ns / NS_PER_MS);
    return 0;
}

static int read_token(struct agx_call_command *c, const char *path)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(TOKEN_MAX);
    struct agx_error *err = NULL;
    struct agx_str token;

    if (agx_fd_read_file(AT_FDCWD, path, &text, &err) < 0)
        return mistake("--token-file", err);
    token = agx_buf_peek(&text);
    while (token.len > 0 && strchr("\r\n \t", token.ptr[token.len - 1]))
        token.len--;
    if (token.len == 0)
        return agx_cli_usage("call", "--token-file: '%s' is empty", path);
    free(c->token);
    c->token = agx_str_dup(token);
    return c->token ? 0 : agx_cli_usage("call", "--token-file: out of memory");
}

/* --args: an array becomes args, an object kwargs, as msgpack. */
static int parse_args(struct agx_call_command *c, const char *json)
{
    struct agx_writer *w = agx_writer_new();
    struct agx_error *err = NULL;
    struct agx_value v = { .type = AGX_VALUE_NIL };
    struct agx_reader r;
    const void *bytes;
    size_t len;

    if (agx_writer_json(w, json, strlen(json), &err) < 0 ||
        agx_writer_bytes(w, &bytes, &len, &err) < 0) {
        agx_writer_free(w);
        return mistake("--args", err);
    }
    agx_reader_init(&r, bytes, len);
    (void)agx_reader_next(&r, &v, NULL);
    if (v.type == AGX_VALUE_ARRAY && !c->args) {
        c->args = w;
        return 0;
    }
    if (v.type == AGX_VALUE_MAP && !c->kwargs) {
        c->kwargs = w;
        return 0;
    }
    agx_writer_free(w);
    return agx_cli_usage("call", "--args: one JSON array or one object");
}

/* KEY=TEXT or KEY:=JSON. */
static int put_pair(struct agx_writer *w, const char *pair)
{
    const char *eq = strchr(pair, '=');
    struct agx_error *err = NULL;
    bool json;
    size_t key_len;

    if (!eq || eq == pair)
        return agx_cli_usage("call", "expected KEY=TEXT or KEY:=JSON, got '%s'", pair);
    json = eq[-1] == ':';
    key_len = (size_t)(eq - pair) - json;
    if (key_len == 0)
        return agx_cli_usage("call", "'%s' has no key", pair);
    agx_writer_str(w, pair, key_len);
    if (!json)
        agx_writer_cstr(w, eq + 1);
    else if (agx_writer_json(w, eq + 1, strlen(eq + 1), &err) < 0)
        return mistake(pair, err);
    return 0;
}

static int parse_pairs(struct agx_call_command *c, int n, char **pairs)
{
    struct agx_error *err = NULL;
    const void *bytes;
    size_t len;
    int r = 0;

    if (n == 0)
        return 0;
    if (c->kwargs)
        return agx_cli_usage("call", "give named arguments either in --args or as KEY=TEXT");
    c->kwargs = agx_writer_new();
    agx_writer_map(c->kwargs, (size_t)n);
    for (int i = 0; r == 0 && i < n; i++)
        r = put_pair(c->kwargs, pairs[i]);
    if (r == 0 && agx_writer_bytes(c->kwargs, &bytes, &len, &err) < 0)
        r = mistake("arguments", err);
    return r;
}

static int parse_option(struct agx_call_command *c, int option, const char *value)
{
    switch (option) {
    case OPT_ARGS:
        return parse_args(c, value);
    case OPT_STREAM:
    case OPT_BIDI:
        if (c->kind != AGX_CALL_UNARY)
            return agx_cli_usage("call", "--stream and --bidi exclude each other");
        c->kind = option == OPT_STREAM ? AGX_CALL_STREAM : AGX_CALL_BIDI;
        return 0;
    case OPT_TIMEOUT:
        return parse_timeout(c, value);
    case OPT_TOKEN_FILE:
        return read_token(c, value);
    case OPT_TRACEBACK:
        c->traceback = true;
        return 0;
    case OPT_HELP:
        c->help = true;
        return 0;
    default: /* getopt has printed the reason */
        return agx_cli_usage("call", "wrong option");
    }
}

int agx_call_command_parse(struct agx_call_command *c, int argc, char **argv,
                           const struct agx_cli_env *env)
{
    int option, r = 0;

    *c = (struct agx_call_command){ .kind = AGX_CALL_UNARY };
    while (r == 0 && !c->help && (option = getopt_long(argc, argv, "h", long_options, NULL)) != -1)
        r = parse_option(c, option == 'h' ? OPT_HELP : option, optarg);
    if (r != 0 || c->help)
        return r;
    if (argc - optind < 2)
        return agx_cli_usage("call", "URL and TARGET are required");
    c->url = argv[optind];
    c->target = argv[optind + 1];
    if (!c->token && env->token) {
        c->token = strdup(env->token);
        if (!c->token)
            return agx_cli_usage("call", "out of memory");
    }
    return parse_pairs(c, argc - optind - 2, argv + optind + 2);
}

void agx_call_command_done(struct agx_call_command *c)
{
    free(c->token);
    agx_writer_free(c->args);
    agx_writer_free(c->kwargs);
    *c = (struct agx_call_command){ .kind = AGX_CALL_UNARY };
}
