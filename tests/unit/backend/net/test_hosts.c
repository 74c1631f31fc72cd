#include "backend/net/hosts.h"
#include "tests/support/test.h"

static void add(struct agx_words *w, const char *word)
{
    ASSERT_OK(agx_words_add(w, agx_str_from(word), NULL));
}

static void check_dns(const struct agx_words *list, const char *want)
{
    _cleanup_json_ json_t *servers = agx_hosts_dns(list);
    _cleanup_free_ char *text = json_dumps(servers, JSON_COMPACT);

    ASSERT_CSTR(want, text);
}

TEST(docker_hosts_dns_is_what_the_list_opens_or_nobody)
{
    _cleanup_(agx_words_done) struct agx_words list = { 0 };

    check_dns(&list, "[\"192.0.2.53\"]");
    add(&list, "1.1.1.1");
    add(&list, "10.0.0.0/8:53");
    add(&list, "dns.example.org:53");
    check_dns(&list, "[\"192.0.2.53\"]");
    add(&list, "9.9.9.9:53");
    add(&list, "[2620:fe::fe]:53");
    check_dns(&list, "[\"9.9.9.9\",\"2620:fe::fe\"]");
}

static void check(const struct agx_words *words, const char *want)
{
    struct agx_str rest = agx_str_from(want), word;
    size_t n = 0;

    for (; agx_str_split(&rest, ' ', &word); n++) {
        ASSERT_TRUE(n < words->len);
        ASSERT_STR(word, agx_str_from(words->items[n]));
    }
    ASSERT_UINT(n, words->len);
}

static void pin(struct agx_words *hosts, struct agx_words *list, const char *name,
                const char *address, unsigned port)
{
    struct agx_egress e = { .name = agx_str_from(name), .port = (uint16_t)port };

    if (address)
        ASSERT_OK(agx_subnet_parse(agx_str_from(address), &e.to, NULL));
    ASSERT_OK(agx_hosts_add(&e, hosts, list, NULL));
}

TEST(docker_hosts_add_takes_a_few_addresses_of_each_name)
{
    _cleanup_(agx_words_done) struct agx_words hosts = { 0 }, list = { 0 };

    pin(&hosts, &list, "a.org", NULL, 443);      /* not known */
    pin(&hosts, &list, "", "8.8.8.8", 443);      /* no name */
    pin(&hosts, &list, "a.org", "2606::1", 443); /* no IPv6 */
    pin(&hosts, &list, "a.org", "8.8.8.1", 443);
    pin(&hosts, &list, "a.org", "8.8.8.1", 80);
    pin(&hosts, &list, "a.org", "8.8.8.1", 80);
    pin(&hosts, &list, "a.org.uk", "8.8.8.9", 0);
    for (int i = 2; i < 9; i++)
        pin(&hosts, &list, "a.org",
            (const char[]){ '8', '.', '8', '.', '8', '.', (char)('0' + i), 0 }, 443);
    check(&hosts, "a.org:8.8.8.1 a.org.uk:8.8.8.9 a.org:8.8.8.2 a.org:8.8.8.3 a.org:8.8.8.4");
    check(&list, "8.8.8.1:443 8.8.8.1:80 8.8.8.9 8.8.8.2:443 8.8.8.3:443 8.8.8.4:443");
}
