/* agentix.v1's GetSandbox: a sandbox and its resource usage. */
#include "tests/support/service.h"

#include "wire/sandbox_request.h"
#include "wire/usage_wire.h"
#include "wire/view.h"

#include "base/banned.h"

static const struct agx_resource_usage some = {
    .known = 1U << AGX_USAGE_CPU_NS | 1U << AGX_USAGE_DISK,
    .figures = { [AGX_USAGE_CPU_NS] = 7, [AGX_USAGE_DISK] = 0 }
};

/* A service whose manager has one sandbox, READY. */
static void setup(struct service_fixture *f)
{
    service_setup(f, NULL);
    stub_add_ready(f->manager, "box-a", NULL);
}

/* Asks for it: the answer is that sandbox; what it uses goes to *ret. */
static void ask(struct service_fixture *f, struct agx_usage_view *ret)
{
    struct agx_sandbox_view v;
    struct rpc_request q;

    ASSERT_INT(AGX_OK, service_call_id(f, &q, AGX_METHOD_GET_WITH_USE, "box-a"));
    ASSERT_OK(agx_sandbox_view_decode(&v, agx_buf_peek(&f->reply), NULL, NULL));
    ASSERT_CSTR("box-a", v.id);
    ASSERT_INT(AGX_STATE_READY, v.state);
    agx_sandbox_view_done(&v);
    ASSERT_OK(agx_usage_view_decode(ret, agx_buf_peek(&f->reply), NULL));
    rpc_request_done(&q);
}

/* Asks, and returns while the backend thinks about it. */
static void begin_to_ask(struct service_fixture *f, struct rpc_request *q)
{
    stub_use(f->manager, &some, AGX_OK, true);
    ASSERT_OK(agx_id_encode(&f->message, "box-a"));
    service_start(f, q, AGX_METHOD_GET_WITH_USE);
    while (!stub_use_waits(f->manager))
        service_turns(f, 1);
}

TEST(a_sandbox_is_told_with_what_it_uses)
{
    struct service_fixture f;
    struct agx_usage_view v;

    setup(&f);
    stub_use(f.manager, &some, AGX_OK, false);
    ask(&f, &v);
    ASSERT_UINT(some.known, v.use.known); /* a figure that is 0 is there, one that is not is not */
    ASSERT_UINT(7, v.use.figures[AGX_USAGE_CPU_NS]);
    ASSERT_NULL(v.error);
    agx_usage_view_done(&v);
    service_teardown(&f);
}

TEST(a_backend_that_cannot_say_costs_the_figures_only)
{
    struct service_fixture f;
    struct agx_usage_view v;

    setup(&f);
    stub_use(f.manager, NULL, AGX_UNAVAILABLE, false);
    ask(&f, &v);
    ASSERT_UINT(0, v.use.known);
    ASSERT_CSTR("on purpose", v.error);
    agx_usage_view_done(&v);
    /* Nothing is there of it: that is no error. */
    stub_use(f.manager, NULL, AGX_NOT_FOUND, false);
    ask(&f, &v);
    ASSERT_UINT(0, v.use.known);
    ASSERT_NULL(v.error);
    agx_usage_view_done(&v);
    service_teardown(&f);
}

TEST(an_id_that_nobody_has_is_not_found)
{
    struct service_fixture f;
    struct rpc_request q;

    setup(&f);
    ASSERT_INT(AGX_NOT_FOUND, service_call_id(&f, &q, AGX_METHOD_GET_WITH_USE, "box-z"));
    service_refused(&q, AGX_NOT_FOUND, "sandbox box-z was not found", "SANDBOX_NOT_FOUND",
                    "sandbox_id", "box-z");
    rpc_request_done(&q);
    service_teardown(&f);
}

TEST(a_sandbox_that_is_purged_meanwhile_is_not_found)
{
    struct service_fixture f;
    struct rpc_request q;

    setup(&f);
    begin_to_ask(&f, &q);
    stub_purge(f.manager, "box-a");
    stub_use(f.manager, &some, AGX_OK, false);
    service_until_closed(&f, &q);
    ASSERT_CSTR("5", q.grpc_status);
    rpc_request_done(&q);
    service_teardown(&f);
}

TEST(a_client_that_goes_takes_its_query_along)
{
    struct service_fixture f;
    struct rpc_request q;

    setup(&f);
    begin_to_ask(&f, &q);
    service_cancel(&f, &q);
    while (stub_use_waits(f.manager))
        service_turns(&f, 1);
    rpc_request_done(&q);
    service_teardown(&f);
}
