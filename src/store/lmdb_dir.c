/*
 * lmdb_dir.c: the store's directory: its lock, its state, and checks of LMDB's file before it is
 * mapped.
 *
 * `state` always has the same length and is written in place, which needs no space: a store on a
 * full disk can still be opened and read. Unknown text in it counts as "not closed".
 */
#include "store/lmdb_dir.h"

#include "base/buf.h"
#include "base/lockfile.h"
#include "base/mem.h"

#include <endian.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <sys/stat.h>

#include "base/banned.h"

#define STATE_SIZE 128

/* LMDB's reader table, for more readers than we have. We allocate its blocks in advance: LMDB would
 * leave a hole, and writing to a mapped hole on a full disk is a SIGBUS. */
#define LOCK_MDB_SIZE 8192

/* The layout of a meta page of LMDB 0.9 on 64-bit machines: the page's header, then the meta data.
 * The page size is in the first database's padding. */
struct meta_page {
    uint64_t number;
    uint16_t pad, flags;
    uint32_t unused;
    uint32_t magic, version;
    uint64_t address, map_size;
    struct {
        uint32_t pad;
        uint16_t flags, depth;
        uint64_t branch_pages, leaf_pages, overflow_pages, entries, root;
    } dbs[2];
    uint64_t last_page, txn;
};

#define META_FLAG 0x08
#define META_MAGIC 0xBEEFC0DE
#define META_VERSION 1

/* Properties of data.mdb, read without LMDB. */
struct facts {
    uint64_t size;
    int64_t mtime_s;
    uint64_t mtime_ns;
    uint64_t txn;
    uint64_t needs; /* size of its pages according to the meta page */
};

int agx_lmdb_dir_damaged(const char *data_path, struct agx_error **err, const char *fmt, ...)
{
    char text[512];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return agx_error_set(err, AGX_DATA_LOSS,
                         "'%s' is damaged: %s; move it away and restore a backup", data_path, text);
}

