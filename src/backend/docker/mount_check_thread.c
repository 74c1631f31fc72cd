/* mount_check_thread.c: compares through /proc/PID/root of a container, and its record. */
#include "backend/docker/mount_check_thread.h"

#include "backend/docker/create_body.h"
#include "backend/docker/mount_check.h"
#include "backend/exec/init_client.h"
#include "base/fd.h"
#include "base/path.h"
#include "core/ident.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/banned.h"

#define DIR_NAME "compared"

/* How often a path is opened again because a file was renamed or mounted somewhere on the machine
 * during its "..": the kernel cannot tell then whether that was on the way. */
enum { AGAIN_MAX = 100000, LIST_MAX = 8 << 20, LIST_NAME_SIZE = AGX_IDENT_MAX + 16 };

void agx_docker_looked_done(struct agx_docker_looked *x)
{
    free(x->sandbox_id);
    free(x->container);
    free(x->state_dir);
    agx_sources_unref(x->asker.sources);
    agx_binds_done(&x->binds);
}

/* ---- notes ---- */

static int open_dir(const char *state_dir, bool makes, struct agx_error **err)
{
    _cleanup_close_ int state_fd = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (state_fd < 0)
        return agx_error_errno(err, errno, "open '%s'", state_dir);
    return makes ? agx_path_mkdirs(state_fd, DIR_NAME, 0700, err)
                 : agx_path_open(state_fd, DIR_NAME, O_RDONLY | O_DIRECTORY, 0, err);
}

static bool is_noted(const struct agx_docker_looked *x)
{
    _cleanup_close_ int dir = open_dir(x->state_dir, false, NULL);
    _cleanup_buf_ struct agx_buf about = AGX_BUF_INIT(PATH_MAX);
    struct agx_native_proc was;

    return dir >= 0 && agx_native_proc_load(dir, x->sandbox_id, &was, &about) &&
           agx_str_eq(agx_str_trim(agx_buf_peek(&about)), agx_str_from(x->container)) &&
           was.pid == x->proc.pid && was.start == x->proc.start &&
           strcmp(was.boot, x->proc.boot) == 0;
}

/* "SANDBOX.sources": the container, then the identity of each source at its first start; a NUL
 * behind each. */
static void name_list(const char *sandbox_id, char out[LIST_NAME_SIZE])
{
    (void)snprintf(out, LIST_NAME_SIZE, "%s.sources", sandbox_id);
}

/* False: there is none for this container. */
static bool read_list(const struct agx_docker_looked *x, int dir, struct agx_words *ret)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(LIST_MAX);
    struct agx_str rest, word = { 0 };
    char name[LIST_NAME_SIZE];

    name_list(x->sandbox_id, name);
    if (agx_fd_read_file(dir, name, &text, NULL) < 0)
        return false;
    rest = agx_buf_peek(&text);
    if (!agx_str_split(&rest, '\0', &word) || !agx_str_eq(word, agx_str_from(x->container)))
        return false;
    while (agx_str_split(&rest, '\0', &word)) {
        if (word.len > 0 && agx_words_add(ret, word, NULL) < 0)
            return false;
    }
    return true;
}

static int write_list(const struct agx_docker_looked *x, int dir, struct agx_error **err)
{
    _cleanup_(agx_words_done) struct agx_words list = { 0 };
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(LIST_MAX);
    char name[LIST_NAME_SIZE];
    int r = agx_binds_list(&x->binds, &list, err);

    if (r < 0)
        return r;
    name_list(x->sandbox_id, name);
    r = agx_buf_printf(&text, "%s%c", x->container, '\0');
    for (size_t i = 0; r == 0 && i < list.len; i++)
        r = agx_buf_printf(&text, "%s%c", list.items[i], '\0');
    if (r < 0)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "the list of sources is too long");
    return agx_path_write_file(dir, name, agx_buf_peek(&text), 0600, err);
}

int agx_docker_looked_note(const struct agx_docker_looked *x, struct agx_error **err)
{
    _cleanup_close_ int dir = open_dir(x->state_dir, true, err);
    _cleanup_(agx_words_done) struct agx_words list = { 0 };
    int r = dir < 0 ? dir : 0;

    if (r == 0 && read_list(x, dir, &list))
        agx_binds_log_changed(&x->binds, &list, x->sandbox_id);
    else if (r == 0)
        r = write_list(x, dir, err);
    return r < 0 ? r
                 : agx_native_proc_save(dir, x->sandbox_id, &x->proc, agx_str_from(x->container),
                                        err);
}

