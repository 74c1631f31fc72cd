/*
 * logfile.h: the daemon's log as a file that does not grow for ever.
 *
 * From agx_logfile_open() on the log (base/log.h) goes there. At its maximum it becomes NAME.1,
 * that NAME.2, and so on; the oldest goes. The descriptor stays the same all the time: another file
 * is put under it, so threads that write meanwhile write into one or the other. Loop thread only.
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
    unsigned keep;     /* rotated files; 0: what is full is thrown away */
    uint64_t check_ms; /* how often its size is looked at */
};

/* Opens or makes the file (0600) and sends the log there, by `log` but for its fd. Does not keep
 * the loop running. */
int agx_logfile_open(struct agx_loop *l, const struct agx_logfile_config *c,
                     const struct agx_log_config *log, struct agx_logfile **ret_file,
                     struct agx_error **err) AGX_MUST_CHECK;

/* Somebody moved the file away: a new one of that name from now on. On failure the old one goes
 * on. */
int agx_logfile_reopen(struct agx_logfile *f, struct agx_error **err) AGX_MUST_CHECK;

/* The log goes on to the file until the process ends: its descriptor stays open. Returns NULL and
 * accepts it. */
struct agx_logfile *agx_logfile_close(struct agx_logfile *f);

#endif
