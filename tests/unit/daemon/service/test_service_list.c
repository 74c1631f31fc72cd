/* Lists, whole and in pages, and deletes of many sandboxes. */
#include "tests/support/service.h"

#include "wire/control_request.h"
#include "wire/view.h"

#include <stdio.h>

#include "base/banned.h"

/* More than several slices. */
enum { MANY = 3 * AGX_LIST_SLICE + 10 };

static void add_many(struct service_fixture *f, const char *label)
{
    char id[32];

    for (unsigned i = 0; i < MANY; i++) {
        (void)snprintf(id, sizeof(id), "box-%04u", i);
        stub_add_ready(f->manager, id, label);
    }
}

static void put_list(struct service_fixture *f, bool include_deleted, const char *key,
                     const char *value)
{
    struct agx_list_request q = { .include_deleted = include_deleted };

    if (key)
        ASSERT_OK(agx_pairs_set(&q.selector, agx_str_from(key), agx_str_from(value), NULL));
    ASSERT_OK(agx_list_request_encode(&f->message, &q));
    agx_list_request_done(&q);
}

static size_t list(struct service_fixture *f, struct agx_sandbox_views *ret)
{
    struct rpc_request q;

    ASSERT_INT(AGX_OK, service_call(f, &q, AGX_METHOD_LIST_SANDBOXES));
    ASSERT_OK(agx_sandbox_views_decode(ret, agx_buf_peek(&f->reply), NULL));
    rpc_request_done(&q);
    return ret->len;
}

TEST(list_has_the_newest_first_and_no_deleted_ones_unless_asked)
{
    struct service_fixture f;
    struct agx_sandbox_views v;

    service_setup(&f, NULL);
    ASSERT_UINT(0, list(&f, &v));
    agx_sandbox_views_done(&v);
    stub_add_ready(f.manager, "box-a", "team=a");
    stub_add_ready(f.manager, "box-b", "team=b");
    stub_add_ready(f.manager, "box-c", "team=a");
    stub_move(f.manager, "box-c", AGX_ON_DELETE, AGX_DO_NONE);
    ASSERT_UINT(3, list(&f, &v)); /* one that is being deleted is there */
    ASSERT_CSTR("box-c", v.items[0].id);
    ASSERT_CSTR("box-b", v.items[1].id);
    ASSERT_CSTR("box-a", v.items[2].id);
    agx_sandbox_views_done(&v);
    stub_move(f.manager, "box-c", AGX_ON_DONE, AGX_DO_DELETE);
    put_list(&f, false, "team", "a");
    ASSERT_UINT(1, list(&f, &v));
    ASSERT_CSTR("box-a", v.items[0].id);
    agx_sandbox_views_done(&v);
    put_list(&f, true, "team", "a");
    ASSERT_UINT(2, list(&f, &v));
    agx_sandbox_views_done(&v);
    put_list(&f, true, "team", "c");
    ASSERT_UINT(0, list(&f, &v));
    agx_sandbox_views_done(&v);
    service_teardown(&f);
}

TEST(list_of_many_is_whole_and_lets_a_ping_through_before_its_end)
{
    struct service_fixture f;
    struct agx_sandbox_views v;
    struct rpc_request l, p;
    struct agx_str none = AGX_STR("");
    char id[32];

    service_setup(&f, NULL);
    add_many(&f, NULL);
    service_start(&f, &l, AGX_METHOD_LIST_SANDBOXES);
    rpc_start(&f.rpc.client, &p, AGX_METHOD_PING, &none);
    service_until_closed(&f, &p);
    ASSERT_FALSE(l.closed);
    /* What goes away meanwhile disturbs nothing. */
    stub_purge(f.manager, "box-0000");
    service_until_closed(&f, &l);
    ASSERT_TRUE(rpc_read(&l, &f.reply));
    ASSERT_OK(agx_sandbox_views_decode(&v, agx_buf_peek(&f.reply), NULL));
    ASSERT_UINT(MANY - 1, v.len);
    for (unsigned i = 0; i < v.len; i++) {
        (void)snprintf(id, sizeof(id), "box-%04u", MANY - 1 - i);
        ASSERT_CSTR(id, v.items[i].id);
    }
    agx_sandbox_views_done(&v);
    rpc_request_done(&l);
    rpc_request_done(&p);
    service_teardown(&f);
}

TEST(list_whose_client_leaves_is_dropped)
{
    struct service_fixture f;
    struct rpc_request q;

    service_setup(&f, NULL);
    add_many(&f, NULL);
    service_start(&f, &q, AGX_METHOD_LIST_SANDBOXES);
    service_turns(&f, 2);
    ASSERT_FALSE(q.closed);
    service_cancel(&f, &q);
    rpc_request_done(&q);
    service_teardown(&f);
}

