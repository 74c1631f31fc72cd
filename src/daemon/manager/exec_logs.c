/* exec_logs.c: files made, opened and removed beneath one directory. */
#include "daemon/manager/exec_logs.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/path.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/banned.h"

/* Removals that may wait for the thread; the next start finds those past the limit. */
#define REMOVALS_MAX 65536
#define CLOSE_MS 1000

/* In the order of agx_log_fds. */
static const char *const suffixes[] = { ".stdout.log", ".stdout.pos", ".stderr.log",
                                        ".stderr.pos" };

struct name {
    char text[AGX_IDENT_MAX + sizeof(".stdout.log")];
};

static struct name name_of(const char *exec_id, size_t i)
{
    struct name n;

    (void)snprintf(n.text, sizeof(n.text), "%s%s", exec_id, suffixes[i]);
    return n;
}

static int *fd_at(struct agx_log_fds *fds, size_t i)
{
    return i < 2 ? &fds->out[i] : &fds->err[i - 2];
}

void agx_log_fds_close(struct agx_log_fds *fds)
{
    for (size_t i = 0; i < AGX_ARRAY_LEN(suffixes); i++) {
        agx_closep(fd_at(fds, i));
        *fd_at(fds, i) = -1;
    }
}

int agx_logs_open(struct agx_logs *logs, struct agx_loop *l, const char *root,
                  struct agx_error **err)
{
    const struct agx_pool_config config = { .name = "logs",
                                            .threads = 1,
                                            .max_queued = REMOVALS_MAX };
    _cleanup_close_ int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r;

    if (fd < 0)
        return agx_error_errno(err, errno, "open the directory of logs '%s'", root);
    r = agx_pool_open(l, &config, &logs->pool, err);
    if (r < 0)
        return r;
    logs->loop = l;
    logs->root = root;
    logs->root_fd = AGX_TAKE_FD(fd);
    return 0;
}

void agx_logs_close(struct agx_logs *logs, agx_done_fn closed, void *user)
{
    struct agx_pool *pool = AGX_TAKE_PTR(logs->pool);

    agx_closep(&logs->root_fd);
    logs->root_fd = -1;
    agx_pool_stop(pool, CLOSE_MS, closed, user);
}

/* Could an exec that was never stored have left it: our own regular file with one link? */
static bool is_left_over(int dirfd, const char *name)
{
    struct stat st;

    return fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
           st.st_nlink == 1 && st.st_uid == geteuid();
}

static int make_file(int dirfd, const char *name, struct agx_error **err)
{
    const int flags = O_RDWR | O_CREAT | O_EXCL;
    struct agx_error *first = NULL;
    int fd = agx_path_open(dirfd, name, flags, 0600, &first);

    if (fd == -AGX_ALREADY_EXISTS && is_left_over(dirfd, name) && unlinkat(dirfd, name, 0) == 0) {
        first = agx_error_free(first);
        return agx_path_open(dirfd, name, flags, 0600, err);
    }
    if (fd == -AGX_ALREADY_EXISTS) {
        agx_error_free(first);
        return agx_error_set(err, AGX_FAILED_PRECONDITION, "'%s' exists and is not our file", name);
    }
    if (fd < 0)
        agx_error_propagate(err, &first);
    return fd;
}

static int reopen_file(int dirfd, const char *name, struct agx_error **err)
{
    return agx_path_open(dirfd, name, O_RDWR | O_CREAT, 0600, err);
}

static int open_files(struct agx_logs *logs, const char *sandbox_id, const char *exec_id,
                      int (*open_one)(int dirfd, const char *name, struct agx_error **err),
                      struct agx_log_fds *ret, struct agx_error **err)
{
    _cleanup_(agx_log_fds_close) struct agx_log_fds fds = AGX_LOG_FDS_INIT;
    _cleanup_close_ int dir = agx_path_mkdirs(logs->root_fd, sandbox_id, 0700, err);

