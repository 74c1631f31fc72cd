/*
 * user.h: the user that a command runs as: a name or number, looked up as Docker does in the passwd
 * and group files of the current root. No NSS: we do not load libraries of an image.
 *
 *     "agbox", "1000", "agbox:docker", "1000:1000"
 *
 * Code in the sandbox controls these files, so any content must give an answer or an error.
 */
#ifndef AGX_BASE_USER_H
#define AGX_BASE_USER_H

#include "base/str.h"

#include <sys/types.h>

/* More than any system gives one user; the kernel takes 65536. */
#define AGX_USER_GROUPS_MAX 1024

struct agx_user {
    uid_t uid;
    gid_t gid;
    gid_t groups[AGX_USER_GROUPS_MAX]; /* `gid` among them */
    size_t n_groups;
    struct agx_str home; /* "/" if no file has it */
};

/* Looks the user up in the content of the two files. NULL, or why there is no such user; `ret`
 * borrows from `passwd`. */
const char *agx_user_find(struct agx_str spec, struct agx_str passwd, struct agx_str group,
                          struct agx_user *ret);

/* Adds the groups "44,105" to the user. False: not numbers, or too many. */
bool agx_user_join(struct agx_user *u, struct agx_str groups);

/* Does a line of the file, passwd or group, have this id? */
bool agx_user_listed(struct agx_str file, uint32_t id);

/*
 * Reads a file of the current root into memory that is never freed: for a process that is about to
 * exec another program. Empty if there is none, if it is not a regular file, or if it is too large.
 */
struct agx_str agx_user_read_file(const char *path);
/* The same for an open file; munmap() frees the memory. */
struct agx_str agx_user_read_fd(int fd);

#endif
