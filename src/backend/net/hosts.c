/* hosts.c: see hosts.h. */
#include "backend/net/hosts.h"

#include <stdio.h>

#include "base/banned.h"

/* From a documentation range: no server is there, and the firewall refuses it at once. */
#define NO_SERVER "192.0.2.53"

enum { DNS_PORT = 53, LINES_PER_NAME = 4 };

/* Without the prefix length, which is meaningless for one address. */
static char *address_text(const struct agx_subnet *s, char out[AGX_SUBNET_TEXT])
{
    *strchr(agx_subnet_format(s, out), '/') = '\0';
    return out;
}

static bool is_server(const struct agx_egress *e)
{
    return e->name.len == 0 && e->port == DNS_PORT && e->to.prefix == (e->to.ipv6 ? 128 : 32);
}

json_t *agx_hosts_dns(const struct agx_words *egress)
{
    json_t *servers = json_array();
    char text[AGX_SUBNET_TEXT];
    int bad = servers ? 0 : -1;

    for (size_t i = 0; i < egress->len; i++) {
        struct agx_egress e;

        if (agx_egress_parse(agx_str_from(egress->items[i]), &e, NULL) == 0 && is_server(&e))
            bad |= json_array_append_new(servers, json_string(address_text(&e.to, text)));
    }
    if (json_array_size(servers) == 0)
        bad |= json_array_append_new(servers, json_string(NO_SERVER));
    if (bad) {
        json_decref(servers);
        return NULL;
    }
    return servers;
}

static size_t count_lines(const struct agx_words *hosts, struct agx_str name)
{
    size_t n = 0;

    for (size_t i = 0; i < hosts->len; i++)
        n +=
            agx_str_starts(agx_str_from(hosts->items[i]), name) && hosts->items[i][name.len] == ':';
    return n;
}

static int add_once(struct agx_words *w, const char *word, struct agx_error **err)
{
    return agx_words_has(w, word) ? 0 : agx_words_add(w, agx_str_from(word), err);
}

/* A few addresses per name are enough, and sandbox networks have no IPv6. */
int agx_hosts_add(const struct agx_egress *e, struct agx_words *hosts, struct agx_words *entries,
                  struct agx_error **err)
{
    char line[AGX_EGRESS_NAME_MAX + AGX_SUBNET_TEXT + 2], entry[AGX_SUBNET_TEXT + 8];
    char text[AGX_SUBNET_TEXT];
    int r;

    if (e->name.len == 0 || e->to.ipv6 || agx_egress_is_unknown(e))
        return 0;
    (void)snprintf(line, sizeof(line), "%.*s:%s", AGX_STR_ARG(e->name), address_text(&e->to, text));
    if (!agx_words_has(hosts, line) && count_lines(hosts, e->name) >= LINES_PER_NAME)
        return 0;
    if (e->port > 0)
        (void)snprintf(entry, sizeof(entry), "%s:%u", text, e->port);
    else
        (void)snprintf(entry, sizeof(entry), "%s", text);
    r = add_once(hosts, line, err);
    return r < 0 ? r : add_once(entries, entry, err);
}
