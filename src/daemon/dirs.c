#include "daemon/dirs.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/banned.h"

/* Symlinks in the path are followed: it comes from the environment of our own user. */
int agx_dirs_any(const char *path, struct agx_error **err)
{
    char part[PATH_MAX];
    int n = snprintf(part, sizeof(part), "%s", path);

    if (n >= PATH_MAX)
        return agx_error_errno(err, ENAMETOOLONG, "make '%s'", path);
    for (char *at = part + 1; *at; at++) {
        if (*at != '/')
            continue;
        *at = '\0';
        if (mkdir(part, 0700) < 0 && errno != EEXIST)
            return agx_error_errno(err, errno, "make the directory '%s'", part);
        *at = '/';
    }
    if (mkdir(part, 0700) < 0 && errno != EEXIST)
        return agx_error_errno(err, errno, "make the directory '%s'", part);
    return 0;
}

int agx_dirs_own(const char *path, mode_t mode, struct agx_error **err)
{
    _cleanup_close_ int fd = -1;
    struct stat st;
    int r = agx_dirs_any(path, err);

    if (r < 0)
        return r;
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || fstat(fd, &st) < 0)
        return agx_error_errno(err, errno, "open the directory '%s'", path);
    if (st.st_uid != geteuid())
        return agx_error_set(err, AGX_FAILED_PRECONDITION,
                             "'%s' belongs to user %lu, but it must belong to %lu; move it away",
                             path, (unsigned long)st.st_uid, (unsigned long)geteuid());
    if ((st.st_mode & 07777) != mode && fchmod(fd, mode) < 0)
        return agx_error_errno(err, errno, "set the mode of '%s'", path);
    return 0;
}
