/*
 * copies.h: a file or directory of the host as a tar stream for an engine to unpack.
 *
 *     agx_copies_open(pool, &request, user, &c, err)     a pool thread begins to read the source
 *     agx_copies_read(c, buf, size)                      its bytes, as the upload asks for them
 *     agx_copies_close(c)                                at the end, or at any moment before
 *
 * What goes in (agbox.md 6.5): everything beneath a directory with modes, owners and times, hard
 * links as links, file capabilities; not what an exclude pattern names. A symlink that leads out of
 * the source fails the copy unless the source's .gitignore covers it, and so does a socket, a FIFO
 * or a device. The source is opened once; nothing beneath it is reached through a symlink.
 *
 * Others may change the source meanwhile: what is gone is left out, a file that grows is cut at the
 * length it had, one that shrinks fails the copy. Sparse files travel with their zeros, for the
 * engine writes them in any case.
 */
#ifndef AGX_BACKEND_COPIES_H
#define AGX_BACKEND_COPIES_H

#include "backend/sources.h"
#include "loop/job.h"

#include <sys/types.h>

struct agx_copies;

/* What the sandbox has at the copy's target, before the copy. */
enum agx_copies_target {
    AGX_COPIES_MISSING,   /* will be made, with the directories above it */
    AGX_COPIES_DIRECTORY, /* a directory's content, or a file under its own name, goes into it */
    AGX_COPIES_OTHER,     /* replaced by a file; a directory is refused */
};

struct agx_copies_request {
    const struct agx_copy *copy; /* of an accepted spec; borrowed for the call */
    enum agx_copies_target there;
    size_t pipe_bytes; /* what may wait between the thread and the reader */
    /* Loop thread, never inside open or read: agx_copies_read(), which had said -AGX_UNAVAILABLE,
     * has something to say. */
    void (*more)(void *user);
    struct agx_sources_asker asker; /* its sources are kept as long as they are needed */
};

/* The directory of the sandbox where the stream is to be unpacked. Borrowed from the arguments. */
const char *agx_copies_unpack_at(const struct agx_copy *copy, enum agx_copies_target there);

/* Loop thread. The job runs in `pool`. -AGX_RESOURCE_EXHAUSTED when too many wait there. */
int agx_copies_open(struct agx_loop *l, struct agx_pool *pool, const struct agx_copies_request *q,
                    void *user, struct agx_copies **ret_copies,
                    struct agx_error **err) AGX_MUST_CHECK;

/*
 * Up to `size` bytes; 0 at the end of the stream; -AGX_UNAVAILABLE when there is none yet: `more`
 * follows. Another negative code is the end of a copy that failed: agx_copies_take_error() tells
 * why.
 */
ssize_t agx_copies_read(struct agx_copies *c, void *buf, size_t size);

/* Why the copy failed, once; NULL when it did not. The caller owns it. */
struct agx_error *agx_copies_take_error(struct agx_copies *c);

/* `more` comes no more and the thread ends soon, also one that waits for the reader. Accepts NULL;
 * returns NULL. */
struct agx_copies *agx_copies_close(struct agx_copies *c);

#endif