    if (dir < 0)
        return dir;
    for (size_t i = 0; i < AGX_ARRAY_LEN(suffixes); i++) {
        struct name n = name_of(exec_id, i);
        int fd = open_one(dir, n.text, err);

        if (fd < 0)
            return fd;
        *fd_at(&fds, i) = fd;
    }
    *ret = fds;
    fds = (struct agx_log_fds)AGX_LOG_FDS_INIT;
    return 0;
}

int agx_logs_create(struct agx_logs *logs, const char *sandbox_id, const char *exec_id,
                    struct agx_log_fds *ret, struct agx_error **err)
{
    return open_files(logs, sandbox_id, exec_id, make_file, ret, err);
}

int agx_logs_reopen(struct agx_logs *logs, const char *sandbox_id, const char *exec_id,
                    struct agx_log_fds *ret, struct agx_error **err)
{
    return open_files(logs, sandbox_id, exec_id, reopen_file, ret, err);
}

int agx_logs_open_read(struct agx_logs *logs, const char *sandbox_id, const char *exec_id,
                       enum agx_stream stream, int ret_fds[2], struct agx_error **err)
{
    const size_t first = stream == AGX_STREAM_OUT ? 0 : 2;
    int fds[2] = { -1, -1 };

    for (size_t i = 0; i < 2; i++) {
        struct name n = name_of(exec_id, first + i);
        char path[2 * sizeof(struct name)];

        (void)snprintf(path, sizeof(path), "%s/%s", sandbox_id, n.text);
        fds[i] = agx_path_open(logs->root_fd, path, O_RDONLY, 0, err);
        if (fds[i] < 0) {
            int r = fds[i];

            agx_closep(&fds[0]);
            return r;
        }
    }
    memcpy(ret_fds, fds, sizeof(fds));
    return 0;
}

void agx_logs_remove(struct agx_logs *logs, const char *sandbox_id, const char *exec_id)
{
    _cleanup_close_ int dir =
        agx_path_open(logs->root_fd, sandbox_id, O_RDONLY | O_DIRECTORY, 0, NULL);

    for (size_t i = 0; dir >= 0 && i < AGX_ARRAY_LEN(suffixes); i++) {
        struct name n = name_of(exec_id, i);

        (void)unlinkat(dir, n.text, 0);
    }
}

char *agx_logs_path(const struct agx_logs *logs, const char *sandbox_id, const char *exec_id,
                    enum agx_stream stream, char out[AGX_LOG_PATH_SIZE])
{
    (void)snprintf(out, AGX_LOG_PATH_SIZE, "%s/%s/%s%s", logs->root, sandbox_id, exec_id,
                   suffixes[stream == AGX_STREAM_OUT ? 0 : 2]);
    return out;
}

/* ---- removal by a thread ---- */

struct removal {
    struct agx_job job;
    int root_fd; /* of its own */
    char id[AGX_IDENT_MAX + 1];
};

static bool is_log(const char *name)
{
    struct agx_str s = agx_str_from(name);

    for (size_t i = 0; i < AGX_ARRAY_LEN(suffixes); i++) {
        size_t len = strlen(suffixes[i]);

        if (s.len > len && strcmp(name + s.len - len, suffixes[i]) == 0)
            return true;
    }
    return false;
}

/* Removes our files in it, and the directory if it is empty then. Files of others stay. */
static int remove_logs(struct agx_job *j, struct agx_error **err)
{
    struct removal *r = container_of(j, struct removal, job);
    int fd = agx_path_open(r->root_fd, r->id, O_RDONLY | O_DIRECTORY, 0, err);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *d;

    if (fd < 0)
        return fd;
    if (!dir) {
        int saved = errno;

        (void)close(fd);
        return agx_error_errno(err, saved, "list the logs of sandbox '%s'", r->id);
    }
    while ((d = readdir(dir)))
        if (is_log(d->d_name))
            (void)unlinkat(fd, d->d_name, 0);
    (void)closedir(dir);
    if (unlinkat(r->root_fd, r->id, AT_REMOVEDIR) < 0)
        return agx_error_errno(err, errno, "remove the logs of sandbox '%s'", r->id);
    return 0;
}

