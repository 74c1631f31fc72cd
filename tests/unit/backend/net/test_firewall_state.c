#include "backend/net/firewall_docker_user.h"
#include "backend/net/firewall_state.h"
#include "base/limits_backend.h"
#include "tests/support/test.h"

#include <stdio.h>

#define TABLE "agentix-0badcafe"

struct wish {
    struct agx_subnet subnets[2];
    struct agx_egress egress[8];
    struct agx_firewall_member member;
};

/* `entries` ends with NULL; NULL itself: not closed. */
static struct agx_firewall_member *wish(struct wish *w, const char *id, const char *bridge,
                                        const char *subnet, const char *const *entries)
{
    *w = (struct wish){ 0 };
    ASSERT_OK(agx_subnet_parse(agx_str_from(subnet), &w->subnets[0], NULL));
    w->member = (struct agx_firewall_member){
        .sandbox_id = id,
        .bridge = bridge,
        .subnets = w->subnets,
        .n_subnets = 1,
        .closed = entries,
        .egress = w->egress,
    };
    for (; entries && entries[w->member.n_egress]; w->member.n_egress++)
        ASSERT_OK(agx_egress_parse(agx_str_from(entries[w->member.n_egress]),
                                   &w->egress[w->member.n_egress], NULL));
    return &w->member;
}

static void set(struct agx_firewall_state *s, const char *id, const char *bridge,
                const char *subnet, const char *const *entries)
{
    struct wish w;

    ASSERT_OK(agx_firewall_state_set(s, wish(&w, id, bridge, subnet, entries), NULL));
}

static struct agx_firewall_state open_state(void)
{
    struct agx_firewall_state s;

    agx_firewall_state_init(&s, "0badcafe-1234", false, (struct agx_siphash_key){ 1, 2 });
    return s;
}

/* The next script, as if the kernel took it. */
static void check_script(struct agx_firewall_state *s, const char *want)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(AGX_FIREWALL_TEXT_MAX);

    ASSERT_OK(agx_firewall_state_script(s, &out, NULL));
    ASSERT_STR(agx_str_from(want), agx_buf_peek(&out));
    agx_firewall_state_landed(s);
}

static void skip_script(struct agx_firewall_state *s)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(AGX_FIREWALL_TEXT_MAX);

    ASSERT_OK(agx_firewall_state_script(s, &out, NULL));
    agx_firewall_state_landed(s);
}

static bool script_has(struct agx_firewall_state *s, const char *words)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(AGX_FIREWALL_TEXT_MAX);

    ASSERT_OK(agx_firewall_state_script(s, &out, NULL));
    ASSERT_OK(agx_buf_push(&out, '\0'));
    return strstr((const char *)out.data, words) != NULL;
}

TEST(firewall_state_first_script_is_the_whole_table_and_later_ones_are_differences)
{
    _cleanup_(agx_firewall_state_done) struct agx_firewall_state s = open_state();

    set(&s, "a", "br-a", "10.213.0.0/28", NULL);
    ASSERT_TRUE(
        script_has(&s, "add table inet " TABLE "\ndelete table inet " TABLE "\ntable inet"));
    ASSERT_TRUE(script_has(&s, "add element inet " TABLE " own4 { \"br-a\" . 10.213.0.0/28 }\n"));
    skip_script(&s);
    check_script(&s, "");
    set(&s, "b", "br-b", "fd13::/64", NULL);
    check_script(&s, "add element inet " TABLE " bridges { \"br-b\" }\n"
                     "add element inet " TABLE " own6 { \"br-b\" . fd13::/64 }\n"
                     "add element inet " TABLE " same { \"br-b\" . \"br-b\" }\n");
    agx_firewall_state_remove(&s, "a");
    agx_firewall_state_remove(&s, "nobody");
    check_script(&s, "delete element inet " TABLE " bridges { \"br-a\" }\n"
                     "delete element inet " TABLE " own4 { \"br-a\" . 10.213.0.0/28 }\n"
                     "delete element inet " TABLE " same { \"br-a\" . \"br-a\" }\n");
    check_script(&s, "");
}