/* One page; its token is left in *token. */
static enum agx_code page(struct service_fixture *f, struct rpc_request *q, uint32_t size,
                          uint32_t states, char **token, struct agx_sandbox_views *ret)
{
    struct agx_list_request request = { .page_size = size, .states = states, .page_token = *token };
    enum agx_code code;

    ASSERT_OK(agx_page_request_encode(&f->message, &request));
    free(*token);
    *token = NULL;
    code = service_call(f, q, AGX_METHOD_LIST_PAGE);
    if (code == AGX_OK) {
        ASSERT_OK(agx_sandbox_views_decode(ret, agx_buf_peek(&f->reply), NULL));
        *token = AGX_TAKE_PTR(ret->next_page_token);
    }
    rpc_request_done(q);
    return code;
}

static void few_in_a_page(struct agx_service_config *c)
{
    c->page_max = 100;
}

TEST(pages_hold_every_sandbox_once_and_the_last_says_so)
{
    struct service_fixture f;
    struct agx_sandbox_views v;
    struct rpc_request q;
    char *token = NULL, id[32];
    unsigned n = 0, pages = 0;

    service_setup(&f, few_in_a_page);
    add_many(&f, NULL);
    do {
        ASSERT_INT(AGX_OK, page(&f, &q, pages % 2 ? 30 : 0, 0, &token, &v));
        ASSERT_TRUE(v.len <= (pages % 2 ? 30 : 100));
        for (size_t i = 0; i < v.len; i++) {
            (void)snprintf(id, sizeof(id), "box-%04u", MANY - 1 - n++);
            ASSERT_CSTR(id, v.items[i].id);
        }
        pages++;
        agx_sandbox_views_done(&v);
        /* The page's last is forgotten: the next page begins behind its place. */
        if (pages == 1)
            stub_purge(f.manager, id);
    } while (token);
    ASSERT_UINT(MANY, n);
    service_teardown(&f);
}

TEST(page_that_holds_all_has_no_token_even_when_it_is_full)
{
    struct service_fixture f;
    struct agx_sandbox_views v;
    struct rpc_request q;
    char *token = NULL;

    service_setup(&f, NULL);
    stub_add_ready(f.manager, "box-a", NULL);
    stub_add(f.manager, "box-b", NULL);
    stub_add_ready(f.manager, "box-c", NULL);
    ASSERT_INT(AGX_OK, page(&f, &q, 2, 1U << AGX_STATE_READY, &token, &v));
    ASSERT_UINT(2, v.len);
    ASSERT_CSTR("box-c", v.items[0].id);
    ASSERT_CSTR("box-a", v.items[1].id);
    ASSERT_NULL(token);
    agx_sandbox_views_done(&v);
    service_teardown(&f);
}

TEST(page_token_that_is_none_is_refused)
{
    static const char *const bad[] = {
        "x", "12", "12.", ".box-a", "12.a b c", "-1.box-a", "99999999999999999999.box-a"
    };
    struct service_fixture f;
    struct agx_sandbox_views v;
    struct rpc_request q;

    service_setup(&f, NULL);
    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++) {
        char *token = strdup(bad[i]);

        ASSERT_INT(AGX_INVALID_ARGUMENT, page(&f, &q, 0, 0, &token, &v));
        ASSERT_NOT_NULL(strstr(q.grpc_message, "page_token"));
    }
    service_teardown(&f);
}

static void put_delete(struct service_fixture *f, const char *key, const char *value)
{
    struct agx_pairs selector = { 0 };

    ASSERT_OK(agx_pairs_set(&selector, agx_str_from(key), agx_str_from(value), NULL));
    ASSERT_OK(agx_delete_request_encode(&f->message, &selector));
    agx_pairs_done(&selector);
}

TEST(delete_of_many_tells_those_that_it_began_in_order)
{
    struct service_fixture f;
    struct agx_words ids = { 0 };
    struct rpc_request q;

    service_setup(&f, NULL);
    stub_add_ready(f.manager, "box-b", "team=a");
    stub_add(f.manager, "box-a", "team=a");
    stub_add(f.manager, "box-c", "team=b");
    stub_add_ready(f.manager, "box-d", "team=a");
    stub_move(f.manager, "box-d", AGX_ON_DELETE, AGX_DO_NONE);
    put_delete(&f, "team", "a");
    ASSERT_INT(AGX_OK, service_call(&f, &q, AGX_METHOD_DELETE_SANDBOXES));
    ASSERT_OK(agx_deleted_view_decode(&ids, agx_buf_peek(&f.reply), NULL));
    ASSERT_UINT(2, ids.len);
    ASSERT_CSTR("box-a", ids.items[0]);
    ASSERT_CSTR("box-b", ids.items[1]);
    agx_words_done(&ids);
    rpc_request_done(&q);
    put_delete(&f, "team", "nobody");
    ASSERT_INT(AGX_OK, service_call(&f, &q, AGX_METHOD_DELETE_SANDBOXES));
    ASSERT_OK(agx_deleted_view_decode(&ids, agx_buf_peek(&f.reply), NULL));
    ASSERT_UINT(0, ids.len);
    rpc_request_done(&q);
    (void)service_call(&f, &q, AGX_METHOD_DELETE_SANDBOXES);
    service_refused(&q, AGX_INVALID_ARGUMENT, "label_selector must not be empty", NULL, NULL, NULL);
    rpc_request_done(&q);
    service_teardown(&f);
}

