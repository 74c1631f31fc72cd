/* control.c: agentix.v1.ControlService: its table of methods, and GetStats. The other
 * methods have their own files. */
#include "daemon/service/service_internal.h"

#include "base/clock.h"
#include "base/fd.h"
#include "grpc/server.h"
#include "wire/method.h"
#include "wire/stats.h"

#include <fcntl.h>

#include "base/banned.h"

/* The process' resident memory; 0: the kernel does not report it. */
static uint64_t resident_bytes(void)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(4096);
    struct agx_str rest, part;
    uint64_t pages;

    if (agx_fd_read_file(AT_FDCWD, "/proc/self/statm", &text, NULL) < 0)
        return 0;
    rest = agx_buf_peek(&text);
    /* The second number. */
    for (unsigned i = 0; i < 2; i++) {
        if (!agx_str_split(&rest, ' ', &part))
            return 0;
    }
    if (!agx_parse_u64(part, UINT32_MAX, &pages))
        return 0;
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void add_manager(const struct agx_service *s, struct agx_stats *stats)
{
    struct agx_manager_stats e;

    agx_manager_stats(s->config.manager, &e);
    memcpy(stats->sandboxes, e.by_state, sizeof(stats->sandboxes));
    stats->active_execs = e.active_execs;
    stats->subscribers = e.feeds;
}

static void add_rpc(const struct agx_service *s, struct agx_stats *stats)
{
    struct agx_grpc_stats r;

    agx_grpc_server_stats(s->config.server, &r);
    stats->rpc.connections = r.conns + r.refused;
    stats->rpc.calls = r.calls;
    stats->rpc.bytes = r.bytes;
    stats->rpc.calls_started = r.started;
    stats->rpc.connections_calmed = r.calmed;
}

static void add_store(const struct agx_service *s, struct agx_stats *stats)
{
    struct agx_store_stats t;

    agx_store_stats(s->config.store, &t);
    stats->store.commits = t.commits;
    stats->store.batches = t.batches;
    stats->store.refused = t.refused;
    stats->store.failed = t.failed;
    stats->store.bytes = t.bytes;
    stats->store.group_max = t.group_max;
    stats->store.map_bytes = t.map_bytes;
    stats->store.file_bytes = t.file_bytes;
    stats->store.map_growths = t.map_growths;
}

static void get_stats(void *service, struct agx_grpc_call *call, struct agx_str request)
{
    struct agx_service *s = service;
    struct agx_stats stats = {
        .version = (char *)s->config.version, /* only read */
        .backend = (char *)s->config.backend,
        .uptime_ns = agx_clock_ns() - s->started_ns,
        .pid = (uint32_t)getpid(),
        .rss_bytes = resident_bytes(),
        .longest_turn_ns = s->turns.longest_ns,
    };

    (void)request; /* it has no fields */
    add_manager(s, &stats);
    add_rpc(s, &stats);
    add_store(s, &stats);
    agx_service_reply(s, call, agx_stats_encode(agx_service_scratch(s), &stats));
}

const struct agx_grpc_method agx_service_control_methods[] = {
    { AGX_METHOD_WATCH_EVENTS, AGX_GRPC_SERVER_STREAM, true, agx_service_watch },
    { AGX_METHOD_READ_EXEC_OUTPUT, AGX_GRPC_SERVER_STREAM, true, agx_service_read_output },
    { AGX_METHOD_GET_WITH_USE, AGX_GRPC_UNARY, false, agx_service_get_with_use },
    { AGX_METHOD_LIST_PAGE, AGX_GRPC_UNARY, false, agx_service_list_page },
    { AGX_METHOD_WAIT_SANDBOX, AGX_GRPC_UNARY, true, agx_service_wait_sandbox },
    { AGX_METHOD_WAIT_EXEC, AGX_GRPC_UNARY, true, agx_service_wait_exec },
    { AGX_METHOD_WRITE_EXEC_INPUT, AGX_GRPC_CLIENT_STREAM, true, agx_service_write_input },
    { AGX_METHOD_GET_STATS, AGX_GRPC_UNARY, false, get_stats },
    { AGX_METHOD_BACKUP, AGX_GRPC_SERVER_STREAM, false, agx_service_backup },
};
const size_t agx_service_control_methods_len = AGX_ARRAY_LEN(agx_service_control_methods);