TEST(firewall_state_a_table_that_goes_while_a_script_is_in_flight_is_made_anew_by_the_next)
{
    _cleanup_(agx_firewall_state_done) struct agx_firewall_state s = open_state();

    set(&s, "a", "br-a", "10.213.0.0/28", NULL);
    ASSERT_TRUE(script_has(&s, "chain prerouting"));
    s.whole = true; /* as the firewall does when it hears of it */
    agx_firewall_state_landed(&s);
    ASSERT_TRUE(script_has(&s, "chain prerouting"));
    agx_firewall_state_landed(&s);
    check_script(&s, "");
}

TEST(firewall_state_without_members_drops_the_table_and_the_next_member_makes_it_anew)
{
    _cleanup_(agx_firewall_state_done) struct agx_firewall_state s = open_state();

    check_script(&s, "add table inet " TABLE "\ndelete table inet " TABLE "\n");
    ASSERT_FALSE(agx_firewall_state_any(&s));
    set(&s, "a", "br-a", "10.213.0.0/28", NULL);
    ASSERT_TRUE(agx_firewall_state_any(&s));
    skip_script(&s);
    agx_firewall_state_remove(&s, "a");
    check_script(&s, "add table inet " TABLE "\ndelete table inet " TABLE "\n");
    set(&s, "a", "br-a", "10.213.0.0/28", NULL);
    ASSERT_TRUE(script_has(&s, "chain prerouting"));
}

TEST(firewall_state_a_bridge_that_changes_hands_is_deleted_before_it_is_added)
{
    _cleanup_(agx_firewall_state_done) struct agx_firewall_state s = open_state();
    static const char want[] = "delete element inet " TABLE " own4 { \"br-a\" . 10.213.0.0/24 }\n"
                               "add element inet " TABLE " own4 { \"br-a\" . 10.213.0.0/28 }\n";

    set(&s, "keeper", "br-k", "10.213.9.0/28", NULL);
    set(&s, "a", "br-a", "10.213.0.0/24", NULL);
    skip_script(&s);
    set(&s, "a", "br-a", "10.213.0.0/28", NULL);
    check_script(&s, want); /* a set would refuse the smaller one beside the larger */
    agx_firewall_state_remove(&s, "a");
    set(&s, "b", "br-a", "10.213.0.0/28", NULL);
    ASSERT_TRUE(script_has(&s, "delete element inet " TABLE " same { \"br-a\" . \"br-a\" }\nadd"));
}

TEST(firewall_state_what_is_asked_for_while_a_script_is_in_flight_is_in_the_next)
{
    _cleanup_(agx_firewall_state_done) struct agx_firewall_state s = open_state();
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(AGX_FIREWALL_TEXT_MAX);

    set(&s, "a", "br-a", "10.213.0.0/28", NULL);
    skip_script(&s);
    set(&s, "b", "br-b", "10.213.0.16/28", NULL);
    ASSERT_OK(agx_firewall_state_script(&s, &out, NULL));
    agx_firewall_state_remove(&s, "b");
    set(&s, "c", "br-c", "10.213.0.32/28", NULL);
    agx_firewall_state_landed(&s);
    ASSERT_TRUE(script_has(&s, "delete element inet " TABLE " bridges { \"br-b\" }\n"));
    ASSERT_TRUE(script_has(&s, "add element inet " TABLE " bridges { \"br-c\" }\n"));
    ASSERT_FALSE(script_has(&s, "br-a"));
}

TEST(firewall_state_after_a_failure_all_is_written_anew)
{
    _cleanup_(agx_firewall_state_done) struct agx_firewall_state s = open_state();

    set(&s, "a", "br-a", "10.213.0.0/28", NULL);
    skip_script(&s);
    set(&s, "b", "br-b", "10.213.0.16/28", NULL);
    s.whole = true;
    ASSERT_TRUE(script_has(&s, "chain prerouting"));
    ASSERT_TRUE(script_has(&s, "\"br-a\""));
    ASSERT_TRUE(script_has(&s, "\"br-b\""));
    ASSERT_FALSE(script_has(&s, "delete element"));
}

