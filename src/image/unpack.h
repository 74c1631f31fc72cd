/*
 * unpack.h: unpacks a tar, which may be compressed, beneath a directory. Blocking: for a pool
 * thread or a separate program.
 *
 * The tar is untrusted and may be malicious. Nothing is written outside the directory: every parent
 * is opened beneath it without following a symlink (but see `into`), and an existing file at an
 * entry's own name is replaced, never followed. Refused (-AGX_INVALID_ARGUMENT): absolute names,
 * "..", parents that are symlinks or files, names that are too long or too deep, hard links to
 * missing files. Over a limit: -AGX_RESOURCE_EXHAUSTED. The caller removes what was written before
 * a failure.
 *
 * Kept: modes with setuid and setgid, owners, times, symlinks, hard links, FIFOs, holes, and the
 * extended attributes security.capability and user.*, except overlayfs's own. Left out: device
 * nodes and sockets, because a sandbox gets its devices from us; all other attributes.
 */
#ifndef AGX_IMAGE_UNPACK_H
#define AGX_IMAGE_UNPACK_H

#include "base/error.h"
#include "base/idmap.h"
#include "base/limits.h"
#include "image/digest.h"

#include <stdatomic.h>
#include <sys/types.h>

struct agx_unpack_limits {
    uint64_t bytes;      /* limit of all files, including holes, and of the tar itself */
    uint64_t entries;    /* in the tar */
    uint64_t ratio;      /* of uncompressed to compressed size, beyond ratio_from */
    uint64_t ratio_from; /* bytes up to which any ratio is allowed */
    unsigned depth;      /* path components of a name */
};

#define AGX_UNPACK_LIMITS_INIT                                                                     \
    {                                                                                              \
        .bytes = AGX_UNPACK_BYTES_MAX, .entries = AGX_UNPACK_ENTRIES_MAX,                          \
        .ratio = AGX_UNPACK_RATIO_MAX, .ratio_from = AGX_UNPACK_RATIO_FROM,                        \
        .depth = AGX_UNPACK_DEPTH_MAX                                                              \
    }

struct agx_unpack_params {
    /* Supplies up to `size` bytes; 0 at the end, negative on failure. */
    ssize_t (*read)(void *user, void *buf, size_t size, struct agx_error **err);
    void *user;
    struct agx_unpack_limits limits;
    /* For a layer: ".wh." names become overlayfs whiteouts: a character device 0:0, and for a
     * directory the attribute "overlay.opaque". */
    bool whiteouts;
    bool owners;            /* sets owners, which only root (of the user namespace) may */
    struct agx_idmap idmap; /* maps the owners to ids on disk */
    /* For a root that has files already: entries go beneath this directory of it, and symlinks on
     * the way are followed as a process with that root would. NULL: an empty directory of ours,
     * where no parent is a symlink. */
    const char *into;
    const atomic_bool *stop; /* true: ends with -AGX_CANCELLED. May be NULL */
};

struct agx_unpack_result {
    char diff_id[AGX_DIGEST_SIZE]; /* "sha256:..." of the uncompressed tar */
    uint64_t bytes;                /* of the files */
    uint64_t entries;
    uint64_t left_out; /* device nodes and sockets */
};

/* `root` is the open directory. Writes `ret` on success. */
int agx_unpack(int root, const struct agx_unpack_params *p, struct agx_unpack_result *ret,
               struct agx_error **err) AGX_MUST_CHECK;

#endif