/* Opens the directory and restricts it to us. */
static int open_directory(struct agx_lmdb_dir *d, struct agx_error **err)
{
    struct stat about;

    if (mkdir(d->path, 0700) < 0 && errno != EEXIST)
        return agx_error_errno(err, errno, "make directory '%s'", d->path);
    d->fd = open(d->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (d->fd < 0 || fstat(d->fd, &about) < 0)
        return agx_error_errno(err, errno, "open directory '%s'", d->path);
    if (about.st_uid != geteuid())
        return agx_error_set(err, AGX_PERMISSION_DENIED,
                             "directory '%s' belongs to user %u, not to us (%u)", d->path,
                             (unsigned)about.st_uid, (unsigned)geteuid());
    if ((about.st_mode & 077) != 0 && fchmod(d->fd, 0700) < 0)
        return agx_error_errno(err, errno, "set the mode of directory '%s'", d->path);
    return 0;
}

static int open_file(struct agx_lmdb_dir *d, const char *name, int flags, struct agx_error **err)
{
    int fd = openat(d->fd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);

    if (fd < 0)
        return agx_error_errno(err, errno, "open '%s/%s'", d->path, name);
    if (fchmod(fd, 0600) < 0) {
        int r = agx_error_errno(err, errno, "set the mode of '%s/%s'", d->path, name);

        agx_closep(&fd);
        return r;
    }
    return fd;
}

static int take_lock(struct agx_lmdb_dir *d, struct agx_error **err)
{
    char pid[16] = "";
    pid_t holder = 0;
    int n;

    d->lock_fd = open_file(d, "lock", O_CREAT, err);
    if (d->lock_fd < 0)
        return d->lock_fd;
    if (agx_lockfile_take(d->lock_fd, &holder) < 0) {
        if (errno != EWOULDBLOCK)
            return agx_error_errno(err, errno, "lock '%s/lock'", d->path);
        return agx_error_set(err, AGX_FAILED_PRECONDITION,
                             "the store '%s' is in use by process '%d'", d->path, (int)holder);
    }
    /* Only for that message, so a full disk is no failure. */
    n = snprintf(pid, sizeof(pid), "%-10d", (int)getpid());
    (void)!pwrite(d->lock_fd, pid, (size_t)n, 0);
    return 0;
}

static int reserve_readers(struct agx_lmdb_dir *d, struct agx_error **err)
{
    _cleanup_close_ int fd = open_file(d, "lock.mdb", O_CREAT, err);
    int r;

    if (fd < 0)
        return fd;
    r = posix_fallocate(fd, 0, LOCK_MDB_SIZE);
    return r != 0 ? agx_error_errno(err, r, "reserve '%s/lock.mdb'", d->path) : 0;
}

int agx_lmdb_dir_open(const char *path, struct agx_lmdb_dir **ret_dir, struct agx_error **err)
{
    struct agx_lmdb_dir *d = agx_new(struct agx_lmdb_dir);
    int r;

    d->fd = d->lock_fd = d->state_fd = -1;
    d->path = strdup(path);
    if (!d->path || asprintf(&d->data_path, "%s/data.mdb", path) < 0)
        abort();
    r = open_directory(d, err);
    if (r == 0)
        r = take_lock(d, err);
    if (r == 0)
        r = reserve_readers(d, err);
    if (r < 0) {
        agx_lmdb_dir_close(d);
        return r;
    }
    *ret_dir = d;
    return 0;
}

struct agx_lmdb_dir *agx_lmdb_dir_close(struct agx_lmdb_dir *d)
{
    if (!d)
        return NULL;
    agx_closep(&d->state_fd);
    agx_closep(&d->lock_fd);
    agx_closep(&d->fd);
    free(d->data_path);
    free(d->path);
    free(d);
    return NULL;
}

/* Reads one meta page and checks it by itself. */
static int read_meta(const struct agx_lmdb_dir *d, int fd, uint64_t at, struct meta_page *ret,
                     struct agx_error **err)
{
    ssize_t n = pread(fd, ret, sizeof(*ret), (off_t)at);
    uint32_t page_size;

    if (n < 0)
        return agx_error_errno(err, errno, "read '%s'", d->data_path);
    if ((size_t)n < sizeof(*ret))
        return agx_lmdb_dir_damaged(d->data_path, err, "it ends within its first pages");
    page_size = ret->dbs[0].pad;
    if (!(ret->flags & META_FLAG) || ret->magic != META_MAGIC)
        return agx_lmdb_dir_damaged(d->data_path, err, "the page at %" PRIu64 " is not a meta page",
                                    at);
    if (ret->version != META_VERSION)
        return agx_error_set(err, AGX_FAILED_PRECONDITION,
                             "'%s' has LMDB's file format %u; this program reads format %d",
                             d->data_path, ret->version, META_VERSION);
    if (page_size < 512 || page_size > 65536 || (page_size & (page_size - 1)) != 0)
        return agx_lmdb_dir_damaged(d->data_path, err, "its pages have %u bytes", page_size);
    return 0;
}

/* Reads both meta pages and uses the newer one. 0: no file, or an empty one. */
static int read_facts(const struct agx_lmdb_dir *d, struct facts *ret, struct agx_error **err)
{
    _cleanup_close_ int fd = openat(d->fd, "data.mdb", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct meta_page a = { 0 }, b = { 0 };
    struct stat about;
    uint64_t page_size;
    int r;

    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0 || fchmod(fd, 0600) < 0 || fstat(fd, &about) < 0)
        return agx_error_errno(err, errno, "open '%s'", d->data_path);
    if (about.st_size == 0)
        return 0;
    r = read_meta(d, fd, 0, &a, err);
    page_size = r == 0 ? a.dbs[0].pad : 0;
    if (r == 0)
        r = read_meta(d, fd, page_size, &b, err);
    if (r < 0)
        return r;
    if (b.dbs[0].pad != page_size)
        return agx_lmdb_dir_damaged(d->data_path, err, "its meta pages disagree");
    *ret = (struct facts){
        .size = (uint64_t)about.st_size,
        .mtime_s = about.st_mtim.tv_sec,
        .mtime_ns = (uint64_t)about.st_mtim.tv_nsec,
        .txn = AGX_MAX(a.txn, b.txn),
        .needs = ((a.txn > b.txn ? a : b).last_page + 1) * page_size,
    };
    return 1;
}

static void format_state(char text[STATE_SIZE + 1], const struct facts *clean)
{
    char words[STATE_SIZE];

    if (clean)
        (void)snprintf(words, sizeof(words), "clean %" PRIu64 " %" PRId64 ".%09" PRIu64 " %" PRIu64,
                       clean->size, clean->mtime_s, clean->mtime_ns, clean->txn);
    else
        (void)snprintf(words, sizeof(words), "open");
    (void)snprintf(text, STATE_SIZE + 1, "%-*s\n", STATE_SIZE - 1, words);
}

/* 1: `text` is the file's content; 0: no file. */
static int read_state(struct agx_lmdb_dir *d, char text[STATE_SIZE + 1], struct agx_error **err)
{
    ssize_t n;

    if (d->state_fd < 0 && faccessat(d->fd, "state", F_OK, AT_SYMLINK_NOFOLLOW) < 0 &&
        errno == ENOENT)
        return 0;
    if (d->state_fd < 0)
        d->state_fd = open_file(d, "state", 0, err);
    if (d->state_fd < 0)
        return d->state_fd;
    n = pread(d->state_fd, text, STATE_SIZE, 0);
    if (n < 0)
        return agx_error_errno(err, errno, "read '%s/state'", d->path);
    text[n] = '\0';
    return 1;
}

int agx_lmdb_dir_examine(struct agx_lmdb_dir *d, enum agx_lmdb_trust *ret_trust,
                         struct agx_error **err)
{
    char said[STATE_SIZE + 1] = "", whole[STATE_SIZE + 1];
    struct facts now = { 0 };
    int has_state = read_state(d, said, err), has_data;

    if (has_state < 0)
        return has_state;
    has_data = read_facts(d, &now, err);
    if (has_data < 0)
        return has_data;
    if (!has_data && has_state)
        return agx_lmdb_dir_damaged(d->data_path, err,
                                    "it is missing or empty, and '%s/state' "
                                    "says that there was a store",
                                    d->path);
    format_state(whole, &now);
    if (!has_data)
        *ret_trust = AGX_LMDB_NEW;
    else if (strcmp(said, whole) == 0 && now.size >= now.needs)
        *ret_trust = AGX_LMDB_TRUSTED;
    else
        *ret_trust = AGX_LMDB_SUSPECT;
    return 0;
}

static int write_state(struct agx_lmdb_dir *d, const struct facts *clean, struct agx_error **err)
{
    char text[STATE_SIZE + 1];
    bool is_new = d->state_fd < 0;

    if (is_new)
        d->state_fd = open_file(d, "state", O_CREAT, err);
    if (d->state_fd < 0)
        return d->state_fd;
    format_state(text, clean);
    if (pwrite(d->state_fd, text, STATE_SIZE, 0) != STATE_SIZE || fsync(d->state_fd) < 0 ||
        (is_new && fsync(d->fd) < 0))
        return agx_error_errno(err, errno, "write '%s/state'", d->path);
    return 0;
}

int agx_lmdb_dir_mark_open(struct agx_lmdb_dir *d, struct agx_error **err)
{
    return write_state(d, NULL, err);
}

int agx_lmdb_dir_mark_clean(struct agx_lmdb_dir *d, struct agx_error **err)
{
    struct facts now = { 0 };
    int r = read_facts(d, &now, err);

    return r <= 0 ? r : write_state(d, &now, err);
}
