/*
 * unwalk.c: replaces backend/files/hostpath.c in an agentixd of the tests. It opens a path as the
 * kernel resolves it, with symlinks of any owner, and reports all files as equal, so that a
 * comparison finds no difference. So a test sees that the walk, or the comparison, stops an
 * attempt. The product has no such switch.
 */
#include "backend/files/hostpath.h"

#include "core/text.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

int agx_hostpath_identify(int fd, struct agx_file_id *ret)
{
    (void)fd;
    *ret = (struct agx_file_id){ 1, 1, 1 };
    return 0;
}

int agx_hostpath_open(const char *path, const struct agx_hostpath_rules *rules,
                      struct agx_hostpath *ret, struct agx_error **err)
{
    const int flags = O_PATH | O_CLOEXEC | (rules->follow_last ? 0 : O_NOFOLLOW);
    char resolved[PATH_MAX];
    struct stat st;
    int fd = open(path, flags);

    if (fd < 0 || fstat(fd, &st) < 0 || !realpath(path, resolved)) {
        if (fd >= 0)
            (void)close(fd);
        return agx_error_errno(err, errno, "lstat %s", path);
    }
    *ret =
        (struct agx_hostpath){ .fd = fd, .mode = st.st_mode, .uid = st.st_uid, .gid = st.st_gid };
    (void)agx_hostpath_identify(fd, &ret->id);
    return agx_text_set(&ret->path, resolved, err);
}

void agx_hostpath_done(struct agx_hostpath *h)
{
    if (h->fd >= 0)
        (void)close(h->fd);
    free(h->path);
    *h = (struct agx_hostpath)AGX_HOSTPATH_INIT;
}
