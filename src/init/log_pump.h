/*
 * log_pump.h: the log pump: copies a command's output to its logs, in its own thread, so that a
 * disk that hangs delays only this command. It is a thread of PID 1, not a process: code in the
 * sandbox can kill neither.
 *
 * One object is used for many commands, one after the other.
 */
#ifndef AGX_INIT_LOG_PUMP_H
#define AGX_INIT_LOG_PUMP_H

#include "base/caplog.h"

#include <stdatomic.h>

enum { AGX_LOG_PUMP_OUT, AGX_LOG_PUMP_ERR, AGX_LOG_PUMP_STREAMS };

/* The pump closes the descriptors of a complete log, unless it is paced: its reader closes that.
 * All other descriptors stay the owner's. */
struct agx_log_pump_stream {
    int fd;                /* pipe with the command's output, non-blocking; -1: none */
    int data_fd, index_fd; /* see base/caplog.h */
    uint64_t head_max, tail_max;
    bool paced;            /* waits for the log's reader instead of dropping bytes */
    _Atomic uint64_t seen; /* ... how much of the stream the reader has read */
    _Atomic uint64_t total;
};

struct agx_log_pump {
    struct agx_log_pump_stream streams[AGX_LOG_PUMP_STREAMS];
    int wake_fd;   /* an eventfd, non-blocking; the owner's */
    int notify_fd; /* gets `tag`: on news of a paced log, and at the end */
    uint16_t tag;
    atomic_bool finish; /* copy what is in the pipes now, and end */
    atomic_bool done;   /* the logs are complete; the thread does not use this object any more */
    atomic_bool news;   /* notify_fd was written to, and the owner has not looked yet */
};

/* False: the thread could not be started; errno. */
bool agx_log_pump_start(struct agx_log_pump *m);

/* No process of the command is left. */
void agx_log_pump_finish(struct agx_log_pump *m);

/* The reader of a paced log has read up to here. */
void agx_log_pump_saw(struct agx_log_pump *m, unsigned stream, uint64_t offset);

#endif
