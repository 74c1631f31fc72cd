/*
 * init_client_output.c: the files of a command's output.
 *
 * Init writes them where it has their descriptors; we only write the end mark for a command whose
 * init is gone. Over a link that carries no descriptors, we write the output that init sends, here
 * on the loop's thread: the writes go to the page cache, for files that are stored beside the
 * store.
 */
#include "backend/exec/init_client_internal.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "base/banned.h"

enum { RUN_LOG_MAX = 2048 }; /* for a command of the backend's own: as much as a message shows */

static int dup_log(struct agx_init_client_output *l, unsigned i, const struct agx_backend_log *log,
                   struct agx_error **err)
{
    const int from[] = { log->data_fd, log->index_fd };

    l->head_max[i] = log->head_max;
    l->tail_max[i] = log->tail_max;
    for (unsigned j = 0; j < AGX_ARRAY_LEN(from); j++) {
        int *fd = &l->fds[2 * i + j];

        *fd = fcntl(from[j], F_DUPFD_CLOEXEC, 0);
        if (*fd < 0)
            return agx_error_errno(err, errno, "duplicate a descriptor of a log");
    }
    return 0;
}

int agx_init_client_output_set(struct agx_init_client_output *l, const struct agx_backend_log *out,
                               const struct agx_backend_log *err_log, struct agx_error **err)
{
    int r;

    if (l->fds[0] >= 0)
        return 0; /* the same files: they have the command's name */
    r = dup_log(l, 0, out, err);
    if (r == 0)
        r = dup_log(l, 1, err_log, err);
    if (r < 0)
        agx_init_client_output_close(l);
    return r;
}

int agx_init_client_output_make(struct agx_init_client_output *l, struct agx_error **err)
{
    if (l->fds[0] >= 0)
        return 0;
    for (unsigned i = 0; i < AGX_INIT_FDS_MAX; i++) {
        l->head_max[i / 2] = 0;
        l->tail_max[i / 2] = RUN_LOG_MAX;
        l->fds[i] = memfd_create("agentix-run", MFD_CLOEXEC);
        if (l->fds[i] < 0) {
            int r = agx_error_errno(err, errno, "a file for the output of a command");

            agx_init_client_output_close(l);
            return r;
        }
    }
    return 0;
}

static size_t read_tail(const struct agx_init_client_output *l, unsigned i, char *out, size_t size)
{
    struct agx_caplog_piece piece = { 0 };
    uint64_t at = 0;
    size_t len = 0;

    if (agx_caplog_read(l->fds[2 * i], l->fds[2 * i + 1], 0, NULL, 0, &piece, NULL) < 0)
        return 0;
    at = piece.total > size ? piece.total - size : 0;
    while (len < size &&
           agx_caplog_read(l->fds[2 * i], l->fds[2 * i + 1], at, (uint8_t *)out + len, size - len,
                           &piece, NULL) == 0 &&
           piece.len > 0) {
        len += piece.len;
        at += piece.skipped + piece.len;
    }
    return len;
}

char *agx_init_client_output_tail(const struct agx_init_client_output *l)
{
    char text[RUN_LOG_MAX];
    size_t n = read_tail(l, 1, text, sizeof(text));

    if (n == 0)
        n = read_tail(l, 0, text, sizeof(text));
    while (n > 0 && text[n - 1] == '\n')
        n--;
    return agx_str_dup(agx_str_bytes(text, n));
}

/* The writer of a stream; NULL: there is none. */
static struct agx_caplog *open_log(struct agx_init_client_output *l, unsigned i)
{
    if (!l->writes[i] && l->fds[2 * i] >= 0)
        l->writes[i] = agx_caplog_init(&l->writers[i], l->fds[2 * i], l->fds[2 * i + 1],
                                       l->head_max[i], l->tail_max[i]) == 0;
    return l->writes[i] ? &l->writers[i] : NULL;
}

uint64_t agx_init_client_output_total(struct agx_init_client_output *l, unsigned i)
{
    const struct agx_caplog *log = open_log(l, i);

    return log ? log->index.total : 0;
}

/* Skips what we have already; leaves out what init dropped while it was not connected. */
void agx_init_client_output_put(struct agx_init_client_output *l, const struct agx_init_msg *m)
{
    struct agx_caplog *log = open_log(l, m->flags & AGX_INIT_ERR ? 1 : 0);
    struct agx_str bytes = m->data;

    if (!log)
        return;
    if (m->offset > log->index.total)
        agx_caplog_skip(log, m->offset - log->index.total);
    else
        bytes = agx_str_skip(bytes, (size_t)AGX_MIN(log->index.total - m->offset, bytes.len));
    agx_caplog_append(log, bytes);
    if (m->flags & AGX_INIT_EOF)
        agx_caplog_finish(log);
}

/* Writes only the end mark of what init wrote: unrolling a large ring would block the loop's
 * thread, and readers see no difference. */
void agx_init_client_output_end(struct agx_init_client_output *l)
{
    for (unsigned i = 0; i < 2; i++) {
        const bool ours = l->writes[i];
        struct agx_caplog *log = open_log(l, i);

        if (log && ours)
            agx_caplog_finish(log);
        else if (log)
            agx_caplog_end(log);
    }
}

void agx_init_client_output_close(struct agx_init_client_output *l)
{
    for (unsigned i = 0; i < AGX_INIT_FDS_MAX; i++) {
        agx_closep(&l->fds[i]);
        l->fds[i] = -1;
    }
    l->writes[0] = l->writes[1] = false;
}
