/* up_fail.c: errors of a create or resume, with the container that they are about. */
#include "backend/docker/op_up.h"

#include <inttypes.h>

#include "base/banned.h"

char *agx_docker_part_title(const struct agx_docker_up *up, size_t part, char *out, size_t size)
{
    const struct agx_sandbox *sb = &up->task.sandbox;

    if (part == 0)
        (void)snprintf(out, size, "sandbox '%s'", sb->id);
    else
        (void)snprintf(out, size, "companion '%s' of sandbox '%s'",
                       sb->spec.companions[part - 1].name, sb->id);
    return out;
}

/* Adds the field's name to an engine's message about an unsupported field: true, it was one. */
static bool clarify(struct agx_error **error)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        { "could not select device driver", "gpus: the engine has no driver for them" },
        { "storage-opt is supported only for overlay", AGX_DOCKER_NO_DISK_LIMIT },
        { "inappropriate ioctl for device", AGX_DOCKER_NO_DISK_LIMIT },
    };
    char text[AGX_FAILURE_TEXT_MAX];

    (void)agx_error_format(*error, text, sizeof(text));
    for (size_t i = 0; i < AGX_ARRAY_LEN(cases); i++) {
        if (!strstr(text, cases[i].text))
            continue;
        *error = agx_error_free(*error);
        (void)agx_error_set(error, AGX_FAILED_PRECONDITION, "%s: %s", cases[i].says, text);
        return true;
    }
    return false;
}

/* "failed to create container with port bindings [8080->80/tcp, ...]: ", which programs for
 * agents-sandbox look for: which port was taken, only the engine's message says. */
static void name_ports(const struct agx_spec *spec, struct agx_error **error)
{
    static const char *const protocols[] = { "tcp", "udp", "sctp" };
    _cleanup_buf_ struct agx_buf list = AGX_BUF_INIT(AGX_FAILURE_TEXT_MAX);
    struct agx_error *made = NULL;
    char text[AGX_FAILURE_TEXT_MAX];
    int r = 0;

    for (size_t i = 0; r == 0 && i < spec->ports_len; i++) {
        const struct agx_port *p = &spec->ports[i];

        r = agx_buf_printf(&list, "%s%" PRIu32 "->%" PRIu32 "/%s", i > 0 ? ", " : "", p->host_port,
                           p->container_port, protocols[p->protocol]);
    }
    (void)agx_error_set(&made, (*error)->code,
                        "failed to create container with port bindings [%.*s%s]: %s",
                        AGX_STR_ARG(agx_buf_peek(&list)), r < 0 ? "..." : "",
                        agx_error_format(*error, text, sizeof(text)));
    agx_error_free(*error);
    *error = made;
}

void agx_docker_part_fail(struct agx_docker_up *up, size_t part, struct agx_error *error)
{
    if (!clarify(&error) && part == 0 && up->makes && up->task.sandbox.spec.ports_len > 0)
        name_ports(&up->task.sandbox.spec, &error);
    if (part == 0)
        agx_op_fail(&up->task.op, &error);
    else
        agx_error_propagate(&up->parts[part].failed, &error);
}
