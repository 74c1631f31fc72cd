#include "backend/native/net/resolv.h"
#include "tests/support/test.h"

static struct agx_resolv parse(const char *text, const char *second, const char *own)
{
    _cleanup_(agx_words_done) struct agx_words addresses = { 0 };
    struct agx_resolv r = { 0 };

    if (own)
        ASSERT_OK(agx_words_add(&addresses, agx_str_from(own), NULL));
    ASSERT_OK(agx_resolv_parse(&r, agx_str_from(text), agx_str_from(second), &addresses, NULL));
    return r;
}

static void check_file(const struct agx_resolv *r, enum agx_nsset_network network,
                       const char *entries, const char *want)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(4096);
    _cleanup_(agx_words_done) struct agx_words egress = { 0 };
    struct agx_str rest = agx_str_from(entries), word;

    while (agx_str_split(&rest, ' ', &word))
        ASSERT_OK(agx_words_add(&egress, word, NULL));
    ASSERT_OK(agx_resolv_write(r, network, &egress, &out));
    ASSERT_OK(agx_buf_push(&out, '\0'));
    ASSERT_CSTR(want, (const char *)out.data);
}

TEST(resolv_takes_the_hosts_servers_and_its_search_list)
{
    _cleanup_(agx_resolv_done) struct agx_resolv r =
        parse("# a comment\nsearch a.example b.example \nnameserver 192.0.2.1\n"
              "nameserver\t192.0.2.2 \nnameserver 192.0.2.1\nnameserver 2001:db8::1\n"
              "nameserver nonsense\nnameserver\noptions ndots:2\nnameservers 192.0.2.9",
              "nameserver 192.0.2.7\n", NULL);

    ASSERT_FALSE(agx_resolv_needs_forward(&r, AGX_NSSET_NAT));
    check_file(&r, AGX_NSSET_NAT, "",
               "search a.example b.example\noptions ndots:2\nnameserver 192.0.2.1\n"
               "nameserver 192.0.2.2\n");
}

TEST(resolv_knows_which_servers_are_the_host_itself)
{
    _cleanup_(agx_words_done) struct agx_words own = { 0 };

    ASSERT_OK(agx_resolv_own(AGX_STR("nameserver 192.0.2.1\nnameserver 127.0.0.1\n"
                                     "nameserver 127.0.0.1\nnameserver ::1\nnameserver x\n"),
                             &own, NULL));
    ASSERT_UINT(1, own.len);
    ASSERT_CSTR("127.0.0.1", own.items[0]);
}

TEST(resolv_takes_at_most_three_servers)
{
    _cleanup_(agx_resolv_done) struct agx_resolv r =
        parse("nameserver 192.0.2.1\nnameserver 192.0.2.2\nnameserver 192.0.2.3\n"
              "nameserver 192.0.2.4\n",
              "", NULL);

    check_file(&r, AGX_NSSET_NAT, "",
               "nameserver 192.0.2.1\nnameserver 192.0.2.2\nnameserver 192.0.2.3\n");
}

TEST(resolv_of_a_host_with_systemd_resolved_takes_the_servers_behind_it)
{
    _cleanup_(agx_resolv_done) struct agx_resolv r =
        parse("nameserver 127.0.0.53\noptions edns0\n", "nameserver 192.0.2.7\n", NULL);

    ASSERT_FALSE(agx_resolv_needs_forward(&r, AGX_NSSET_NAT));
    check_file(&r, AGX_NSSET_NAT, "", "options edns0\nnameserver 192.0.2.7\n");
}

TEST(resolv_of_a_host_whose_server_is_its_own_needs_a_forwarder)
{
    static const char *const texts[][3] = {
        { "nameserver 127.0.0.53\n", "", "127.0.0.53" },
        { "nameserver 192.168.1.1\n", "", "192.168.1.1" }, /* of the host */
        { "nameserver ::1\n", "nameserver 127.0.0.1\n", "::1" },
        { "nameserver 2001:db8::1\n", "", "2001:db8::1" }, /* a sandbox has no IPv6 */
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(texts); i++) {
        _cleanup_(agx_resolv_done) struct agx_resolv r =
            parse(texts[i][0], texts[i][1], "192.168.1.1");

        ASSERT_CSTR(texts[i][2], r.upstream);
        ASSERT_TRUE(agx_resolv_needs_forward(&r, AGX_NSSET_NAT));
        ASSERT_FALSE(agx_resolv_needs_forward(&r, AGX_NSSET_CLOSED));
        ASSERT_FALSE(agx_resolv_needs_forward(&r, AGX_NSSET_NONE));
        check_file(&r, AGX_NSSET_NAT, "", "nameserver 127.0.0.11\n");
    }
}

TEST(resolv_of_a_closed_network_has_the_servers_of_its_list_alone)
{
    _cleanup_(agx_resolv_done) struct agx_resolv r =
        parse("search a.example\nnameserver 192.0.2.1\n", "", NULL);

    check_file(&r, AGX_NSSET_CLOSED,
               "192.0.2.9:53 192.0.2.8 192.0.2.7:443 192.0.2.0/24:53 dns.example.org:53 "
               "[2001:db8::1]:53",
               "search a.example\nnameserver 192.0.2.9\n");
    check_file(&r, AGX_NSSET_CLOSED, "192.0.2.1:443", "search a.example\n");
    check_file(&r, AGX_NSSET_NONE, "", "");
}

TEST(resolv_of_a_host_without_servers_has_none)
{
    _cleanup_(agx_resolv_done) struct agx_resolv r = parse("", "", NULL);

    ASSERT_FALSE(agx_resolv_needs_forward(&r, AGX_NSSET_NAT));
    check_file(&r, AGX_NSSET_NAT, "", "");
}

TEST(resolv_reads_this_host)
{
    _cleanup_(agx_resolv_done) struct agx_resolv r = { 0 };

    ASSERT_OK(agx_resolv_read(&r, NULL));
    ASSERT_TRUE(r.servers.len == 0 || r.upstream[0] == '\0');
}
