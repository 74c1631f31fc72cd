/*
 * firewall_text.c: rules and elements.
 *
 * Where packets are filtered, and why there:
 *
 *   prerouting, priority mangle: connection tracking has run (replies are recognised), but no
 *   engine
 *       has translated a published port to a container's address: the original target is visible.
 *   input: packets that reach the host itself all the same, such as broadcasts.
 *   forward: the outgoing interface is known, so other bridges are recognised.
 *
 * An accept ends only our own chain: other firewalls still decide too.
 */
#include "backend/net/firewall_text.h"

#include "base/limits_backend.h"

#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/banned.h"

/* Never allowed, whatever a list says: this network, loopback, link-local, multicast, reserved
 * addresses, and the metadata services of clouds, which hold the machine's credentials. The last
 * four of IPv6 are the same addresses behind a translator. */
#define NEVER4                                                                                     \
    "0.0.0.0/8, 127.0.0.0/8, 169.254.0.0/16, 100.100.100.200, 168.63.129.16, 192.0.0.0/24, "       \
    "224.0.0.0/3"
#define NEVER6                                                                                     \
    "::/96, ::ffff:0:0/96, fe80::/10, fec0::/10, ff00::/8, fd00:ec2::/32, fd20:ce::/32, "          \
    "64:ff9b::a9fe:0/112, 64:ff9b::6464:64c8, 64:ff9b::a83f:8110, 64:ff9b::c000:0/120"
#define LAN4 "10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, 100.64.0.0/10"
#define LAN6                                                                                       \
    "fc00::/7, 64:ff9b:1::/48, 64:ff9b::a00:0/104, 64:ff9b::ac10:0/108, 64:ff9b::c0a8:0/112, "     \
    "64:ff9b::6440:0/106"

static const char sets[] = "    set bridges { type ifname; }\n"
                           "    set closed { type ifname; }\n"
                           "    set same { type ifname . ifname; }\n"
                           "    set own4 { type ifname . ipv4_addr; flags interval; }\n"
                           "    set own6 { type ifname . ipv6_addr; flags interval; }\n"
                           "    set any4 { type ifname . ipv4_addr; flags interval; }\n"
                           "    set any6 { type ifname . ipv6_addr; flags interval; }\n"
                           "    set port4 { type ifname . ipv4_addr . inet_service; "
                           "flags interval; }\n"
                           "    set port6 { type ifname . ipv6_addr . inet_service; "
                           "flags interval; }\n"
                           "    set uplinks { type ifname; }\n"
                           "    set dns4 { type ipv4_addr; }\n"
                           "    set dns6 { type ipv6_addr; }\n";

/* Protocols by names that nft itself knows: others are looked up in /etc/protocols, which not every
 * host has. */
static const char refusals[] =
    "    chain refuse {\n"
    "        fib daddr type { broadcast, multicast } drop\n"
    "        meta l4proto tcp reject with tcp reset\n"
    "        reject with icmpx admin-prohibited\n"
    "    }\n"
    "    chain replies {\n"
    "        ct direction reply ct state established accept\n"
    "        ct direction reply ct state related meta l4proto { icmp, icmpv6 } accept\n"
    "    }\n"
    "    chain neighbours {\n"
    "        icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } ip6 hoplimit 255 accept\n"
    "    }\n"
    "    chain egress {\n"
    "        ct state established accept\n"
    "        iifname . ip daddr @any4 accept\n"
    "        iifname . ip6 daddr @any6 accept\n"
    "        meta l4proto { tcp, udp } iifname . ip daddr . th dport @port4 accept\n"
    "        meta l4proto { tcp, udp } iifname . ip6 daddr . th dport @port6 accept\n"
    "        goto refuse\n"
    "    }\n";

/* A packet that a sandbox sends. */
static const char leaving[] =
    "    chain leaving {\n"
    "        jump replies\n"
    "        jump neighbours\n"
    "        iifname . ip saddr != @own4 drop\n"
    "        iifname . ip6 saddr != @own6 drop\n"
    "        fib daddr type local goto refuse\n"
    "        iifname . ip daddr @own4 accept\n"
    "        iifname . ip6 daddr @own6 accept\n"
    "        iifname != @closed meta l4proto { tcp, udp } ip daddr @dns4 th dport 53 accept\n"
    "        iifname != @closed meta l4proto { tcp, udp } ip6 daddr @dns6 th dport 53 accept\n"
    "        ip daddr { " NEVER4 " } goto refuse\n"
    "        ip6 daddr { " NEVER6 " } goto refuse\n";