static void removed(struct agx_job *j, struct agx_error *error)
{
    struct removal *r = container_of(j, struct removal, job);

    if (error && error->code != AGX_CANCELLED && error->code != AGX_NOT_FOUND)
        AGX_LOG(AGX_LOG_WARN, "logs.left_over", AGX_F_STR("sandbox", r->id), AGX_F_ERR(error));
    agx_error_free(error);
    agx_closep(&r->root_fd);
    free(r);
}

static const struct agx_job_kind removal_kind = { .name = "remove logs",
                                                  .run = remove_logs,
                                                  .done = removed };

void agx_logs_purge(struct agx_logs *logs, const char *sandbox_id)
{
    struct removal *r;
    struct agx_error *error = NULL;

    if (!logs->pool)
        return; /* closing: the next start finds it */
    r = agx_new(struct removal);
    r->job.kind = &removal_kind;
    r->root_fd = fcntl(logs->root_fd, F_DUPFD_CLOEXEC, 3);
    (void)snprintf(r->id, sizeof(r->id), "%s", sandbox_id);
    if (r->root_fd < 0)
        (void)agx_error_errno(&error, errno, "open the directory of logs");
    if (error || agx_job_start(&r->job, logs->pool, &error) < 0)
        removed(&r->job, error);
}

/* ---- what was left behind ---- */

struct sweep {
    struct agx_job job;
    struct agx_logs *logs;
    int root_fd;
    struct agx_words names;
    bool (*is_gone)(void *user, const char *sandbox_id);
    void *user;
};

static int list_names(struct agx_job *j, struct agx_error **err)
{
    struct sweep *s = container_of(j, struct sweep, job);
    DIR *dir = fdopendir(s->root_fd);
    const struct dirent *d;
    int r = 0;

    if (!dir)
        return agx_error_errno(err, errno, "list the directory of logs");
    s->root_fd = -1;
    while (r == 0 && (d = readdir(dir))) {
        if (d->d_name[0] != '.' && strlen(d->d_name) <= AGX_IDENT_MAX)
            r = agx_words_add(&s->names, agx_str_from(d->d_name), err);
    }
    (void)closedir(dir);
    return r;
}

static void listed(struct agx_job *j, struct agx_error *error)
{
    struct sweep *s = container_of(j, struct sweep, job);

    if (error && error->code != AGX_CANCELLED)
        AGX_LOG(AGX_LOG_WARN, "logs.not_swept", AGX_F_ERR(error));
    agx_error_free(error);
    for (size_t i = 0; s->logs->pool && i < s->names.len; i++)
        if (s->is_gone(s->user, s->names.items[i]))
            agx_logs_purge(s->logs, s->names.items[i]);
    agx_words_done(&s->names);
    agx_closep(&s->root_fd);
    free(s);
}

static const struct agx_job_kind sweep_kind = { .name = "list logs",
                                                .run = list_names,
                                                .done = listed };

void agx_logs_sweep(struct agx_logs *logs, bool (*is_gone)(void *user, const char *sandbox_id),
                    void *user)
{
    struct sweep *s = agx_new(struct sweep);
    struct agx_error *error = NULL;

    *s = (struct sweep){ .job.kind = &sweep_kind, .logs = logs, .is_gone = is_gone, .user = user };
    /* Another description than ours: reading moves its place. */
    s->root_fd = openat(logs->root_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s->root_fd < 0)
        (void)agx_error_errno(&error, errno, "open the directory of logs");
    if (error || agx_job_start(&s->job, logs->pool, &error) < 0)
        listed(&s->job, error);
}
