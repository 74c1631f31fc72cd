/*
 * user.h: who a command runs as: a name or number, looked up in the passwd and group files of the
 * running root as Docker does. No NSS: an image's libraries are not ours to load.
 *
 *     "agbox", "1000", "agbox:docker", "1000:1000"
 *
 * The files belong to code in the sandbox: whatever stands in them gives an answer or an error.
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
    struct agx_str home; /* "/" where no file says */
};

/* By the content of the two files. NULL, or why there is no such user; `ret` borrows from
 * `passwd`. */
const char *agx_user_find(struct agx_str spec, struct agx_str passwd, struct agx_str group,
                          struct agx_user *ret);

/* Puts him into the groups "44,105" too. False: they are no numbers, or too many. */
bool agx_user_join(struct agx_user *u, struct agx_str groups);

/* Does a line of that file, passwd or group, have this number? */
bool agx_user_listed(struct agx_str file, uint32_t id);

/*
 * The content of a file of the running root, in memory that is never given back: for a process that
 * is about to become another program. Empty when there is none, when it is no regular file, or when
 * it is larger than makes sense.
 */
struct agx_str agx_user_read_file(const char *path);
/* The same of an open file; who wants the memory back unmaps it. */
struct agx_str agx_user_read_fd(int fd);

#endif
