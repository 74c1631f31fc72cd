/* create_options.c: reads the command line of `agentix sandbox create`. */
#include "cli/create_options.h"

#include "base/fd.h"
#include "base/limits.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/banned.h"

const char agx_create_usage[] = "--image IMAGE | --yaml-file FILE [OPTION...] [-- COMMAND...]";

const char agx_create_help[] =
    "Creates a sandbox, waits until it is ready and prints its id. COMMAND is its main process;\n"
    "without one it idles until commands are run in it.\n"
    "\n"
    "  --image IMAGE             its image, such as debian:12\n"
    "  --yaml-file FILE          its description; options override it\n"
    "  --sandbox-id ID           its id; by default the daemon chooses one\n"
    "  --label KEY=VALUE         (any number of these)\n"
    "  --env KEY=VALUE           environment of its processes (any number)\n"
    "  --idle-ttl TIME           stop it when idle for this long; 0: never\n"
    "  --mount HOST:PATH[:writable]    a directory or file of the host (any number)\n"
    "  --copy HOST:PATH          a private copy of it (any number)\n"
    "  --port HOST:PORT[/PROTO]  forward this port of 127.0.0.1 (any number)\n"
    "  --network MODE            nat, none or egress\n"
    "  --egress ADDRESS          allow ADDRESS[/BITS][:PORT] or NAME[:PORT]\n"
    "  --cpu-limit CPUS          such as 1.5 or 500m\n"
    "  --memory-limit SIZE       such as 512m\n"
    "  --disk-limit SIZE\n"
    "  --gpus all\n"
    "  --builtin-tool NAME[:PART]    what a tool needs from the host (any number)\n"
    "  --no-wait                 do not wait until it is ready\n"
    "  --timeout TIME            wait no longer than this; the sandbox stays\n"
    "  --json                    print the daemon's answer, and do not wait\n";

static int set_text(char **slot, struct agx_str text, struct agx_error **err)
{
    char *copy = agx_str_dup(text);

    if (!copy)
        return agx_error_no_memory(err);
    free(*slot);
    *slot = copy;
    return 0;
}

/* Makes a host path absolute: the daemon has another working directory. The daemon expands "~", as
 * it serves the same user. */
static int set_source(char **slot, struct agx_str path, struct agx_error **err)
{
    char cwd[PATH_MAX], *joined;

    if (path.len > 0 && (path.ptr[0] == '/' || path.ptr[0] == '~'))
        return set_text(slot, path, err);
    if (!getcwd(cwd, sizeof(cwd)))
        return agx_error_errno(err, errno, "find the current directory");
    if (asprintf(&joined, "%s/%.*s", cwd, AGX_STR_ARG(path)) < 0)
        return agx_error_no_memory(err);
    free(*slot);
    *slot = joined;
    return 0;
}

/* Cuts HOST:PATH; text after a second colon goes to *ret_more, whose ptr is NULL without one.
 */
static bool cut(const char *value, struct agx_str *ret_host, struct agx_str *ret_path,
                struct agx_str *ret_more)
{
    struct agx_str rest = agx_str_from(value);

    *ret_more = (struct agx_str){ NULL, 0 };
    return agx_str_split(&rest, ':', ret_host) && agx_str_split(&rest, ':', ret_path) &&
           (!rest.ptr || (*ret_more = rest).ptr) && ret_host->len > 0 && ret_path->len > 0;
}

static int add_mount(void *into, const char *value, struct agx_error **err)
{
    struct agx_str host, path, more;
    struct agx_mount *m = NULL;
    const bool is_cut = cut(value, &host, &path, &more),
               suid = is_cut && more.ptr && agx_str_eq(more, AGX_STR("writable,suid=allow"));
    int r;

    if (!is_cut || (more.ptr && !suid && !agx_str_eq(more, AGX_STR("writable"))))
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "expected HOST:PATH[:writable[,suid=allow]], got '%s'", value);
    r = agx_spec_add_mount(into, &m, err);
    if (r == 0)
        r = set_source(&m->source, host, err);
    if (r == 0)
        r = set_text(&m->target, path, err);
    if (r == 0) {
        m->writable = more.ptr != NULL;
        m->suid = suid ? AGX_SUID_ALLOW : AGX_SUID_DENY;
    }
    return r;
}

static int add_copy(void *into, const char *value, struct agx_error **err)
{
    struct agx_str host, path, more;
    struct agx_copy *c = NULL;
    int r;

    if (!cut(value, &host, &path, &more) || more.ptr)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "expected HOST:PATH, got '%s'", value);
    r = agx_spec_add_copy(into, &c, err);
    if (r == 0)
        r = set_source(&c->source, host, err);
    if (r == 0)
        r = set_text(&c->target, path, err);
    return r;
}

static bool find_protocol(struct agx_str name, int32_t *ret)
{
    for (int i = 0; i < AGX_PROTOCOL_COUNT; i++) {
        if (agx_str_eq(name, agx_str_from(agx_protocol_name((enum agx_protocol)i)))) {
            *ret = i;
            return true;
        }
    }
    return false;
}

