/*
 * service_internal.h: declarations shared by the files of the service.
 *
 *     service.c     open, close, what is shared
 *     agbox*.c      agbox.v1.SandboxService
 *     control*.c    agentix.v1.ControlService
 *     image*.c      agentix.v1.ImageService
 *     subscribe.c   the event streams of both
 *
 * A handler that answers later keeps a struct with the call in it. The call and the work may end in
 * either order: `ended` takes the call out of the struct, and frees the struct if no work is left;
 * an answer of the manager that finds no call is dropped. An accepted request goes on either way.
 */
#ifndef AGX_DAEMON_SERVICE_SERVICE_INTERNAL_H
#define AGX_DAEMON_SERVICE_SERVICE_INTERNAL_H

#include "base/map.h"
#include "daemon/manager/manager.h"
#include "daemon/service/refusal.h"
#include "daemon/service/service.h"
#include "grpc/call.h"
#include "loop/alarms.h"
#include "loop/slices.h"
#include "loop/turnwatch.h"

/* The number of streams of one user. */
struct agx_uid_count {
    uid_t uid;
    uint32_t n;
};

struct agx_service {
    struct agx_service_config config;
    struct agx_slices slices;
    struct agx_alarms alarms;
    struct agx_turnwatch turns;
    unsigned n_open; /* open handles of these three */
    uint64_t started_ns;
    struct agx_buf pong;    /* the answer to every Ping */
    struct agx_buf scratch; /* for the answer being built; never kept across a callback */
    struct agx_uid_count *streams;
    size_t streams_len;
    struct agx_map writers; /* execs whose input has a writer */
    bool backing_up;
    agx_done_fn closed;
    void *user;
};

/* The scratch buffer, empty. */
struct agx_buf *agx_service_scratch(struct agx_service *s);

/* Answers with the scratch buffer. `r` is the result of filling it: negative means out of memory.
 */
void agx_service_reply(struct agx_service *s, struct agx_grpc_call *call, int r);

/* Appends a sandbox to an answer, in the form that this daemon's mode requires. */
int agx_service_put_sandbox(const struct agx_service *s, struct agx_buf *out,
                            const struct agx_sandbox *sb) AGX_MUST_CHECK;

/* Counts a stream of this call's user: -AGX_RESOURCE_EXHAUSTED past the limit. */
int agx_service_stream_begin(struct agx_service *s, const struct agx_grpc_call *call,
                             struct agx_error **err) AGX_MUST_CHECK;
void agx_service_stream_end(struct agx_service *s, uid_t uid);

extern const struct agx_grpc_method agx_service_agbox_methods[];
extern const size_t agx_service_agbox_methods_len;
extern const struct agx_grpc_method agx_service_control_methods[];
extern const size_t agx_service_control_methods_len;
extern const struct agx_grpc_method agx_service_image_methods[];
extern const size_t agx_service_image_methods_len;

/* Handlers that have a file of their own. */
void agx_service_list(void *service, struct agx_grpc_call *call, struct agx_str request);
void agx_service_list_page(void *service, struct agx_grpc_call *call, struct agx_str request);
void agx_service_list_active(void *service, struct agx_grpc_call *call, struct agx_str request);
void agx_service_delete_many(void *service, struct agx_grpc_call *call, struct agx_str request);
void agx_service_subscribe(void *service, struct agx_grpc_call *call, struct agx_str request);
void agx_service_watch(void *service, struct agx_grpc_call *call, struct agx_str request);
void agx_service_get_with_use(void *service, struct agx_grpc_call *call, struct agx_str request);
void agx_service_wait_sandbox(void *service, struct agx_grpc_call *call, struct agx_str request);
void agx_service_wait_exec(void *service, struct agx_grpc_call *call, struct agx_str request);
void agx_service_read_output(void *service, struct agx_grpc_call *call, struct agx_str request);
void agx_service_write_input(void *service, struct agx_grpc_call *call, struct agx_str request);
void agx_service_backup(void *service, struct agx_grpc_call *call, struct agx_str request);

#endif
