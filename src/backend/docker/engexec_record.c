/* engexec_record.c: records which command is which exec of the engine, in one file each, for the
 * next daemon. Written before the command is started. */
#include "backend/docker/engexec_internal.h"

#include "base/fd.h"
#include "base/path.h"
#include "core/ident.h"

#include <fcntl.h>

#include "base/banned.h"

enum { NOTE_MAX = 256 };

static void dir_of(const char *sandbox_id, char ret[AGX_IDENT_MAX + 16])
{
    (void)snprintf(ret, AGX_IDENT_MAX + 16, "execs/%s", sandbox_id);
}

int agx_engexec_record_open(const char *state_dir, const char *sandbox_id, struct agx_error **err)
{
    char dir[AGX_IDENT_MAX + 16];
    _cleanup_close_ int state_fd = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (state_fd < 0)
        return agx_error_errno(err, errno, "open '%s'", state_dir);
    dir_of(sandbox_id, dir);
    return agx_path_mkdirs(state_fd, dir, 0700, err);
}

int agx_docker_engexec_purge(const char *state_dir, const char *sandbox_id, struct agx_error **err)
{
    char dir[AGX_IDENT_MAX + 16];
    _cleanup_close_ int state_fd = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (state_fd < 0)
        return agx_error_errno(err, errno, "open '%s'", state_dir);
    dir_of(sandbox_id, dir);
    return agx_path_remove_tree(state_fd, dir, err);
}

/* An id has no '.'; those of a backend's own commands begin with a '/'. */
static void name_of(struct agx_str id, char ret[AGX_INIT_ID_MAX + 8])
{
    (void)snprintf(ret, AGX_INIT_ID_MAX + 8, "%.*s.exec", AGX_STR_ARG(id));
    for (char *at = ret; *at; at++)
        *at = *at == '/' ? '.' : *at;
}

int agx_engexec_record_put(const struct agx_engexec *x, struct agx_str id, const char *exec,
                           struct agx_error **err)
{
    char name[AGX_INIT_ID_MAX + 8];
    _cleanup_close_ int fd = -1;

    name_of(id, name);
    fd = agx_path_open(x->dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC, 0600, err);
    /* Not synced: what the disk loses in a crash of the machine, the engine has lost too. */
    return fd < 0 ? fd : agx_fd_write_all(fd, agx_str_from(exec), err);
}

char *agx_engexec_record_get(const struct agx_engexec *x, struct agx_str id)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(NOTE_MAX);
    char name[AGX_INIT_ID_MAX + 8];

    name_of(id, name);
    if (agx_fd_read_file(x->dir_fd, name, &text, NULL) < 0 || text.len == 0)
        return NULL;
    return agx_buf_take_cstr(&text);
}

void agx_engexec_record_remove(const struct agx_engexec *x, struct agx_str id)
{
    char name[AGX_INIT_ID_MAX + 8];

    name_of(id, name);
    (void)unlinkat(x->dir_fd, name, 0);
}
