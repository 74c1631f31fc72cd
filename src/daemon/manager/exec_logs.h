/*
 * exec_logs.h: the files to which commands write, two per stream (base/caplog.h), in one directory
 * per sandbox that only the daemon can reach.
 *
 * Nothing here follows a symlink. An exec has few files, so they are made at once; the files of a
 * whole sandbox are removed by a thread.
 */
#ifndef AGX_DAEMON_MANAGER_EXEC_LOGS_H
#define AGX_DAEMON_MANAGER_EXEC_LOGS_H

#include "daemon/manager/manager.h"
#include "loop/job.h"

#include <limits.h>

/* Data and index of each stream. */
struct agx_log_fds {
    int out[2], err[2];
};
#define AGX_LOG_FDS_INIT                                                                           \
    {                                                                                              \
        { -1, -1 },                                                                                \
        {                                                                                          \
            -1, -1                                                                                 \
        }                                                                                          \
    }

void agx_log_fds_close(struct agx_log_fds *fds);

struct agx_logs {
    struct agx_loop *loop;
    int root_fd;
    const char *root; /* borrowed */
    struct agx_pool *pool;
};

int agx_logs_open(struct agx_logs *logs, struct agx_loop *l, const char *root,
                  struct agx_error **err) AGX_MUST_CHECK;
/* Waits briefly for removals; the next start does the rest. */
void agx_logs_close(struct agx_logs *logs, agx_done_fn closed, void *user);

/*
 * Makes the files of a new exec. Replaces files left by a create that was never stored. Any other
 * file in the way is -AGX_FAILED_PRECONDITION.
 */
int agx_logs_create(struct agx_logs *logs, const char *sandbox_id, const char *exec_id,
                    struct agx_log_fds *ret, struct agx_error **err) AGX_MUST_CHECK;
/* Opens the files of an exec that an earlier daemon accepted, or makes them again. */
int agx_logs_reopen(struct agx_logs *logs, const char *sandbox_id, const char *exec_id,
                    struct agx_log_fds *ret, struct agx_error **err) AGX_MUST_CHECK;
/* Opens data and index for reading. -AGX_NOT_FOUND. */
int agx_logs_open_read(struct agx_logs *logs, const char *sandbox_id, const char *exec_id,
                       enum agx_stream stream, int ret_fds[2],
                       struct agx_error **err) AGX_MUST_CHECK;
/* Removes the files of an exec that could not be stored. */
void agx_logs_remove(struct agx_logs *logs, const char *sandbox_id, const char *exec_id);

/* Removes the logs of a sandbox later, and their directory if it is empty then. */
void agx_logs_purge(struct agx_logs *logs, const char *sandbox_id);
/* The same for logs that an earlier daemon left: `is_gone` tells whether a name is the id of a
 * sandbox whose logs should be removed. */
void agx_logs_sweep(struct agx_logs *logs, bool (*is_gone)(void *user, const char *sandbox_id),
                    void *user);

#define AGX_LOG_PATH_SIZE PATH_MAX
/* The path of a stream's data file. Returns `out`. */
char *agx_logs_path(const struct agx_logs *logs, const char *sandbox_id, const char *exec_id,
                    enum agx_stream stream, char out[AGX_LOG_PATH_SIZE]);

#endif
