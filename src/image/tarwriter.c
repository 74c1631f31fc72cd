/*
 * tarwriter.c: passes entries to libarchive, and its blocks on.
 *
 * Names are written byte by byte: the library would convert them to UTF-8, warn that it cannot (the
 * program has no locale), and mark them as bytes.
 */
#include "image/tarwriter.h"

#include <errno.h>

#include "base/banned.h"

/* What the library's answer means. A warning is about what a tar cannot say of an entry. */
static int tarwriter_check(struct agx_tarwriter *w, ssize_t answer, const char *what,
                           struct agx_error **err)
{
    const char *text;

    if (w->error) {
        int code = -(int)w->error->code;

        agx_error_propagate(err, &w->error);
        return code;
    }
    if (answer >= ARCHIVE_WARN)
        return 0;
    if (archive_errno(w->tar) == ENOMEM)
        return agx_error_no_memory(err);
    text = archive_error_string(w->tar);
    return agx_error_set(err, AGX_INTERNAL, "write '%s' to a tar: %s", what,
                         text ? text : "it fails");
}

static ssize_t on_block(struct archive *tar, void *user, const void *bytes, size_t len)
{
    struct agx_tarwriter *w = user;

    (void)tar;
    if (!w->failed)
        w->failed = w->fn(w->user, agx_str_bytes(bytes, len), &w->error) < 0;
    return (ssize_t)len;
}

int agx_tarwriter_open(struct agx_tarwriter *w, const struct agx_tarwriter_params *p,
                       struct agx_error **err)
{
    *w = (struct agx_tarwriter){ .fn = p->fn, .user = p->user };
    w->tar = archive_write_new();
    w->links = archive_entry_linkresolver_new();
    if (!w->tar || !w->links)
        return agx_error_no_memory(err);
    archive_entry_linkresolver_set_strategy(w->links, ARCHIVE_FORMAT_TAR_PAX_RESTRICTED);
    if (archive_write_set_format_pax_restricted(w->tar) != ARCHIVE_OK ||
        archive_write_set_options(w->tar, "pax:xattrheader=SCHILY") != ARCHIVE_OK ||
        archive_write_set_bytes_per_block(w->tar, p->block_bytes) != ARCHIVE_OK ||
        archive_write_set_bytes_in_last_block(w->tar, 1) != ARCHIVE_OK)
        return tarwriter_check(w, ARCHIVE_FATAL, "its head", err);
    return tarwriter_check(w, archive_write_open(w->tar, w, NULL, on_block, NULL), "its head", err);
}

int agx_tarwriter_entry(struct agx_tarwriter *w, struct archive_entry **entry, const char *name,
                        struct agx_error **err)
{
    struct archive_entry *spare = NULL;

    archive_entry_set_mtime(*entry, archive_entry_mtime(*entry), 0);
    archive_entry_unset_atime(*entry);
    archive_entry_unset_ctime(*entry);
    archive_entry_unset_birthtime(*entry);
    if (archive_entry_filetype(*entry) == AE_IFREG)
        archive_entry_linkify(w->links, entry, &spare); /* a link to the earlier file */
    return tarwriter_check(w, archive_write_header(w->tar, *entry), name, err);
}

int agx_tarwriter_data(struct agx_tarwriter *w, struct agx_str data, const char *name,
                       struct agx_error **err)
{
    return tarwriter_check(w, archive_write_data(w->tar, data.ptr, data.len), name, err);
}

int agx_tarwriter_close(struct agx_tarwriter *w, struct agx_error **err)
{
    return tarwriter_check(w, archive_write_close(w->tar), "its end", err);
}

void agx_tarwriter_done(struct agx_tarwriter *w)
{
    archive_entry_linkresolver_free(w->links);
    w->failed = true; /* or freeing would write the end of the tar: after a failure there is none */
    if (w->tar)
        (void)archive_write_free(w->tar);
    agx_error_free(w->error);
}
