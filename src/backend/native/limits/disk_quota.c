/*
 * disk_quota.c: a directory as a project of its file system.
 *
 * Each file has a project number, inherited from its directory when the file is made. A sandbox
 * cannot change it: the kernel allows that only in the first user namespace.
 */
#include "backend/native/limits/disk_internal.h"
#include "base/limits.h"

#include <linux/dqblk_xfs.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/quota.h>
#include <sys/syscall.h>

#include "base/banned.h"

/* sys/quota.h only knows users and groups. */
enum { PROJECTS = 2 };

static int quotactl_of(int dirfd, int command, uint32_t id, void *data)
{
    return (int)syscall(SYS_quotactl_fd, dirfd, QCMD(command, PROJECTS), id, data);
}

bool agx_disk_quota_works(int dirfd)
{
    struct fs_quota_stat state = { .qs_version = FS_QSTAT_VERSION };

    return quotactl_of(dirfd, Q_XGETQSTAT, 0, &state) == 0 &&
           (state.qs_flags & FS_QUOTA_PDQ_ENFD) != 0;
}

static int join_project(int dirfd, uint32_t project, struct agx_error **err)
{
    struct fsxattr attr;

    if (ioctl(dirfd, FS_IOC_FSGETXATTR, &attr) < 0)
        return agx_error_errno(err, errno, "read the directory's project");
    if (attr.fsx_projid == project && (attr.fsx_xflags & FS_XFLAG_PROJINHERIT))
        return 0;
    attr.fsx_projid = project;
    attr.fsx_xflags |= FS_XFLAG_PROJINHERIT;
    if (ioctl(dirfd, FS_IOC_FSSETXATTR, &attr) < 0)
        return agx_error_errno(err, errno, "give the directory to project %u", project);
    return 0;
}

/* 0: no limit. */
int agx_disk_quota_set(int dirfd, uint32_t project, int64_t bytes, struct agx_error **err)
{
    struct dqblk limits = {
        .dqb_bhardlimit = (uint64_t)bytes / AGX_DISK_QUOTA_UNIT,
        .dqb_ihardlimit = (uint64_t)bytes / AGX_DISK_BYTES_PER_FILE,
        .dqb_valid = QIF_LIMITS,
    };
    int r = bytes > 0 ? join_project(dirfd, project, err) : 0;

    if (r < 0)
        return r;
    if (quotactl_of(dirfd, Q_SETQUOTA, project, &limits) < 0)
        return agx_error_errno(err, errno, "set the quota of project %u", project);
    return 0;
}

int agx_disk_quota_used(int dirfd, uint32_t project, uint64_t *ret_bytes, struct agx_error **err)
{
    struct dqblk use;

    if (quotactl_of(dirfd, Q_GETQUOTA, project, &use) < 0)
        return agx_error_errno(err, errno, "read the quota of project %u", project);
    *ret_bytes = use.dqb_curspace;
    return 0;
}
