/*
 * up_files.c: files of builtin tools, for the user that commands run as.
 *
 * PID 1 is in the sandbox's root and waits. The user comes from the image's passwd, which is
 * untrusted and is read as PID 1 would, following no link out of the root.
 */
#include "backend/native/op_up.h"

#include "backend/native/plan_build.h"
#include "base/fd.h"
#include "base/mem.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/banned.h"

struct files_job {
    struct agx_job job;
    struct agx_native_up *up;
    pid_t pid; /* it waits for us, so its pid cannot be reused */
    char *user, *home_env;
    const struct agx_binds *binds; /* the operation's, which waits for us; as the next */
    const struct agx_tool_files *files;
    struct agx_buf tar;
};

/* Empty if it is missing. */
static int read_passwd(const struct files_job *x, struct agx_buf *out, struct agx_error **err)
{
    const struct open_how how = { .flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
                                  .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
    _cleanup_close_ int root = -1, fd = -1;
    char path[32];
    struct stat st;

    (void)snprintf(path, sizeof(path), "/proc/%d/root", (int)x->pid);
    root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return agx_error_errno(err, errno, "open the root of the sandbox");
    fd = (int)syscall(SYS_openat2, root, "etc/passwd", &how, sizeof(how));
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return 0;
    return agx_fd_read_all(fd, out, err);
}

static int run_files(struct agx_job *j, struct agx_error **err)
{
    struct files_job *x = container_of(j, struct files_job, job);
    _cleanup_buf_ struct agx_buf passwd = AGX_BUF_INIT(AGX_TOOL_PASSWD_MAX);
    struct agx_tool_owner owner;
    int r = read_passwd(x, &passwd, err);

    if (r == 0)
        r = agx_tool_files_find_owner(x->user, agx_buf_peek(&passwd), x->home_env, &owner, err);
    return r < 0 ? r : agx_tool_files_tar(x->files, &owner, x->binds, &x->tar, err);
}

static void files_free(struct files_job *x)
{
    agx_tool_files_wipe(&x->tar);
    free(x->user);
    free(x->home_env);
    free(x);
}

static void files_done(struct agx_job *j, struct agx_error *error)
{
    struct files_job *x = container_of(j, struct files_job, job);
    struct agx_native_up *up = x->up;

    up->tar = x->tar;
    x->tar = (struct agx_buf){ 0 };
    files_free(x);
    agx_op_fail(&up->task.op, &error);
    agx_op_arrive(&up->task.op);
}

static const struct agx_job_kind files_kind = { .name = "files",
                                                .run = run_files,
                                                .done = files_done };

int agx_native_up_pack_files(struct agx_native_up *up, struct agx_error **err)
{
    struct files_job *x = agx_new(struct files_job);
    const char *home_env =
        agx_tool_files_home_env(&up->task.sandbox.spec, &up->parts[0].image->config.env);
    int r;

    x->job.kind = &files_kind;
    x->up = up;
    x->pid = up->box->state.parts[0].init.pid;
    x->binds = &up->host_view.binds;
    x->files = &up->host_view.files;
    r = agx_text_set(&x->user, up->box->state.parts[0].user, err);
    if (r == 0)
        r = agx_text_set(&x->home_env, home_env, err);
    if (r == 0)
        r = agx_job_start(&x->job, up->native->disk_pool, err);
    if (r < 0)
        files_free(x);
    else
        agx_op_hold(&up->task.op);
    return r;
}
