/*
 * plan_layer.c: host directories below a writable layer of the sandbox.
 *
 * Each becomes an overlay: reads come from the host, writes go to the sandbox's writable directory,
 * where the next start finds them by the path inside. Runs in PID 1, as root of the sandbox, before
 * it leaves the host: the overlay's options name paths on the stage. The results are detached, and
 * agx_plan_mount() mounts them like the others.
 */
#include "init/plan.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/banned.h"

#define LAYERS "rw/over"

enum { DIR_MODE = 0755, OPTIONS_MAX = 512, NAME_SIZE = 32, LAYER_SIZE = 32, PATH_SIZE = 96 };

/* A path as a name: FNV-1a, whose 64 bits distinguish a few paths. */
static uint64_t hash(struct agx_str path)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < path.len; i++)
        h = (h ^ (uint8_t)path.ptr[i]) * UINT64_C(0x100000001b3);
    return h;
}

/* The layer's top directory hides that of the host's directory, so it gets the same owner, as far
 * as that is mapped inside, and the same mode. */
static bool make_upper(const char *upper, const char *lower)
{
    struct stat st;

    if (mkdir(upper, DIR_MODE) < 0)
        return errno == EEXIST;
    if (stat(lower, &st) < 0)
        return false;
    (void)!chown(upper, st.st_uid, st.st_gid);
    return chmod(upper, st.st_mode & 07777) == 0;
}

static bool make_dir(const char *path)
{
    return mkdir(path, DIR_MODE) == 0 || errno == EEXIST;
}

/* After a crash of the host: see take_sources() in plan.c. */
static void forget_volatile(const char *layer)
{
    char path[PATH_SIZE];

    (void)snprintf(path, sizeof(path), "%s/work/work/incompat/volatile/dirty", layer);
    (void)unlink(path);
    (void)snprintf(path, sizeof(path), "%s/work/work/incompat/volatile", layer);
    (void)rmdir(path);
}

static bool make_layer(const char *layer, const char *lower)
{
    char upper[PATH_SIZE], work[PATH_SIZE];

    (void)snprintf(upper, sizeof(upper), "%s/upper", layer);
    (void)snprintf(work, sizeof(work), "%s/work", layer);
    forget_volatile(layer);
    return make_dir(LAYERS) && make_dir(layer) && make_upper(upper, lower) && make_dir(work);
}

/* The mount that replaces `fd`. */
static int layer_one(const struct agx_planned *p, size_t i, int fd, struct agx_str target)
{
    char lower[NAME_SIZE], merged[NAME_SIZE], layer[LAYER_SIZE], options[OPTIONS_MAX];
    struct stat st;

    errno = ENOTDIR;
    if (fstat(fd, &st) < 0 || !S_ISDIR(st.st_mode))
        agx_plan_fail(p, AGX_STAGE_OVERLAY, target.ptr);
    (void)snprintf(lower, sizeof(lower), "lower-%zu", i);
    (void)snprintf(merged, sizeof(merged), "merged-%zu", i);
    (void)snprintf(layer, sizeof(layer), LAYERS "/%016" PRIx64, hash(target));
    if (mkdir(lower, DIR_MODE) < 0 || mkdir(merged, DIR_MODE) < 0 ||
        move_mount(fd, "", AT_FDCWD, lower, MOVE_MOUNT_F_EMPTY_PATH) < 0)
        agx_plan_fail(p, AGX_STAGE_STAGE, target.ptr);
    (void)close(fd);
    if (!make_layer(layer, lower))
        agx_plan_fail(p, AGX_STAGE_OVERLAY, target.ptr);
    (void)snprintf(options, sizeof(options),
                   "lowerdir=%s,upperdir=%s/upper,workdir=%s/work,userxattr%s", lower, layer, layer,
                   p->plan.flags & AGX_PLAN_VOLATILE ? ",volatile" : "");
    if (mount("overlay", merged, "overlay", MS_NOSUID | MS_NODEV, options) < 0)
        agx_plan_fail(p, AGX_STAGE_OVERLAY, target.ptr);
    fd = open_tree(AT_FDCWD, merged, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (fd < 0)
        agx_plan_fail(p, AGX_STAGE_OVERLAY, target.ptr);
    return fd;
}

void agx_plan_layer(struct agx_planned *p)
{
    struct agx_init_list mounts = p->plan.mounts;
    struct agx_plan_mount m;

    for (size_t i = 0; agx_plan_mount_next(&mounts, &m); i++) {
        if (m.flags & AGX_PLAN_LAYERED)
            p->mounts[i] = layer_one(p, i, p->mounts[i], m.target);
    }
}