TEST(delete_of_many_that_cannot_be_stored_fails)
{
    struct service_fixture f;
    struct rpc_request q;

    service_setup(&f, NULL);
    add_many(&f, "team=a");
    stub_fail(f.manager, AGX_RESOURCE_EXHAUSTED, "the disk is full");
    put_delete(&f, "team", "a");
    (void)service_call(&f, &q, AGX_METHOD_DELETE_SANDBOXES);
    service_refused(&q, AGX_RESOURCE_EXHAUSTED, "the disk is full", NULL, NULL, NULL);
    rpc_request_done(&q);
    service_teardown(&f);
}

TEST(delete_of_many_whose_client_leaves_ends_with_what_was_asked)
{
    struct service_fixture f;
    struct rpc_request q;

    service_setup(&f, NULL);
    add_many(&f, "team=a");
    stub_hold(f.manager, true);
    put_delete(&f, "team", "a");
    service_start(&f, &q, AGX_METHOD_DELETE_SANDBOXES);
    RPC_UNTIL(&f.rpc, stub_waiting(f.manager) > 0);
    service_cancel(&f, &q);
    ASSERT_TRUE(stub_waiting(f.manager) > 0);
    stub_hold(f.manager, false);
    RPC_UNTIL(&f.rpc, stub_waiting(f.manager) == 0);
    rpc_request_done(&q);
    service_teardown(&f);
}

static size_t active(struct service_fixture *f, const char *sandbox_id, struct agx_exec_views *ret)
{
    struct rpc_request q;

    ASSERT_OK(agx_active_request_encode(&f->message, sandbox_id));
    ASSERT_INT(AGX_OK, service_call(f, &q, AGX_METHOD_LIST_ACTIVE_EXECS));
    ASSERT_OK(agx_exec_views_decode(ret, agx_buf_peek(&f->reply), NULL));
    rpc_request_done(&q);
    return ret->len;
}

static void as_agboxd(struct agx_service_config *c)
{
    c->compat = true;
}

TEST(active_execs_are_those_of_all_of_one_or_of_none)
{
    struct service_fixture f;
    struct agx_exec_views v;

    service_setup(&f, NULL);
    stub_add_ready(f.manager, "box-a", NULL);
    stub_add_ready(f.manager, "box-b", NULL);
    stub_exec_add(f.manager, "box-a", "exec-2");
    stub_exec_add(f.manager, "box-b", "exec-1");
    stub_exec_add(f.manager, "box-b", "exec-3");
    stub_exec_move(f.manager, "exec-3", AGX_EXEC_ON_REFUSED, 0);
    ASSERT_UINT(2, active(&f, NULL, &v));
    ASSERT_CSTR("exec-1", v.items[0].exec.id);
    ASSERT_CSTR("exec-2", v.items[1].exec.id);
    ASSERT_UINT(5, v.items[0].last_sequence);
    ASSERT_UINT(0, v.items[0].exec.env_overrides.len); /* secrets */
    agx_exec_views_done(&v);
    ASSERT_UINT(1, active(&f, "box-a", &v));
    agx_exec_views_done(&v);
    ASSERT_UINT(0, active(&f, "", &v));
    agx_exec_views_done(&v);
    ASSERT_UINT(0, active(&f, "nobody", &v));
    agx_exec_views_done(&v);
    service_teardown(&f);
}

TEST(active_execs_in_compatibility_mode_have_their_environment)
{
    struct service_fixture f;
    struct agx_exec_views v;

    service_setup(&f, as_agboxd);
    stub_add_ready(f.manager, "box-a", NULL);
    stub_exec_add(f.manager, "box-a", "exec-1");
    ASSERT_UINT(1, active(&f, NULL, &v));
    ASSERT_CSTR("secret", agx_pairs_get(&v.items[0].exec.env_overrides, "TOKEN"));
    agx_exec_views_done(&v);
    service_teardown(&f);
}

TEST(active_execs_that_are_many_come_in_slices_each_once)
{
    struct service_fixture f;
    struct agx_exec_views v;
    char id[32];

    service_setup(&f, NULL);
    stub_add_ready(f.manager, "box-a", NULL);
    for (unsigned i = 0; i < MANY; i++) {
        (void)snprintf(id, sizeof(id), "exec-%04u", i);
        stub_exec_add(f.manager, "box-a", id);
    }
    ASSERT_UINT(MANY, active(&f, NULL, &v));
    for (unsigned i = 0; i < MANY; i++) {
        (void)snprintf(id, sizeof(id), "exec-%04u", i);
        ASSERT_CSTR(id, v.items[i].exec.id);
    }
    agx_exec_views_done(&v);
    service_teardown(&f);
}