static int add_port(void *into, const char *value, struct agx_error **err)
{
    struct agx_str rest = agx_str_from(value), host, port;
    uint64_t host_port = 0, container_port = 0;
    int32_t protocol = AGX_PROTOCOL_TCP;
    struct agx_port *p = NULL;
    int r;

    if (!agx_str_split(&rest, ':', &host) || !rest.ptr || !agx_str_split(&rest, '/', &port) ||
        (rest.ptr && !find_protocol(rest, &protocol)) ||
        !agx_parse_u64(host, UINT16_MAX, &host_port) ||
        !agx_parse_u64(port, UINT16_MAX, &container_port))
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "expected HOST:PORT[/tcp|udp|sctp], got '%s'", value);
    r = agx_spec_add_port(into, &p, err);
    if (r == 0)
        *p = (struct agx_port){ .container_port = (uint32_t)container_port,
                                .host_port = (uint32_t)host_port,
                                .protocol = protocol };
    return r;
}

static int set_network(void *into, const char *value, struct agx_error **err)
{
    static const char *const names[AGX_NETWORK_COUNT] = {
        [AGX_NETWORK_NAT] = "nat", [AGX_NETWORK_NONE] = "none", [AGX_NETWORK_EGRESS] = "egress"
    };

    for (int32_t i = 0; i < AGX_NETWORK_COUNT; i++) {
        if (strcmp(names[i], value) == 0) {
            *(int32_t *)into = i;
            return 0;
        }
    }
    return agx_error_set(err, AGX_INVALID_ARGUMENT, "expected nat, none or egress, got '%s'",
                         value);
}

static int add_egress(void *into, const char *value, struct agx_error **err)
{
    struct agx_spec *spec = into;

    spec->network = AGX_NETWORK_EGRESS;
    return agx_words_add(&spec->egress, agx_str_from(value), err);
}

static int set_owned(void *into, const char *value, struct agx_error **err)
{
    return set_text(into, agx_str_from(value), err);
}

static int read_yaml(void *into, const char *value, struct agx_error **err)
{
    struct agx_buf *yaml = into;

    agx_buf_clear(yaml);
    yaml->max = AGX_YAML_MAX;
    return agx_fd_read_file(AT_FDCWD, value, yaml, err);
}

static int read_all(struct agx_create_options *o, struct agx_args *a, const struct agx_cli *cli,
                    int argc, char **argv)
{
    struct agx_create_request *q = &o->request;
    struct agx_spec *s = &q->spec;
    const struct agx_arg table[] = {
        { "image", 0, AGX_ARG_CALL, &s->image, set_owned },
        { "yaml-file", 0, AGX_ARG_CALL, &q->config_yaml, read_yaml },
        { "sandbox-id", 0, AGX_ARG_CALL, &q->sandbox_id, set_owned },
        { "label", 0, AGX_ARG_PAIR, &s->labels, NULL },
        { "env", 0, AGX_ARG_PAIR, &s->envs, NULL },
        { "idle-ttl", 0, AGX_ARG_DURATION, &s->idle_ttl_ns, NULL },
        { "mount", 0, AGX_ARG_CALL, s, add_mount },
        { "copy", 0, AGX_ARG_CALL, s, add_copy },
        { "port", 0, AGX_ARG_CALL, s, add_port },
        { "network", 0, AGX_ARG_CALL, &s->network, set_network },
        { "egress", 0, AGX_ARG_CALL, s, add_egress },
        { "cpu-limit", 0, AGX_ARG_CALL, &s->limits.cpu, set_owned },
        { "memory-limit", 0, AGX_ARG_CALL, &s->limits.memory, set_owned },
        { "disk-limit", 0, AGX_ARG_CALL, &s->limits.disk, set_owned },
        { "gpus", 0, AGX_ARG_CALL, &s->gpus, set_owned },
        { "builtin-tool", 0, AGX_ARG_WORD, &s->builtin_tools, NULL },
        { "no-wait", 0, AGX_ARG_FLAG, &o->no_wait, NULL },
        { "timeout", 0, AGX_ARG_DURATION, &o->timeout_ns, NULL },
        { "json", 0, AGX_ARG_FLAG, &o->json, NULL },
    };

    return agx_args_read(a, cli, argc, argv, table, AGX_ARRAY_LEN(table));
}

int agx_create_options_read(struct agx_create_options *o, const struct agx_cli *cli, int argc,
                            char **argv)
{
    struct agx_spec *s = &o->request.spec;
    struct agx_args a;
    int status;

    *o = (struct agx_create_options){ 0 };
    agx_create_request_init(&o->request);
    o->request.has_spec = true;
    status = read_all(o, &a, cli, argc, argv);
    if (status != AGX_EXIT_GOING)
        return status;
    if (a.words_len > 0)
        return agx_cli_mistake(cli, "'%s' is not an option; put the command after '--'",
                               a.words[0]);
    if (!s->image && o->request.config_yaml.len == 0)
        return agx_cli_mistake(cli, "an image is required: --image with a name such as "
                                    "debian:12, or --yaml-file with a description");
    for (size_t i = 0; i < a.rest_len; i++) {
        if (agx_words_add(&s->command, agx_str_from(a.rest[i]), NULL) < 0)
            return agx_cli_mistake(cli, "the command has too many words");
    }
    return AGX_EXIT_GOING;
}

void agx_create_options_done(struct agx_create_options *o)
{
    agx_create_request_done(&o->request);
}
