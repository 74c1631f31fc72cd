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
    int parent_fd;         /* of the last entry's parent: the next one's is often the same */
    char parent[PATH_MAX]; /* its path; counts while parent_fd is not negative */
};

/* What a directory gets when nothing more is put into it: until then it is writable, and its time
 * would change. */
struct late_dir {
    struct timespec mtime;
    mode_t mode;
    size_t path_len; /* with its NUL */
};

/* An entry's name, cut. Both are empty for the root itself. */
struct unpack_name {
    char parent[PATH_MAX]; /* "" : the root */
    char last[NAME_MAX + 1];
};

/* "./a//b/" is "a" and "b". Refuses what leads out, is too long or too deep. */
int unpack_name_cut(const struct unpacking *u, const char *text, struct unpack_name *ret,
                    struct agx_error **err) AGX_MUST_CHECK;

/* A descriptor of the entry's parent, which is made when it is missing; borrowed until the next
 * call or unpack_forget_parent(). */
int unpack_parent(struct unpacking *u, const char *parent, struct agx_error **err) AGX_MUST_CHECK;

/* A directory was removed: the held one may be in it. */
void unpack_forget_parent(struct unpacking *u);

/* Opens a directory by its whole path, "" being the root, without making it. */
int unpack_open_dir(struct unpacking *u, const char *path, struct agx_error **err) AGX_MUST_CHECK;

/* Writes one entry and all that belongs to it. */
int unpack_entry(struct unpacking *u, struct archive_entry *e, const struct unpack_name *name,
                 struct agx_error **err) AGX_MUST_CHECK;

/* `name` is a ".wh." name. */
int unpack_whiteout(struct unpacking *u, const struct unpack_name *name,
                    struct agx_error **err) AGX_MUST_CHECK;

/* A whiteout as overlayfs has it. */
bool unpack_is_whiteout(const struct stat *st);

/* Marks a directory: what the layers below have in it is not seen. */
int unpack_set_opaque(int dir, struct agx_error **err) AGX_MUST_CHECK;

/* Takes away whatever is there: of a layer a tree too, of a root that is unpacked into no
 * directory.
 */
int unpack_clear(struct unpacking *u, int parent, const char *name,
                 struct agx_error **err) AGX_MUST_CHECK;

/* The attributes that are kept. */
int unpack_xattrs(struct unpacking *u, int fd, struct archive_entry *e,
                  struct agx_error **err) AGX_MUST_CHECK;

#endif
