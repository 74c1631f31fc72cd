/* tool.c: one list of names, sorted. */
#include "core/tool.h"

#include "base/str.h"

#include <stdio.h>

#include "base/banned.h"

static const char *const names[] = {
    "apt",
    "claude",
    "claude:agents",
    "claude:commands",
    "claude:plugins",
    "claude:pulse",
    "claude:settings",
    "claude:skills",
    "codex",
    "codex:agents",
    "codex:prompts",
    "codex:settings",
    "git",
    "git:settings",
    "git:ssh-agent",
    "npm",
    "opencode",
    "opencode:agents",
    "opencode:commands",
    "opencode:plugins",
    "opencode:settings",
    "uv",
};

enum { PARTS_MAX = 128 };

const char *agx_tool_name(size_t i)
{
    return i < AGX_ARRAY_LEN(names) ? names[i] : NULL;
}

/* The first `len` characters of a name. */
static bool is_name(const char *name, size_t len)
{
    for (size_t i = 0; i < AGX_ARRAY_LEN(names); i++) {
        if (strlen(names[i]) == len && strncmp(names[i], name, len) == 0)
            return true;
    }
    return false;
}

/* The parts of the tool named by the first `len` characters: "agents, pulse"; "none". */
static void list_parts(const char *name, size_t len, char out[PARTS_MAX])
{
    size_t n = 0;

    (void)snprintf(out, PARTS_MAX, "none");
    for (size_t i = 0; i < AGX_ARRAY_LEN(names); i++) {
        if (strncmp(names[i], name, len) == 0 && names[i][len] == ':')
            n += (size_t)snprintf(out + n, PARTS_MAX - n, "%s%s", n > 0 ? ", " : "",
                                  names[i] + len + 1);
    }
}

int agx_tool_check(const char *name, bool whole, struct agx_error **err)
{
    const size_t len = strcspn(name, ":");
    const bool is_part = name[len] == ':';
    char parts[PARTS_MAX];

    if (is_name(name, strlen(name)) && !(whole && is_part))
        return 0;
    if (whole || !is_part || !is_name(name, len))
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "unknown builtin resource \"%s\"", name);
    list_parts(name, len, parts);
    return agx_error_set(err, AGX_INVALID_ARGUMENT,
                         "unknown part of a builtin resource \"%s\": its parts are: %s", name,
                         parts);
}
