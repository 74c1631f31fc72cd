/* xdg.c: base directories. */
#include "base/xdg.h"

#include <stdio.h>
#include <string.h>

#include "base/banned.h"

struct rule {
    const char *variable;
    const char *for_root;   /* if the variable is not set */
    const char *below_home; /* for other users; NULL: none */
};

static const struct rule rules[] = {
    [AGX_XDG_RUNTIME] = { "XDG_RUNTIME_DIR", "/run", NULL },
    [AGX_XDG_DATA] = { "XDG_DATA_HOME", "/var/lib", "/.local/share" },
    [AGX_XDG_CONFIG] = { "XDG_CONFIG_HOME", "/etc", "/.config" },
};

static const char *value_of(const struct agx_xdg *x, enum agx_xdg_base base)
{
    switch (base) {
    case AGX_XDG_RUNTIME:
        return x->runtime_dir;
    case AGX_XDG_DATA:
        return x->data_home;
    default:
        return x->config_home;
    }
}

static bool is_set(const char *value)
{
    return value && *value;
}

static int xdg_join(const char *a, const char *b, const char *below, char **ret_path,
                    struct agx_error **err)
{
    char *path;

    if (asprintf(&path, "%s%s/%s", a, b, below) < 0)
        return agx_error_no_memory(err);
    *ret_path = path;
    return 0;
}

/* As join(), for a variable's value. */
static int join_value(const char *variable, const char *value, const char *rest, const char *below,
                      char **ret_path, struct agx_error **err)
{
    if (value[0] != '/')
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "%s is '%s', which is not an absolute path",
                             variable, value);
    return xdg_join(value, rest, below, ret_path, err);
}

int agx_xdg_path(const struct agx_xdg *x, enum agx_xdg_base base, const char *below,
                 char **ret_path, struct agx_error **err)
{
    const struct rule *rule = &rules[base];
    const char *value = value_of(x, base);

    if (is_set(value))
        return join_value(rule->variable, value, "", below, ret_path, err);
    if (x->uid == 0)
        return xdg_join(rule->for_root, "", below, ret_path, err);
    if (!rule->below_home)
        return agx_error_set(err, AGX_FAILED_PRECONDITION, "%s is not set: no directory for '%s'",
                             rule->variable, below);
    if (!is_set(x->home))
        return agx_error_set(err, AGX_FAILED_PRECONDITION,
                             "neither %s nor HOME is set: no directory for '%s'", rule->variable,
                             below);
    return join_value("HOME", x->home, rule->below_home, below, ret_path, err);
}

int agx_xdg_socket(const struct agx_xdg *x, char **ret_path, struct agx_error **err)
{
    char *path;

    if (!is_set(x->socket))
        return agx_xdg_path(x, AGX_XDG_RUNTIME, "agentix/agentixd.sock", ret_path, err);
    if (x->socket[0] != '/')
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "AGENTIX_SOCKET is '%s', which is not an absolute path", x->socket);
    path = strdup(x->socket);
    if (!path)
        return agx_error_no_memory(err);
    *ret_path = path;
    return 0;
}
