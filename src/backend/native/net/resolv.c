/* resolv.c: see resolv.h. */
#include "backend/native/net/resolv.h"

#include "base/fd.h"
#include "base/limits_backend.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/banned.h"

enum { DNS_PORT = 53, SERVERS_MAX = 3 }; /* libc uses no more servers */

/* The part of a line behind this keyword; false: another keyword. */
static bool has_key(struct agx_str line, const char *key, struct agx_str *ret)
{
    struct agx_str word = agx_str_from(key);

    if (!agx_str_starts(line, word) || line.len == word.len ||
        (line.ptr[word.len] != ' ' && line.ptr[word.len] != '\t'))
        return false;
    *ret = agx_str_trim(agx_str_skip(line, word.len));
    return true;
}

/* An address of one family as text, in canonical form. */
static bool is_address(struct agx_str text, int family, char out[INET6_ADDRSTRLEN])
{
    char copy[INET6_ADDRSTRLEN];
    uint8_t bytes[16];

    if (text.len == 0 || text.len >= sizeof(copy))
        return false;
    (void)snprintf(copy, sizeof(copy), "%.*s", AGX_STR_ARG(text));
    return inet_pton(family, copy, bytes) == 1 &&
           inet_ntop(family, bytes, out, INET6_ADDRSTRLEN) != NULL;
}

static bool is_reached(const char *address, const struct agx_words *own)
{
    return strncmp(address, "127.", 4) != 0 && strncmp(address, "0.", 2) != 0 &&
           !agx_words_has(own, address);
}

/* Takes the servers that a sandbox reaches, and the first one that it does not. */
static int take_servers(struct agx_resolv *r, struct agx_str text, const struct agx_words *own,
                        struct agx_error **err)
{
    char address[INET6_ADDRSTRLEN];
    struct agx_str line, value;

    while (agx_str_split(&text, '\n', &line)) {
        int bad;

        if (!has_key(line, "nameserver", &value))
            continue;
        if (is_address(value, AF_INET, address) && is_reached(address, own)) {
            if (agx_words_has(&r->servers, address) || r->servers.len == SERVERS_MAX)
                continue;
            bad = agx_words_add(&r->servers, agx_str_from(address), err);
            if (bad < 0)
                return bad;
        } else if (!r->upstream[0] &&
                   (is_address(value, AF_INET, address) || is_address(value, AF_INET6, address))) {
            (void)snprintf(r->upstream, sizeof(r->upstream), "%s", address);
        }
    }
    return 0;
}

static int take_lines(struct agx_resolv *r, struct agx_str text, struct agx_error **err)
{
    static const char *const keys[] = { "search", "domain", "options" };
    struct agx_str line, value;
    int bad = 0;

    while (bad == 0 && agx_str_split(&text, '\n', &line)) {
        for (size_t i = 0; bad == 0 && i < AGX_ARRAY_LEN(keys); i++) {
            if (has_key(line, keys[i], &value))
                bad = agx_words_add(&r->lines, agx_str_trim(line), err);
        }
    }
    return bad;
}

int agx_resolv_parse(struct agx_resolv *r, struct agx_str text, struct agx_str second,
                     const struct agx_words *own, struct agx_error **err)
{
    int bad = take_lines(r, text, err);

    if (bad == 0)
        bad = take_servers(r, text, own, err);
    if (bad == 0 && r->servers.len == 0)
        bad = take_servers(r, second, own, err);
    if (r->servers.len > 0)
        r->upstream[0] = '\0';
    return bad;
}

/* Whether the host itself has that address: tried by bind(). Listing the host's addresses would
 * wait for whoever changes a link, and with sandboxes that come and go somebody always does. */
static bool is_own(const char *address)
{
    _cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in at = { .sin_family = AF_INET };

    return inet_pton(AF_INET, address, &at.sin_addr) == 1 && fd >= 0 &&
           bind(fd, (const struct sockaddr *)&at, sizeof(at)) == 0;
}

int agx_resolv_own(struct agx_str text, struct agx_words *own, struct agx_error **err)
{
    char address[INET6_ADDRSTRLEN];
    struct agx_str line, value;
    int bad = 0;

    while (bad == 0 && agx_str_split(&text, '\n', &line)) {
        if (has_key(line, "nameserver", &value) && is_address(value, AF_INET, address) &&
            !agx_words_has(own, address) && is_own(address))
            bad = agx_words_add(own, agx_str_from(address), err);
    }
    return bad;
}

int agx_resolv_read(struct agx_resolv *r, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf first = AGX_BUF_INIT(AGX_FIREWALL_RESOLV_MAX);
    _cleanup_buf_ struct agx_buf second = AGX_BUF_INIT(AGX_FIREWALL_RESOLV_MAX);
    _cleanup_(agx_words_done) struct agx_words own = { 0 };
    int bad;

    /* A missing file names no server. */
    if (agx_fd_read_file(AT_FDCWD, "/etc/resolv.conf", &first, NULL) < 0)
        agx_buf_clear(&first);
    if (agx_fd_read_file(AT_FDCWD, "/run/systemd/resolve/resolv.conf", &second, NULL) < 0)
        agx_buf_clear(&second);
    bad = agx_resolv_own(agx_buf_peek(&first), &own, err);
    if (bad == 0)
        bad = agx_resolv_own(agx_buf_peek(&second), &own, err);
    return bad < 0 ? bad
                   : agx_resolv_parse(r, agx_buf_peek(&first), agx_buf_peek(&second), &own, err);
}

bool agx_resolv_needs_forward(const struct agx_resolv *r, enum agx_nsset_network network)
{
    return network == AGX_NSSET_NAT && r->upstream[0];
}

/* Addresses of an egress list whose port 53 is open. */
static int write_listed(const struct agx_words *egress, struct agx_buf *out)
{
    char text[AGX_SUBNET_TEXT];
    size_t n = 0;
    int bad = 0;

    for (size_t i = 0; bad == 0 && n < SERVERS_MAX && i < egress->len; i++) {
        struct agx_egress e;

        if (agx_egress_parse(agx_str_from(egress->items[i]), &e, NULL) < 0 || e.name.len > 0 ||
            e.port != DNS_PORT || e.to.ipv6 || e.to.prefix != 32)
            continue;
        *strchr(agx_subnet_format(&e.to, text), '/') = '\0';
        bad = agx_buf_printf(out, "nameserver %s\n", text);
        n++;
    }
    return bad;
}

int agx_resolv_write(const struct agx_resolv *r, enum agx_nsset_network network,
                     const struct agx_words *egress, struct agx_buf *out)
{
    int bad = 0;

    for (size_t i = 0; bad == 0 && network != AGX_NSSET_NONE && i < r->lines.len; i++)
        bad = agx_buf_printf(out, "%s\n", r->lines.items[i]);
    if (bad == 0 && network == AGX_NSSET_CLOSED)
        bad = write_listed(egress, out);
    if (bad == 0 && agx_resolv_needs_forward(r, network))
        bad = agx_buf_printf(out, "nameserver " AGX_RESOLV_INSIDE "\n");
    for (size_t i = 0; bad == 0 && network == AGX_NSSET_NAT && i < r->servers.len; i++)
        bad = agx_buf_printf(out, "nameserver %s\n", r->servers.items[i]);
    return bad;
}

void agx_resolv_done(struct agx_resolv *r)
{
    agx_words_done(&r->servers);
    agx_words_done(&r->lines);
}
