/*
 * manager_stub.h: for tests of the services: a manager in memory that the test drives.
 *
 * It implements daemon/manager/manager.h with the real rules (core/), without a store or a backend.
 * It answers requests in a later turn, or when the test allows it. The test makes the reports of a
 * backend with stub_move() and stub_exec_move().
 */
#ifndef AGX_TESTS_MANAGER_STUB_H
#define AGX_TESTS_MANAGER_STUB_H

#include "daemon/manager/manager.h"

struct agx_manager *stub_manager_open(struct agx_loop *l);
/* Asserts that no request waits for an answer and no feed is open. */
void stub_manager_close(struct agx_manager *e);

/* Holds all answers until it is called with false. */
void stub_hold(struct agx_manager *e, bool on);
/* Makes the next request fail with this. */
void stub_fail(struct agx_manager *e, enum agx_code code, const char *message);

/* Adds an accepted sandbox with this label ("key=value", or NULL). */
void stub_add(struct agx_manager *e, const char *id, const char *label);
/* The same, and the sandbox is READY. */
void stub_add_ready(struct agx_manager *e, const char *id, const char *label);
/* Applies an input to a sandbox; `op` is the operation that reports it. */
void stub_move(struct agx_manager *e, const char *id, enum agx_on on, enum agx_do op);
/* Purges a sandbox; its readers end. */
void stub_purge(struct agx_manager *e, const char *id);

/* Reports that an image of the sandbox is being pulled. */
void stub_pull(struct agx_manager *e, const char *sandbox_id, const struct agx_pull *pull);

void stub_exec_add(struct agx_manager *e, const char *sandbox_id, const char *id);
void stub_exec_move(struct agx_manager *e, const char *id, enum agx_exec_on on, int exit_code);
/* Writes output of an exec; `end`: ends the stream. */
void stub_exec_print(struct agx_manager *e, const char *id, struct agx_str bytes, bool end);
/* Logs of later execs are files without inotify events (as with kernels from 6.14 on). */
void stub_quiet_logs(struct agx_manager *e);
/* The bytes that were written to its input; borrowed. */
struct agx_str stub_exec_input(struct agx_manager *e, const char *id);
/* Holds writes to inputs until it is called with false. */
void stub_hold_input(struct agx_manager *e, bool on);
bool stub_input_waits(const struct agx_manager *e);

/* Sets the resource usage of every sandbox and companion. The stub reports it in the first turn
 * after a query, unless it is held. If `code` is not OK, the query fails with it. Without this call
 * the backend has no usage. */
void stub_use(struct agx_manager *e, const struct agx_resource_usage *use, enum agx_code code,
              bool hold);
/* Whether a query waits for its answer. */
bool stub_use_waits(const struct agx_manager *e);

/* The number of requests without an answer. */
size_t stub_waiting(const struct agx_manager *e);

#endif
