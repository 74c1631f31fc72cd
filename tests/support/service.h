/*
 * service.h: for tests of the daemon's services: a server with both services on a manager stub, a
 * store in memory, and a client. The test turns everything explicitly.
 */
#ifndef AGX_TESTS_SERVICE_H
#define AGX_TESTS_SERVICE_H

#include "daemon/service/service.h"
#include "tests/support/grpc.h"
#include "tests/support/manager_stub.h"
#include "wire/method.h"
#include "wire/status_details.h"

/* A test may prepare for long before its client sends its first byte. */
#define SERVICE_HANDSHAKE_MS 3600000

struct service_fixture {
    struct rpc_fixture rpc;
    struct agx_manager *manager;
    struct agx_store *store;
    struct agx_service *service;
    struct agx_buf message; /* of the next request */
    struct agx_buf reply;   /* the last received message */
    unsigned n_closed;
};

/* `change` may be NULL; it changes the defaults for a test. */
void service_setup(struct service_fixture *f, void (*change)(struct agx_service_config *c));
void service_teardown(struct service_fixture *f);

/* Starts a call with f->message, and empties it. */
void service_start(struct service_fixture *f, struct rpc_request *q, const char *path);
/* Makes a whole call and returns its status. f->reply has the reply, if there is one. */
enum agx_code service_call(struct service_fixture *f, struct rpc_request *q, const char *path);
/* The same for a request that is an id. */
enum agx_code service_call_id(struct service_fixture *f, struct rpc_request *q, const char *path,
                              const char *id);

/* Waits for the next message of a stream and puts it into f->reply. False: the stream has ended. */
bool service_next(struct service_fixture *f, struct rpc_request *q);

/* Asserts that the call was refused with these; `reason` NULL: without details. Code, message and
 * details must agree. */
void service_refused(struct rpc_request *q, enum agx_code code, const char *message,
                     const char *reason, const char *key, const char *id);

/* Cancels a call as its client. */
void service_cancel(struct service_fixture *f, struct rpc_request *q);

/* Turns everything this many times. */
void service_turns(struct service_fixture *f, unsigned n);

/* Turns until the call ends, or its connection ends, which no test expects. */
void service_until_closed(struct service_fixture *f, struct rpc_request *q);

#endif
