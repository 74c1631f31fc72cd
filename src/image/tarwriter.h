/*
 * tarwriter.h: the bytes of a tar, written by libarchive, for somebody who takes them.
 *
 *     agx_tarwriter_open(&w, &params, err);
 *     agx_tarwriter_entry(&w, &entry, ...);    hard links and times are seen to
 *     agx_tarwriter_data(&w, ...);             its content, where that was no link
 *     agx_tarwriter_close(&w, err);            the end of the tar
 *     agx_tarwriter_done(&w);
 *
 * The format is pax, restricted: plain ustar where that can say it, with extended headers for long
 * names, names that are not ASCII, sizes from 8 GiB on and attributes. Times have whole seconds, or
 * every entry would need an extended header. Link with dep_tarwriter.
 */
#ifndef AGX_IMAGE_TARWRITER_H
#define AGX_IMAGE_TARWRITER_H

#include "base/error.h"
#include "base/str.h"

#include <archive.h>
#include <archive_entry.h>

/* Takes all the bytes, and may wait for that. */
typedef int (*agx_tar_fn)(void *user, struct agx_str bytes, struct agx_error **err);

struct agx_tarwriter_params {
    agx_tar_fn fn;
    void *user;
    int block_bytes; /* `fn` gets blocks of that size, but for the last */
};

struct agx_tarwriter {
    struct archive *tar;
    struct archive_entry_linkresolver *links;
    agx_tar_fn fn;
    void *user;
    /* Of `fn`, or `failed` alone once it was handed on. The library never hears of it, for then it
     * would not free its block; what it writes afterwards goes nowhere. */
    struct agx_error *error;
    bool failed;
};

/* On failure too agx_tarwriter_done() follows. */
int agx_tarwriter_open(struct agx_tarwriter *w, const struct agx_tarwriter_params *p,
                       struct agx_error **err) AGX_MUST_CHECK;
/* The header. A regular file that went before by another name becomes a link to it: *entry is then
 * one without content (archive_entry_hardlink). `name` is for messages, here and below. */
int agx_tarwriter_entry(struct agx_tarwriter *w, struct archive_entry **entry, const char *name,
                        struct agx_error **err) AGX_MUST_CHECK;
int agx_tarwriter_data(struct agx_tarwriter *w, struct agx_str data, const char *name,
                       struct agx_error **err) AGX_MUST_CHECK;
int agx_tarwriter_close(struct agx_tarwriter *w, struct agx_error **err) AGX_MUST_CHECK;
/* Without close there is no end of the tar. */
void agx_tarwriter_done(struct agx_tarwriter *w);

static inline void agx_tar_entry_freep(struct archive_entry **e)
{
    archive_entry_free(*e);
}

#endif
