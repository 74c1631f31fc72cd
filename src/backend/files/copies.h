/*
 * copies.h: a host file or directory as a tar stream that an engine unpacks.
 *
 *     agx_copies_open(pool, &request, user, &c, err)     a pool thread begins to read the source
 *     agx_copies_read(c, buf, size)                      the upload takes its bytes
 *     agx_copies_close(c)                                at the end, or at any moment before
 *
 * What is copied (agbox.md 6.5): everything beneath a directory, with modes, owners, times, hard
 * links and file capabilities, except what an exclude pattern names. The copy fails on a symlink
 * that leads out of the source, unless the source's .gitignore covers it, and on a socket, FIFO or
 * device. The source is opened once; nothing beneath it is reached through a symlink.
 *
 * The source may change meanwhile: a file that disappears is left out, one that grows is cut at its
 * original length, one that shrinks fails the copy. Sparse files are sent with their zeros, because
 * the engine writes them in any case.
 */
#ifndef AGX_BACKEND_FILES_COPIES_H
#define AGX_BACKEND_FILES_COPIES_H

#include "backend/files/sources.h"
#include "loop/job.h"

#include <sys/types.h>

struct agx_copies;

/* What the sandbox has at the copy's target before the copy. */
enum agx_copies_target {
    AGX_COPIES_MISSING,   /* is made, with its parent directories */
    AGX_COPIES_DIRECTORY, /* receives a directory's content, or a file under its own name */
    AGX_COPIES_OTHER,     /* is replaced by a file; a directory is refused */
};

struct agx_copies_request {
    const struct agx_copy *copy; /* of an accepted spec; borrowed for the call */
    enum agx_copies_target there;
    size_t pipe_bytes; /* buffered between the thread and the reader */
    /* Loop thread, never inside open or read: agx_copies_read(), which returned -AGX_UNAVAILABLE,
     * can go on. */
    void (*more)(void *user);
    struct agx_sources_asker asker; /* its sources are referenced as long as needed */
};

/* The directory of the sandbox in which to unpack the stream. Borrowed from the arguments. */
const char *agx_copies_unpack_at(const struct agx_copy *copy, enum agx_copies_target there);

/* Loop thread. The job runs in `pool`. -AGX_RESOURCE_EXHAUSTED when too many jobs wait there. */
int agx_copies_open(struct agx_loop *l, struct agx_pool *pool, const struct agx_copies_request *q,
                    void *user, struct agx_copies **ret_copies,
                    struct agx_error **err) AGX_MUST_CHECK;

/*
 * Reads up to `size` bytes. 0: end of the stream. -AGX_UNAVAILABLE: none yet, `more` follows. Any
 * other negative code: the copy failed, and agx_copies_take_error() says why.
 */
ssize_t agx_copies_read(struct agx_copies *c, void *buf, size_t size);

/* Why the copy failed, once; NULL when it did not fail. The caller owns it. */
struct agx_error *agx_copies_take_error(struct agx_copies *c);

/* `more` is not called any more, and the thread ends soon, even if it waits for the reader. Accepts
 * NULL; returns NULL. */
struct agx_copies *agx_copies_close(struct agx_copies *c);

#endif
