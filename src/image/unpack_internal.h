/* unpack_internal.h: what the files of unpack share. */
#ifndef AGX_IMAGE_UNPACK_INTERNAL_H
#define AGX_IMAGE_UNPACK_INTERNAL_H

#include "base/buf.h"
#include "image/tarstream.h"

#include <limits.h>
#include <sys/stat.h>

struct unpacking {
    int root;
    const struct agx_unpack_params *p;
    struct agx_tarstream *tar;
    struct agx_unpack_result result;
    struct agx_buf dirs;   /* struct late_dir and its path, for each directory entry */
    int parent_fd;         /* parent of the last entry: often that of the next too */
    char parent[PATH_MAX]; /* its path; valid while parent_fd is not negative */
};

/* What a directory gets after all its content: until then it must be writable, and its time would
 * change. */
struct late_dir {
    struct timespec mtime;
    mode_t mode;
    size_t path_len; /* including its NUL */
};

/* An entry's name, split. Both are empty for the root itself. */
struct unpack_name {
    char parent[PATH_MAX]; /* "" : the root */
    char last[NAME_MAX + 1];
};

/* "./a//b/" becomes "a" and "b". Refuses names that lead out, or are too long or too deep. */
int unpack_name_cut(const struct unpacking *u, const char *text, struct unpack_name *ret,
                    struct agx_error **err) AGX_MUST_CHECK;

/* A descriptor of the entry's parent, which is made if missing; borrowed until the next call or
 * unpack_forget_parent(). */
int unpack_parent(struct unpacking *u, const char *parent, struct agx_error **err) AGX_MUST_CHECK;

/* A directory was removed: the cached parent may be in it. */
void unpack_forget_parent(struct unpacking *u);

/* Opens a directory by its full path, "" being the root, without making it. */
int unpack_open_dir(struct unpacking *u, const char *path, struct agx_error **err) AGX_MUST_CHECK;

/* Writes one entry completely. */
int unpack_entry(struct unpacking *u, struct archive_entry *e, const struct unpack_name *name,
                 struct agx_error **err) AGX_MUST_CHECK;

/* `name` is a ".wh." name. */
int unpack_whiteout(struct unpacking *u, const struct unpack_name *name,
                    struct agx_error **err) AGX_MUST_CHECK;

/* Is it an overlayfs whiteout? */
bool unpack_is_whiteout(const struct stat *st);

/* Makes a directory opaque: the content of the layers below is hidden. */
int unpack_set_opaque(int dir, struct agx_error **err) AGX_MUST_CHECK;

/* Removes what exists there: in a layer even a tree, in an existing root no directory. */
int unpack_clear(struct unpacking *u, int parent, const char *name,
                 struct agx_error **err) AGX_MUST_CHECK;

/* Sets the attributes that are kept. */
int unpack_xattrs(struct unpacking *u, int fd, struct archive_entry *e,
                  struct agx_error **err) AGX_MUST_CHECK;

#endif
