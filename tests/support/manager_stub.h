/*
 * manager_stub.h: for tests of the services: a manager in memory, whose every move the test makes.
 *
 * It implements daemon/manager/manager.h on the true rules (core/), without a store or a backend:
 * requests are answered in a later turn, or when the test lets them; what a backend would report
 * the test says by stub_move() and stub_exec_move().
 */
#ifndef AGX_TESTS_MANAGER_STUB_H
#define AGX_TESTS_MANAGER_STUB_H

#include "daemon/manager/manager.h"

struct agx_manager *stub_manager_open(struct agx_loop *l);
/* Nobody waits for an answer any more, and no feed is open. */
void stub_manager_close(struct agx_manager *e);

/* No answer leaves until this is taken back. */
void stub_hold(struct agx_manager *e, bool on);
/* The next request fails so. */
void stub_fail(struct agx_manager *e, enum agx_code code, const char *message);

/* A sandbox that was accepted, with this label ("key=value", or NULL). */
void stub_add(struct agx_manager *e, const char *id, const char *label);
/* The same, and READY. */
void stub_add_ready(struct agx_manager *e, const char *id, const char *label);
/* Something happens to it; `op` of what an operation reports. */
void stub_move(struct agx_manager *e, const char *id, enum agx_on on, enum agx_do op);
/* It is forgotten; its readers come to their end. */
void stub_purge(struct agx_manager *e, const char *id);

/* An image of it is being pulled. */
void stub_pull(struct agx_manager *e, const char *sandbox_id, const struct agx_pull *pull);

void stub_exec_add(struct agx_manager *e, const char *sandbox_id, const char *id);
void stub_exec_move(struct agx_manager *e, const char *id, enum agx_exec_on on, int exit_code);
/* The exec writes; `end`: the stream's end. */
void stub_exec_print(struct agx_manager *e, const char *id, struct agx_str bytes, bool end);
/* Logs of execs to come are files of which inotify tells nothing (kernels from 6.14 on). */
void stub_quiet_logs(struct agx_manager *e);
/* What was written to its input; borrowed. */
struct agx_str stub_exec_input(struct agx_manager *e, const char *id);
/* Writes to inputs are taken only when this is called. */
void stub_hold_input(struct agx_manager *e, bool on);
bool stub_input_waits(const struct agx_manager *e);

/* What every sandbox and companion uses: told with the first turn after a question, unless it is
 * held; `code` not OK: instead of that it fails so. Without this call the backend has nothing of
 * it. */
void stub_use(struct agx_manager *e, const struct agx_resource_usage *use, enum agx_code code,
              bool hold);
/* Somebody has asked, and is not answered yet. */
bool stub_use_waits(const struct agx_manager *e);

/* Requests that are not answered yet. */
size_t stub_waiting(const struct agx_manager *e);

#endif
