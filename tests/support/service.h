/*
 * service.h: for tests of the daemon's services: a server with both of them on a stub of a manager,
 * a store in memory, and a client. The test turns everything by hand.
 */
#ifndef AGX_TESTS_SERVICE_H
#define AGX_TESTS_SERVICE_H

#include "daemon/service/service.h"
#include "tests/support/grpc.h"
#include "tests/support/manager_stub.h"
#include "wire/method.h"
#include "wire/status_details.h"

/* A test may prepare much before its client says its first word. */
#define SERVICE_HANDSHAKE_MS 3600000

struct service_fixture {
    struct rpc_fixture rpc;
    struct agx_manager *manager;
    struct agx_store *store;
    struct agx_service *service;
    struct agx_buf message; /* of the request that is being made */
    struct agx_buf reply;   /* the message that came last */
    unsigned n_closed;
};

/* `change` may be NULL; it sets what a test wants to be different. */
void service_setup(struct service_fixture *f, void (*change)(struct agx_service_config *c));
void service_teardown(struct service_fixture *f);

/* Starts a call with f->message, which is empty afterwards. */
void service_start(struct service_fixture *f, struct rpc_request *q, const char *path);
/* One whole call: its status. A reply, if there is one, is in f->reply. */
enum agx_code service_call(struct service_fixture *f, struct rpc_request *q, const char *path);
/* The same for a request that is an id. */
enum agx_code service_call_id(struct service_fixture *f, struct rpc_request *q, const char *path,
                              const char *id);

/* Waits for the next message of a stream: it is f->reply. False: the stream has ended. */
bool service_next(struct service_fixture *f, struct rpc_request *q);

/* The call was refused with these; `reason` NULL: without details. Code, message and details agree.
 */
void service_refused(struct rpc_request *q, enum agx_code code, const char *message,
                     const char *reason, const char *key, const char *id);

/* A call under way is given up by its client. */
void service_cancel(struct service_fixture *f, struct rpc_request *q);

/* So many turns of everything. */
void service_turns(struct service_fixture *f, unsigned n);

/* Turns until the call has ended, or its connection, which no test expects. */
void service_until_closed(struct service_fixture *f, struct rpc_request *q);

#endif
