/*
 * tarwriter.h: writes a tar with libarchive, to a callback.
 *
 *     agx_tarwriter_open(&w, &params, err);
 *     agx_tarwriter_entry(&w, &entry, ...);    handles hard links and times
 *     agx_tarwriter_data(&w, ...);             its content, unless it became a link
 *     agx_tarwriter_close(&w, err);            the end of the tar
 *     agx_tarwriter_done(&w);
 *
 * The format is restricted pax: plain ustar where possible, with extended headers for long names,
 * names that are not ASCII, sizes from 8 GiB on and attributes. Times have whole seconds, because
 * otherwise every entry would need an extended header. Link with dep_tarwriter.
 */
#ifndef AGX_IMAGE_TARWRITER_H
#define AGX_IMAGE_TARWRITER_H

#include "base/error.h"
#include "base/str.h"

#include <archive.h>
#include <archive_entry.h>

/* Takes all the bytes, and may block. */
typedef int (*agx_tar_fn)(void *user, struct agx_str bytes, struct agx_error **err);

struct agx_tarwriter_params {
    agx_tar_fn fn;
    void *user;
    int block_bytes; /* `fn` gets blocks of that size, except the last */
};

struct agx_tarwriter {
    struct archive *tar;
    struct archive_entry_linkresolver *links;
    agx_tar_fn fn;
    void *user;
    /* The error of `fn`; only `failed` after it was returned. It is hidden from the library, which
     * otherwise would not free its block; what the library writes afterwards is dropped. */
    struct agx_error *error;
    bool failed;
};

/* agx_tarwriter_done() must follow, also after a failure. */
int agx_tarwriter_open(struct agx_tarwriter *w, const struct agx_tarwriter_params *p,
                       struct agx_error **err) AGX_MUST_CHECK;
/* Writes the header. A regular file that was written before under another name becomes a hard link:
 * *entry then has no content (archive_entry_hardlink). `name` is for messages, here and below. */
int agx_tarwriter_entry(struct agx_tarwriter *w, struct archive_entry **entry, const char *name,
                        struct agx_error **err) AGX_MUST_CHECK;
int agx_tarwriter_data(struct agx_tarwriter *w, struct agx_str data, const char *name,
                       struct agx_error **err) AGX_MUST_CHECK;
int agx_tarwriter_close(struct agx_tarwriter *w, struct agx_error **err) AGX_MUST_CHECK;
/* Without close, the end of the tar is not written. */
void agx_tarwriter_done(struct agx_tarwriter *w);

static inline void agx_tar_entry_freep(struct archive_entry **e)
{
    archive_entry_free(*e);
}

#endif
