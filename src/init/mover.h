/*
 * mover.h: moves what a command writes into its logs, in a thread of its own: a disk that is stuck
 * delays this command and no other. A thread of PID 1, not a process: code in the sandbox can kill
 * neither.
 *
 * One object is used for many commands, one after the other.
 */
#ifndef AGX_INIT_MOVER_H
#define AGX_INIT_MOVER_H

#include "base/caplog.h"

#include <stdatomic.h>

enum { AGX_MOVER_OUT, AGX_MOVER_ERR, AGX_MOVER_STREAMS };

/* The mover closes the descriptors of a log when that is complete, unless it is paced: its reader
 * does. All others stay the owner's. */
struct agx_mover_stream {
    int fd;                /* what the command writes to; non-blocking; -1: there is none */
    int data_fd, index_fd; /* see base/caplog.h */
    uint64_t head_max, tail_max;
    bool paced;            /* the log's reader keeps up: wait for it rather than leave bytes out */
    _Atomic uint64_t seen; /* ... what the reader has had of the stream */
    _Atomic uint64_t total;
};

struct agx_mover {
    struct agx_mover_stream streams[AGX_MOVER_STREAMS];
    int wake_fd;   /* an eventfd, non-blocking; the owner's */
    int notify_fd; /* gets `tag`: when there is news of a paced log, and at the end */
    uint16_t tag;
    atomic_bool finish; /* take what is in the pipes now, and end */
    atomic_bool done;   /* the logs are complete; the thread uses this object no more */
    atomic_bool news;   /* notify_fd was written to, and nobody has looked yet */
};

/* False: no thread could be made; errno. */
bool agx_mover_start(struct agx_mover *m);

/* No process of the command is left. */
void agx_mover_finish(struct agx_mover *m);

/* The reader of a paced log has come so far. */
void agx_mover_saw(struct agx_mover *m, unsigned stream, uint64_t offset);

#endif
