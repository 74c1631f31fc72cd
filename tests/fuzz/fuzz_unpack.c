/*
 * A tar is unpacked as a layer, or into a root that has files and symlinks (the first byte says
 * which). No tar changes anything outside the directory.
 */
#include "base/path.h"
#include "image/unpack.h"
#include "tests/support/fuzz.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

struct input {
    const uint8_t *data;
    size_t size;
};

static ssize_t give(void *user, void *buf, size_t size, struct agx_error **err)
{
    struct input *in = user;
    size_t n = AGX_MIN(size, in->size);

    (void)err;
    memcpy(buf, in->data, n);
    in->data += n;
    in->size -= n;
    return (ssize_t)n;
}

/* "out" and "victim" are there, and nothing else. */
static void check_outside(int dir, const struct stat *before)
{
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fdopendir(fd);
    struct stat st;
    unsigned n = 0;

    FUZZ_CHECK(d);
    while (readdir(d))
        n++;
    closedir(d);
    FUZZ_CHECK(n == 4);
    FUZZ_CHECK(fstatat(dir, "victim", &st, AT_SYMLINK_NOFOLLOW) == 0);
    FUZZ_CHECK(st.st_size == 0 && st.st_mode == before->st_mode && st.st_ino == before->st_ino &&
               st.st_nlink == 1 && st.st_uid == before->st_uid);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[] = "/tmp/agx-fuzz-unpack-XXXXXX";
    struct input in = { data, size };
    struct agx_unpack_params p = { .read = give,
                                   .user = &in,
                                   .limits = { .bytes = 1 << 20,
                                               .entries = 64,
                                               .ratio = 100,
                                               .ratio_from = 1 << 16,
                                               .depth = 16 },
                                   .whiteouts = true,
                                   .owners = geteuid() == 0 };
    struct agx_unpack_result result;
    struct agx_error *err = NULL;
    struct stat before;
    int dir, root, tmp;

    if (size == 0)
        return 0;
    FUZZ_CHECK(mkdtemp(path));
    tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    FUZZ_CHECK(mkdirat(dir, "out", 0755) == 0 && mknodat(dir, "victim", S_IFREG | 0600, 0) == 0);
    FUZZ_CHECK(fstatat(dir, "victim", &before, 0) == 0);
    root = openat(dir, "out", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (data[0] & 1) {
        p.into = "/way";
        p.whiteouts = false;
        FUZZ_CHECK(symlinkat("../..", root, "way") == 0 && symlinkat("../victim", root, "a") == 0);
    }
    in.data++;
    in.size--;
    if (agx_unpack(root, &p, &result, &err) == 0)
        FUZZ_CHECK(!err && result.bytes <= p.limits.bytes && result.entries <= p.limits.entries);
    else
        FUZZ_CHECK(err);
    agx_error_free(err);
    check_outside(dir, &before);
    close(root);
    close(dir);
    FUZZ_CHECK(agx_path_remove_tree(tmp, path + strlen("/tmp/"), NULL) == 0);
    close(tmp);
    return 0;
}
