/*
 * logfile.h: the daemon's log as a file of limited size, with rotation.
 *
 * After agx_logfile_open() the log (base/log.h) goes to the file. At its maximum size it becomes
 * NAME.1, the old NAME.1 becomes NAME.2, and so on; the oldest is removed. The descriptor number
 * never changes: the new file is put under it with dup, so threads that write meanwhile write to
 * one or the other. Loop thread only.
 */
#ifndef AGX_DAEMON_LOGFILE_H
#define AGX_DAEMON_LOGFILE_H

#include "base/error.h"
#include "base/log.h"

struct agx_loop;
struct agx_logfile;

struct agx_logfile_config {
    const char *path; /* borrowed for the call */
    uint64_t max_bytes;
    unsigned keep;     /* rotated files; 0: a full file is deleted */
    uint64_t check_ms; /* how often its size is checked */
};

/* Opens or creates the file (0600) and sends the log there, with the settings of `log` except its
 * fd. Does not keep the loop running. */
int agx_logfile_open(struct agx_loop *l, const struct agx_logfile_config *c,
                     const struct agx_log_config *log, struct agx_logfile **ret_file,
                     struct agx_error **err) AGX_MUST_CHECK;

/* For a file that was moved away: creates a new one of that name. On failure the old file stays in
 * use. */
int agx_logfile_reopen(struct agx_logfile *f, struct agx_error **err) AGX_MUST_CHECK;

/* The descriptor stays open: the process logs to the file until it ends. Returns NULL and
 * accepts it. */
struct agx_logfile *agx_logfile_close(struct agx_logfile *f);

#endif
