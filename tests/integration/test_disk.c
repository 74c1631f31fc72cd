/*
 * Limits on written data, by each method that works in this directory: AGX_BOX, or /tmp. Runs in a
 * box of namespaces (docker_box.py), or in a guest whose disk has project quotas.
 */
#include "backend/native/limits/disk.h"
#include "base/limits.h"
#include "base/path.h"
#include "tests/support/test.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>

enum { MIB = 1 << 20, PROJECT = 0x70010000, NOBODY = 65534, LIMIT = 24 << 20 };

struct place {
    char path[200];
    int fd;
    struct agx_disk disk;
};

static void open_place(struct place *p)
{
    const char *box = getenv("AGX_BOX");

    (void)snprintf(p->path, sizeof(p->path), "%s/disk-XXXXXX", box ? box : "/tmp");
    ASSERT_NOT_NULL(mkdtemp(p->path));
    ASSERT_INT(0, chmod(p->path, 0755));
    ASSERT_TRUE(!box || chmod(box, 0755) == 0);
    p->fd = open(p->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ASSERT_TRUE(p->fd >= 0);
    agx_disk_probe(p->fd, &p->disk);
    if (p->disk.kind == AGX_DISK_NONE)
        SKIP(p->disk.why);
}

static void close_place(struct place *p)
{
    _cleanup_close_ int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

    ASSERT_OK(agx_disk_drop(&p->disk, p->fd, "fs", PROJECT, NULL));
    (void)close(p->fd);
    ASSERT_OK(agx_path_remove_tree(root, p->path + 1, NULL));
}

static void prepare(struct place *p)
{
    struct agx_error *err = NULL;
    char text[512];

    if (agx_disk_prepare(&p->disk, p->fd, "fs", PROJECT, LIMIT, &err) < 0)
        FAIL("%s", agx_error_format(err, text, sizeof(text)));
    ASSERT_INT(0, fchmodat(p->fd, "fs", 0777, 0));
}

/* As somebody whom a quota binds: root of the host it does not. The child's exit status. */
static int as_nobody(const struct place *p, int (*work)(int fs))
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        int fs = openat(p->fd, "fs", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        _exit(fs >= 0 && setgid(NOBODY) == 0 && setuid(NOBODY) == 0 ? work(fs) : 99);
    }
    ASSERT_TRUE(child > 0);
    ASSERT_INT(child, waitpid(child, &status, 0));
    ASSERT_TRUE(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* How many MiB there was room for; at most 100. */
static int fill_bytes(int fs)
{
    static char block[64 << 10];
    int fd = openat(fs, "big", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    size_t n = 0;

    memset(block, 'x', sizeof(block));
    while (n < (size_t)100 * MIB) {
        ssize_t got = write(fd, block, sizeof(block));

        if (got <= 0)
            break;
        n += (size_t)got;
    }
    return errno == ENOSPC || errno == EDQUOT ? (int)(n / MIB) : 98;
}

/* How many hundreds of empty files; at most 80. */
static int fill_files(int fs)
{
    char name[16];
    int n = 0;

    for (; n < 8000; n++) {
        int fd;

        (void)snprintf(name, sizeof(name), "f%d", n);
        fd = openat(fs, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0)
            break;
        (void)close(fd);
    }
    return n / 100;
}

static int write_note(int fs)
{
    int fd = openat(fs, "note", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    return fd >= 0 && write(fd, "x", 1) == 1 ? 0 : 1;
}

static bool has_note(const struct place *p)
{
    return faccessat(p->fd, "fs/note", F_OK, 0) == 0;
}

TEST(disk_filler_ends_at_the_limit)
{
    struct place p;
    uint64_t used = 0;
    int room;

    open_place(&p);
    prepare(&p);
    room = as_nobody(&p, fill_bytes);
    /* An image has its tables and its journal in it. */
    ASSERT_TRUE(room <= LIMIT / MIB && room >= LIMIT / MIB / 2);
    ASSERT_OK(agx_disk_settle(p.fd, "fs", NULL));
    sync();
    ASSERT_OK(agx_disk_used(&p.disk, p.fd, "fs", PROJECT, &used, NULL));
    ASSERT_TRUE(used >= (uint64_t)room * MIB && used <= LIMIT + MIB);
    close_place(&p);
}

TEST(inode_filler_ends_at_the_limit)
{
    struct place p;
    int hundreds;

    open_place(&p);
    prepare(&p);
    hundreds = as_nobody(&p, fill_files);
    ASSERT_TRUE(hundreds >= 10 && hundreds <= LIMIT / AGX_DISK_BYTES_PER_FILE / 100 + 1);
    close_place(&p);
}

TEST(files_are_there_again_at_the_next_start)
{
    struct place p;

    open_place(&p);
    prepare(&p);
    ASSERT_INT(0, as_nobody(&p, write_note));
    ASSERT_OK(agx_disk_settle(p.fd, "fs", NULL));
    if (p.disk.kind == AGX_DISK_IMAGE)
        ASSERT_FALSE(has_note(&p)); /* the host shows nothing */
    prepare(&p);
    ASSERT_TRUE(has_note(&p));
    /* As after a daemon that was killed before it settled. */
    prepare(&p);
    ASSERT_TRUE(has_note(&p));
    ASSERT_OK(agx_disk_settle(p.fd, "fs", NULL));
    ASSERT_OK(agx_disk_settle(p.fd, "fs", NULL));
    close_place(&p);
}

/* The sandbox that had it is not quite gone: two devices on one file would destroy it. */
TEST(image_that_is_still_in_use_is_the_same_file_system)
{
    struct place p;
    struct stat before, after;
    int held;

    open_place(&p);
    prepare(&p);
    held = openat(p.fd, "fs", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ASSERT_INT(0, fstat(held, &before));
    ASSERT_OK(agx_disk_settle(p.fd, "fs", NULL));
    prepare(&p);
    ASSERT_INT(0, as_nobody(&p, write_note));
    ASSERT_INT(0, fstatat(p.fd, "fs", &after, 0));
    ASSERT_UINT(before.st_dev, after.st_dev);
    ASSERT_INT(0, faccessat(held, "note", F_OK, 0));
    (void)close(held);
    close_place(&p);
}

TEST(drop_leaves_nothing_mounted_and_no_limit)
{
    struct place p;
    struct statfs fs;

    open_place(&p);
    prepare(&p);
    ASSERT_OK(agx_disk_drop(&p.disk, p.fd, "fs", PROJECT, NULL));
    if (p.disk.kind == AGX_DISK_IMAGE) {
        ASSERT_INT(0, unlinkat(p.fd, "fs", AT_REMOVEDIR));
        ASSERT_INT(0, unlinkat(p.fd, "fs.img", 0));
    } else {
        ASSERT_INT(0, statfs(p.path, &fs));
        ASSERT_INT(98, as_nobody(&p, fill_bytes)); /* 100 MiB were no end */
    }
    close_place(&p);
}

TEST(drop_and_settle_of_what_was_never_prepared_succeed)
{
    struct place p;
    uint64_t used;

    open_place(&p);
    ASSERT_OK(agx_disk_settle(p.fd, "fs", NULL));
    ASSERT_OK(agx_disk_drop(&p.disk, p.fd, "fs", PROJECT, NULL));
    ASSERT_CODE(AGX_NOT_FOUND, agx_disk_used(&p.disk, p.fd, "fs", PROJECT, &used, NULL));
    close_place(&p);
}

TEST(mkfs_that_fails_leaves_nothing)
{
    const struct agx_disk broken = { .kind = AGX_DISK_IMAGE, .mkfs = "/bin/false" },
                          absent = { .kind = AGX_DISK_IMAGE, .mkfs = "/none/mkfs.ext4" };
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct place p;

    open_place(&p);
    ASSERT_CODE(AGX_INTERNAL, agx_disk_prepare(&broken, p.fd, "fs", PROJECT, LIMIT, &err));
    ASSERT_MESSAGE(err, "/bin/false");
    ASSERT_CODE(AGX_NOT_FOUND, agx_disk_prepare(&absent, p.fd, "fs", PROJECT, LIMIT, NULL));
    ASSERT_INT(-1, faccessat(p.fd, "fs.img", F_OK, 0));
    ASSERT_INT(-1, faccessat(p.fd, "fs.img.new", F_OK, 0));
    ASSERT_INT(0, unlinkat(p.fd, "fs", AT_REMOVEDIR));
    close_place(&p);
}

TEST(host_that_cannot_says_what_it_lacks)
{
    const struct agx_disk none = { .kind = AGX_DISK_NONE, .why = "there is no mkfs.ext4" };
    _cleanup_(agx_error_freep) struct agx_error *err = NULL, *small = NULL;

    ASSERT_CODE(AGX_FAILED_PRECONDITION, agx_disk_check(&none, LIMIT, &err));
    ASSERT_MESSAGE(err, "prjquota");
    ASSERT_MESSAGE(err, "mkfs.ext4");
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_disk_check(&none, MIB, &small));
    ASSERT_MESSAGE(small, "16777216");
}

/* For the guest, which must have found the way that it was made for. */
TEST(way_is_the_one_that_is_expected)
{
    const char *want = getenv("AGX_DISK_KIND");
    struct place p;

    open_place(&p);
    if (want)
        ASSERT_CSTR(want, p.disk.kind == AGX_DISK_QUOTA ? "quota" : "image");
    close_place(&p);
}
