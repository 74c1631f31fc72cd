/*
 * mainlog.c: the main process's output, both streams in the order of arrival, in one capped log.
 * The plan names its place; its files were opened before any code of the sandbox ran.
 */
#include "init/pid1.h"

#include <fcntl.h>
#include <sys/eventfd.h>

#include "base/banned.h"

static void close_all(struct agx_log_pump *m)
{
    agx_close_fd(&m->streams[AGX_LOG_PUMP_OUT].fd);
    agx_close_fd(&m->streams[AGX_LOG_PUMP_OUT].data_fd);
    agx_close_fd(&m->streams[AGX_LOG_PUMP_OUT].index_fd);
    agx_close_fd(&m->wake_fd);
}

/* Our end of a pipe is non-blocking; the other end is the main process's. */
static int make_pipe(struct agx_log_pump_stream *s)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) < 0)
        return -1;
    s->fd = fds[0];
    if (fcntl(fds[0], F_SETFL, O_NONBLOCK) == 0)
        return fds[1];
    agx_closep(&fds[1]);
    return -1;
}

int agx_mainlog_start(struct agx_pid1 *p, const struct agx_planned *planned)
{
    struct agx_log_pump *m = &p->main_log_pump;
    struct agx_log_pump_stream *s = &m->streams[AGX_LOG_PUMP_OUT];
    int theirs;

    if (planned->log_fds[0] < 0)
        return -1;
    *s = (struct agx_log_pump_stream){ .fd = -1,
                                       .data_fd = planned->log_fds[0],
                                       .index_fd = planned->log_fds[1],
                                       .head_max = planned->plan.log_head,
                                       .tail_max = planned->plan.log_tail };
    m->streams[AGX_LOG_PUMP_ERR] =
        (struct agx_log_pump_stream){ .fd = -1, .data_fd = -1, .index_fd = -1 };
    m->notify_fd = p->notify_fd[1];
    m->tag = PID1_NONE;
    m->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    theirs = m->wake_fd >= 0 ? make_pipe(s) : -1;
    p->main_moves = theirs >= 0 && agx_log_pump_start(m);
    if (p->main_moves)
        return theirs;
    agx_closep(&theirs);
    close_all(m);
    return -1;
}

void agx_mainlog_finish(struct agx_pid1 *p)
{
    if (p->main_moves)
        agx_log_pump_finish(&p->main_log_pump);
}

bool agx_mainlog_busy(const struct agx_pid1 *p)
{
    return p->main_moves && !atomic_load(&p->main_log_pump.done);
}