static const char leaving_lan[] = "        ip daddr { " LAN4 " } goto refuse\n"
                                  "        ip6 daddr { " LAN6 " } goto refuse\n";
static const char leaving_end[] = "        iifname @closed goto egress\n"
                                  "    }\n";

static const char hooks[] = "    chain arriving {\n"
                            "        jump replies\n"
                            "        jump neighbours\n"
                            "        goto refuse\n"
                            "    }\n"
                            "    chain crossing {\n"
                            "        iifname . oifname @same accept\n"
                            "        jump replies\n"
                            "        oifname @bridges goto refuse\n"
                            "        oifname @uplinks accept\n"
                            "        meta oifkind { \"bridge\", \"veth\" } goto refuse\n"
                            "    }\n"
                            "    chain prerouting {\n"
                            "        type filter hook prerouting priority mangle\n"
                            "        iifname @bridges goto leaving\n"
                            "    }\n"
                            "    chain input {\n"
                            "        type filter hook input priority filter - 10\n"
                            "        iifname @bridges goto arriving\n"
                            "    }\n"
                            "    chain forward {\n"
                            "        type filter hook forward priority filter - 10\n"
                            "        iifname @bridges goto crossing\n"
                            "        oifname @bridges goto crossing\n"
                            "    }\n";

/* Where no engine does it: packets that leave the host get the host's address. */
static const char routing[] = "    chain postrouting {\n"
                              "        type nat hook postrouting priority srcnat\n"
                              "        iifname . ip saddr @own4 oifname != @bridges masquerade\n"
                              "    }\n";

int agx_firewall_text_drop(struct agx_buf *out, const char *table)
{
    /* Deleting a missing table is an error; adding an existing one is not. */
    return agx_buf_printf(out, "add table inet %s\ndelete table inet %s\n", table, table);
}

int agx_firewall_text_rules(struct agx_buf *out, const char *table, bool lan_blocked, bool routed)
{
    return agx_buf_printf(out, "table inet %s {\n%s%s%s%s%s%s%s}\n", table, sets, refusals, leaving,
                          lan_blocked ? leaving_lan : "", leaving_end, hooks,
                          routed ? routing : "");
}

static int compare_words(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int AGX_PRINTF(3, 4)
    add_element(struct agx_words *w, struct agx_error **err, const char *fmt, ...)
{
    char text[160];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return agx_words_add(w, agx_str_from(text), err);
}

static void sort(struct agx_words *w)
{
    if (w->len > 0)
        qsort(w->items, w->len, sizeof(w->items[0]), compare_words);
}

static int version(const struct agx_subnet *s)
{
    return s->ipv6 ? 6 : 4;
}

/* Interface names may contain almost any byte; these have a meaning for nftables or for people. */
static bool is_interface(const char *name)
{
    static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t len = name ? strlen(name) : 0;

    return len > 0 && len < IF_NAMESIZE && strspn(name, good) == len && name[0] != '.';
}

/* A network sorts before a network that it contains; both have the same port. */
static int compare_egress(const void *a, const void *b)
{
    const struct agx_egress *x = a, *y = b;
    int order;

    if (x->port != y->port)
        return x->port < y->port ? -1 : 1;
    if (x->to.ipv6 != y->to.ipv6)
        return x->to.ipv6 ? 1 : -1;
    order = memcmp(x->to.address, y->to.address, sizeof(x->to.address));
    return order ? order : (int)x->to.prefix - (int)y->to.prefix;
}

/* Adds the entries, sorted. A set takes no element that lies within another one. */
static int add_egress(struct agx_words *w, const char *bridge, const struct agx_egress *list,
                      size_t n, struct agx_error **err)
{
    const struct agx_egress *last = NULL;
    char text[AGX_SUBNET_TEXT];
    int r = 0;

    for (size_t i = 0; r == 0 && i < n; i++) {
        const struct agx_egress *e = &list[i];

        if (agx_egress_is_unknown(e))
            continue;
        if (last && last->port == e->port && agx_subnet_contains(&last->to, &e->to))
            continue;
        last = e;
        agx_subnet_format(&e->to, text);
        if (e->port == 0)
            r = add_element(w, err, "any%d { \"%s\" . %s }", version(&e->to), bridge, text);
        else
            r = add_element(w, err, "port%d { \"%s\" . %s . %u }", version(&e->to), bridge, text,
                            e->port);
    }
    return r;
}

static int add_list(struct agx_words *w, const struct agx_firewall_member *m,
                    struct agx_error **err)
{
    _cleanup_free_ struct agx_egress *list = NULL;

    if (m->n_egress > AGX_FIREWALL_EGRESS_MAX)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED,
                             "an egress list of %zu addresses is too long: the limit is %d",
                             m->n_egress, AGX_FIREWALL_EGRESS_MAX);
    if (m->n_egress == 0)
        return 0;
    list = calloc(m->n_egress, sizeof(*list));
    if (!list)
        return agx_error_no_memory(err);
    memcpy(list, m->egress, m->n_egress * sizeof(*list));
    qsort(list, m->n_egress, sizeof(*list), compare_egress);
    return add_egress(w, m->bridge, list, m->n_egress, err);
}