TEST(firewall_text_of_an_egress_list_leaves_out_what_another_entry_covers)
{
    static const char *const list[] = { "203.0.113.7",
                                        "203.0.113.0/24",
                                        "203.0.113.7:443",
                                        "203.0.113.0/28:443",
                                        "203.0.113.7:80",
                                        "[2001:db8::/32]:443",
                                        NULL };
    _cleanup_(agx_words_done) struct agx_words words = { 0 };
    static const char *const want[] = {
        "any4 { \"br-a\" . 203.0.113.0/24 }",
        "bridges { \"br-a\" }",
        "closed { \"br-a\" }",
        "own4 { \"br-a\" . 10.213.0.0/28 }",
        "port4 { \"br-a\" . 203.0.113.0/28 . 443 }",
        "port4 { \"br-a\" . 203.0.113.7/32 . 80 }",
        "port6 { \"br-a\" . 2001:db8::/32 . 443 }",
        "same { \"br-a\" . \"br-a\" }",
    };
    struct wish w;

    ASSERT_OK(agx_firewall_text_member(wish(&w, "a", "br-a", "10.213.0.0/28", list), &words, NULL));
    ASSERT_UINT(AGX_ARRAY_LEN(want), words.len);
    for (size_t i = 0; i < words.len; i++)
        ASSERT_CSTR(want[i], words.items[i]);
}

TEST(firewall_text_of_a_member_that_cannot_be_is_invalid)
{
    static const char *const bad[] = { "", "br-*", "a\"b", "a b", "sixteen-bytes-xx", "..", "a/b" };

    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++) {
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;
        _cleanup_(agx_words_done) struct agx_words words = { 0 };
        struct wish w;

        ASSERT_CODE(
            AGX_INVALID_ARGUMENT,
            agx_firewall_text_member(wish(&w, "a", bad[i], "10.0.0.0/28", NULL), &words, &err));
        ASSERT_MESSAGE(err, "not the name of a bridge");
        ASSERT_UINT(0, words.len);
    }
}

TEST(firewall_state_set_with_a_bridge_of_another_member_is_invalid_and_changes_nothing)
{
    _cleanup_(agx_firewall_state_done) struct agx_firewall_state s = open_state();
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct wish w;

    set(&s, "a", "br-a", "10.213.0.0/28", NULL);
    skip_script(&s);
    ASSERT_CODE(AGX_INVALID_ARGUMENT,
                agx_firewall_state_set(&s, wish(&w, "b", "br-a", "10.213.0.16/28", NULL), &err));
    ASSERT_MESSAGE(err, "belongs to sandbox 'a'");
    check_script(&s, "");
}

TEST(firewall_text_of_too_long_a_list_is_resource_exhausted)
{
    static struct agx_egress list[AGX_FIREWALL_EGRESS_MAX + 1];
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    _cleanup_(agx_words_done) struct agx_words words = { 0 };
    struct wish w;
    struct agx_firewall_member *m =
        wish(&w, "a", "br-a", "10.0.0.0/28", (const char *const[]){ "10.0.0.1", NULL });

    m->egress = list;
    m->n_egress = AGX_ARRAY_LEN(list);
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_firewall_text_member(m, &words, &err));
    ASSERT_MESSAGE(err, "too long");
}

TEST(firewall_text_blocks_the_lan_only_when_told)
{
    _cleanup_buf_ struct agx_buf open = AGX_BUF_INIT(AGX_FIREWALL_TEXT_MAX);
    _cleanup_buf_ struct agx_buf blocked = AGX_BUF_INIT(AGX_FIREWALL_TEXT_MAX);

    ASSERT_OK(agx_firewall_text_rules(&open, TABLE, false, false));
    ASSERT_OK(agx_firewall_text_rules(&blocked, TABLE, true, false));
    ASSERT_OK(agx_buf_push(&open, '\0'));
    ASSERT_OK(agx_buf_push(&blocked, '\0'));
    ASSERT_NULL(strstr((const char *)open.data, "192.168.0.0/16"));
    ASSERT_NOT_NULL(strstr((const char *)blocked.data, "192.168.0.0/16"));
    ASSERT_NOT_NULL(strstr((const char *)open.data, "169.254.0.0/16"));
}

