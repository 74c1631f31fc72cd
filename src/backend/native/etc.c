/* etc.c: see etc.h. */
#include "backend/native/etc.h"

#include <stdio.h>

#include "base/banned.h"

char *agx_etc_hostname(const struct agx_etc *e, size_t part, char out[AGX_NATIVE_HOSTNAME_MAX + 1])
{
    (void)snprintf(out, AGX_NATIVE_HOSTNAME_MAX + 1, "%s",
                   part == 0 ? e->sandbox_id : e->spec->companions[part - 1].name);
    return out;
}

/* "name:address"; names contain no colon (core/egress.h). */
static int put_line(const char *line, struct agx_buf *out)
{
    struct agx_str rest = agx_str_from(line), name = { 0 };

    if (!agx_str_split(&rest, ':', &name) || !rest.ptr)
        return 0;
    return agx_buf_printf(out, "%.*s\t%.*s\n", AGX_STR_ARG(rest), AGX_STR_ARG(name));
}

/* Names that some images and tools expect for the host lead nowhere. */
int agx_etc_hosts(const struct agx_etc *e, size_t part, struct agx_buf *out)
{
    char name[AGX_NATIVE_HOSTNAME_MAX + 1];
    int r = agx_buf_printf(out, "127.0.0.1\tlocalhost\n"
                                "::1\tlocalhost ip6-localhost ip6-loopback\n"
                                "0.0.0.0\thost.docker.internal gateway.docker.internal\n");

    if (r == 0 && e->nsset->members[part].address[0] == '\0')
        r = agx_buf_printf(out, "127.0.1.1\t%s\n", agx_etc_hostname(e, part, name));
    for (size_t i = 0; r == 0 && i < e->nsset->n; i++) {
        if (e->nsset->members[i].address[0] != '\0')
            r = agx_buf_printf(out, "%s\t%s\n", e->nsset->members[i].address,
                               agx_etc_hostname(e, i, name));
    }
    for (size_t i = 0; r == 0 && i < e->hosts->len; i++)
        r = put_line(e->hosts->items[i], out);
    return r;
}