void agx_docker_mount_check_purge(const char *state_dir, const char *sandbox_id)
{
    _cleanup_close_ int dir = open_dir(state_dir, false, NULL);

    char list[LIST_NAME_SIZE];

    if (dir < 0)
        return;
    name_list(sandbox_id, list);
    (void)unlinkat(dir, sandbox_id, 0);
    (void)unlinkat(dir, list, 0);
}

/* ---- PID 1 ---- */

/* Opens a pidfd: what /proc shows under its number is its own while it lives. Once it has become
 * init, its root is complete. */
static int hold_init(const struct agx_docker_looked *x, struct agx_error **err)
{
    struct agx_init_client_pid want = { .pid = x->pid, .container_id = x->container };
    struct agx_error *error = NULL;
    struct stat st;
    char path[64];
    int fd;

    (void)snprintf(path, sizeof(path), "/proc/%d/root%s", (int)x->pid, AGX_DOCKER_INIT);
    if (stat(path, &st) == 0) {
        want.init_dev = st.st_dev;
        want.init_ino = st.st_ino;
    } else if (errno == EACCES || errno == EPERM) {
        return agx_error_set(err, AGX_PERMISSION_DENIED, "look at the root of process %d",
                             (int)x->pid);
    }
    fd = agx_init_client_pidfd(&want, &error);
    if (fd >= 0)
        return fd;
    if (fd == -AGX_FAILED_PRECONDITION) {
        fd = agx_error_set(err, AGX_UNAVAILABLE, "process %d of container '%s' is not init",
                           (int)x->pid, x->container);
        agx_error_free(error);
        return fd;
    }
    agx_error_propagate(err, &error);
    return fd;
}

static bool is_alive(int pidfd)
{
    return syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) == 0 || errno == EPERM;
}

/* ---- targets ---- */

/* Resolved as the container does: symlinks of its image lead within its root. */
static int open_target(int root, const char *target)
{
    const struct open_how how = { .flags = O_PATH | O_CLOEXEC,
                                  .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
    int fd = -1;

    for (unsigned i = 0; i < AGAIN_MAX; i++) {
        fd = (int)syscall(SYS_openat2, root, target, &how, sizeof(how));
        if (fd >= 0 || errno != EAGAIN)
            break;
        (void)sched_yield();
    }
    return fd;
}

static int compare_one(int root, const struct agx_bind *b, struct agx_error **err)
{
    _cleanup_close_ int fd = open_target(root, b->target);
    struct agx_file_id is = { 0 };
    int r = fd < 0 ? -errno : agx_hostpath_identify(fd, &is);

    if (r == 0 && is.dev == b->from.id.dev && is.ino == b->from.id.ino)
        return 0;
    if (r == 0)
        return agx_error_set(err, AGX_FAILED_PRECONDITION,
                             "the engine mounted something else on '%s' than '%s', which was "
                             "changed meanwhile",
                             b->target, b->source);
    return agx_error_errno(err, -r, "compare what the engine mounted on '%s' with '%s'", b->target,
                           b->source);
}

static int compare_all(struct agx_docker_looked *x, struct agx_error **err)
{
    _cleanup_close_ int root = -1;
    char path[32];
    int r;

    (void)snprintf(path, sizeof(path), "/proc/%d/root", (int)x->pid);
    root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return agx_error_errno(err, errno, "open the root of process %d", (int)x->pid);
    r = agx_binds_open(&x->binds, &x->asker, NULL, err);
    for (size_t i = 0; r == 0 && i < x->binds.len; i++)
        r = compare_one(root, &x->binds.items[i], err);
    return r;
}

int agx_docker_look_at_targets(struct agx_docker_looked *x, struct agx_error **err)
{
    _cleanup_close_ int pidfd = hold_init(x, err);
    struct agx_error *error = NULL;
    int r = pidfd < 0 ? pidfd : agx_native_proc_note(&x->proc, x->pid, err);

    if (r < 0)
        return r;
    x->noted = is_noted(x);
    if (x->noted)
        return 0;
    r = compare_all(x, &error);
    if (!is_alive(pidfd)) {
        agx_error_free(error);
        return agx_error_set(err, AGX_NOT_FOUND, "process %d is gone", (int)x->pid);
    }
    if (r == 0)
        return 0;
    r = agx_error_wrap(&error, -AGX_FAILED_PRECONDITION, "sandbox '%s'", x->sandbox_id);
    agx_error_propagate(err, &error);
    return r;
}