TEST(firewall_text_hides_members_behind_the_hosts_address_only_when_no_engine_does)
{
    _cleanup_buf_ struct agx_buf engine = AGX_BUF_INIT(AGX_FIREWALL_TEXT_MAX);
    _cleanup_buf_ struct agx_buf routed = AGX_BUF_INIT(AGX_FIREWALL_TEXT_MAX);

    ASSERT_OK(agx_firewall_text_rules(&engine, TABLE, false, false));
    ASSERT_OK(agx_firewall_text_rules(&routed, TABLE, false, true));
    ASSERT_OK(agx_buf_push(&engine, '\0'));
    ASSERT_OK(agx_buf_push(&routed, '\0'));
    ASSERT_NULL(strstr((const char *)engine.data, "masquerade"));
    ASSERT_NOT_NULL(strstr((const char *)routed.data, "masquerade"));
}

TEST(firewall_pass_finds_the_rules_with_our_mark_and_no_others)
{
    static const char json[] = "{\"nftables\": [{\"metainfo\": {}}, {\"chain\": {\"handle\": 1}},"
                               "{\"rule\": {\"handle\": 8, \"comment\": \"agentix-1234abcd\"}},"
                               "{\"rule\": {\"handle\": 9, \"comment\": \"agentix-ffffffff\"}},"
                               "{\"rule\": {\"handle\": 3}}, 7,"
                               "{\"rule\": {\"handle\": 10, \"comment\": \"agentix-1234abcd\"}}]}";
    uint64_t got[4];

    ASSERT_INT(2, agx_firewall_docker_user_find(json, "agentix-1234abcd", got, AGX_ARRAY_LEN(got)));
    ASSERT_INT(8, got[0]);
    ASSERT_INT(10, got[1]);
    ASSERT_INT(1, agx_firewall_docker_user_find(json, "agentix-1234abcd", got, 1));
    ASSERT_INT(0, agx_firewall_docker_user_find(json, "agentix-", got, AGX_ARRAY_LEN(got)));
    ASSERT_INT(
        0, agx_firewall_docker_user_find("no json", "agentix-1234abcd", got, AGX_ARRAY_LEN(got)));
}

TEST(firewall_host_takes_name_servers_that_are_not_loopback_once_each)
{
    struct agx_firewall_host h = { 0 };
    _cleanup_(agx_words_done) struct agx_words words = { 0 };
    static const char text[] =
        "# nameserver 1.1.1.1\nsearch example.org\nnameserver 10.0.0.2\n"
        "nameserver\t127.0.0.53\nnameserver 10.0.0.2 \nnameserver ::1\n"
        "nameserver fe80::1%eth0\nnameserver fd00::53\nnameserver 10.0.0.0/8\n"
        "options edns0\nnameserver 169.254.169.254";

    ASSERT_OK(agx_firewall_host_resolvers(&h, agx_str_from(text), NULL));
    ASSERT_OK(agx_firewall_text_host(&h, &words, NULL));
    ASSERT_UINT(3, words.len);
    ASSERT_CSTR("dns4 { 10.0.0.2 }", words.items[0]);
    ASSERT_CSTR("dns4 { 169.254.169.254 }", words.items[1]);
    ASSERT_CSTR("dns6 { fd00::53 }", words.items[2]);
    agx_firewall_host_done(&h);
}

TEST(firewall_state_script_that_did_not_land_is_part_of_the_next)
{
    _cleanup_(agx_firewall_state_done) struct agx_firewall_state s = open_state();

    set(&s, "a", "br-a", "10.213.0.0/28", NULL);
    skip_script(&s);
    set(&s, "b", "br-b", "10.213.0.16/28", NULL);
    agx_firewall_state_remove(&s, "a");
    ASSERT_TRUE(script_has(&s, "\"br-b\"")); /* script_has() lands nothing */
    set(&s, "c", "br-c", "10.213.0.32/28", NULL);
    ASSERT_TRUE(script_has(&s, "add element inet " TABLE " bridges { \"br-b\" }\n"));
    ASSERT_TRUE(script_has(&s, "add element inet " TABLE " bridges { \"br-c\" }\n"));
    ASSERT_TRUE(script_has(&s, "delete element inet " TABLE " bridges { \"br-a\" }\n"));
    skip_script(&s);
    check_script(&s, "");
}