int agx_firewall_text_member(const struct agx_firewall_member *m, struct agx_words *ret,
                             struct agx_error **err)
{
    _cleanup_(agx_words_done) struct agx_words w = { 0 };
    char text[AGX_SUBNET_TEXT];
    int r;

    if (!is_interface(m->bridge))
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "'%s' is not the name of a bridge",
                             m->bridge ? m->bridge : "");
    if (m->n_subnets == 0)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "the network on '%s' has no subnet",
                             m->bridge);
    r = add_element(&w, err, "bridges { \"%s\" }", m->bridge);
    if (r == 0)
        r = add_element(&w, err, "same { \"%s\" . \"%s\" }", m->bridge, m->bridge);
    if (r == 0 && m->closed)
        r = add_element(&w, err, "closed { \"%s\" }", m->bridge);
    for (size_t i = 0; r == 0 && i < m->n_subnets; i++)
        r = add_element(&w, err, "own%d { \"%s\" . %s }", version(&m->subnets[i]), m->bridge,
                        agx_subnet_format(&m->subnets[i], text));
    if (r == 0 && m->closed)
        r = add_list(&w, m, err);
    if (r < 0)
        return r;
    sort(&w);
    *ret = w;
    w = (struct agx_words){ 0 };
    return 0;
}

int agx_firewall_text_host(const struct agx_firewall_host *h, struct agx_words *ret,
                           struct agx_error **err)
{
    _cleanup_(agx_words_done) struct agx_words w = { 0 };
    char text[AGX_SUBNET_TEXT];
    int r = 0;

    for (size_t i = 0; r == 0 && i < h->uplinks.len; i++) {
        if (is_interface(h->uplinks.items[i]))
            r = add_element(&w, err, "uplinks { \"%s\" }", h->uplinks.items[i]);
    }
    for (size_t i = 0; r == 0 && i < h->resolvers.len; i++) {
        const struct agx_subnet *s = &h->resolvers.items[i];

        agx_subnet_format(s, text);
        *strchr(text, '/') = '\0';
        r = add_element(&w, err, "dns%d { %s }", version(s), text);
    }
    if (r < 0)
        return r;
    sort(&w);
    *ret = w;
    w = (struct agx_words){ 0 };
    return 0;
}

/* Writes the words of `a` that are not in `b`. */
static int write_difference(struct agx_buf *out, const char *verb, const char *table,
                            const struct agx_words *a, const struct agx_words *b)
{
    size_t j = 0;
    int r = 0;

    for (size_t i = 0; r == 0 && i < a->len; i++) {
        while (j < b->len && strcmp(b->items[j], a->items[i]) < 0)
            j++;
        if (j == b->len || strcmp(b->items[j], a->items[i]) != 0)
            r = agx_buf_printf(out, "%s element inet %s %s\n", verb, table, a->items[i]);
    }
    return r;
}

int agx_firewall_text_delete(struct agx_buf *out, const char *table, const struct agx_words *from,
                             const struct agx_words *to)
{
    return write_difference(out, "delete", table, from, to);
}

int agx_firewall_text_add(struct agx_buf *out, const char *table, const struct agx_words *from,
                          const struct agx_words *to)
{
    return write_difference(out, "add", table, to, from);
}
