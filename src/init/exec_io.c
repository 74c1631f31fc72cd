/* exec_io.c: a command's input, its output if init keeps the logs, and leftover pipes. */
#include "init/pid1.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>

#include "base/banned.h"

static void taken(struct agx_pid1 *p, struct agx_pid1_exec *c, enum agx_code code)
{
    c->taken_code = code;
    agx_dispatch_owe(p, c, EXEC_OWES_TAKEN);
}

void agx_pid1_exec_close_input(struct agx_pid1 *p, struct agx_pid1_run *j)
{
    if (j->input_watched) /* a terminal's duplicate stays open, and so would the watch */
        (void)epoll_ctl(p->epoll_fd, EPOLL_CTL_DEL, j->in_fd, NULL);
    j->input_watched = false;
    agx_close_fd(&j->in_fd);
    if (j->input_len == 0 && !j->input_eof)
        return;
    j->input_len = 0;
    j->input_eof = false;
    taken(p, j->exec, AGX_NOT_FOUND);
}

/* All is written: the end of a terminal's input is a character. */
static void input_done(struct agx_pid1 *p, struct agx_pid1_run *j)
{
    bool eof = j->input_eof;

    j->input_len = j->input_at = 0;
    j->input_eof = false;
    if (j->input_watched)
        (void)epoll_ctl(p->epoll_fd, EPOLL_CTL_DEL, j->in_fd, NULL);
    j->input_watched = false;
    if (eof && j->tty)
        (void)!write(j->in_fd, "\x04", 1);
    else if (eof)
        agx_close_fd(&j->in_fd);
    taken(p, j->exec, AGX_OK);
}

void agx_pid1_exec_feed(struct agx_pid1 *p, struct agx_pid1_run *j)
{
    unsigned index = (unsigned)(j - p->runs);

    if (j->in_fd < 0)
        return;
    while (j->input_at < j->input_len) {
        ssize_t n = write(j->in_fd, p->inputs[index] + j->input_at, j->input_len - j->input_at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) {
            if (!j->input_watched)
                j->input_watched = agx_pid1_watch(p, j->in_fd, EPOLLOUT, SOURCE_INPUT, index);
            if (j->input_watched)
                return;
        }
        if (n < 0) {
            agx_pid1_exec_close_input(p, j);
            return;
        }
        j->input_at += (size_t)n;
    }
    input_done(p, j);
}

void agx_pid1_exec_input(struct agx_pid1 *p, struct agx_pid1_exec *c, const struct agx_init_msg *m)
{
    struct agx_pid1_run *j = agx_pid1_exec_run(p, c);

    if (!j || j->in_fd < 0) {
        taken(p, c, AGX_NOT_FOUND);
        return;
    }
    if (j->input_len > 0 || j->input_eof) /* the next piece comes after TAKEN */
        return;
    if (m->data.len > 0)
        memcpy(p->inputs[j - p->runs], m->data.ptr, m->data.len);
    j->input_at = 0;
    j->input_len = m->data.len;
    j->input_eof = m->flags & AGX_INIT_EOF;
    agx_pid1_exec_feed(p, j);
}

void agx_pid1_exec_resize(struct agx_pid1 *p, struct agx_pid1_exec *c, uint32_t rows, uint32_t cols)
{
    const struct winsize size = { .ws_row = (unsigned short)rows, .ws_col = (unsigned short)cols };
    const struct agx_pid1_run *j = agx_pid1_exec_run(p, c);

    if (j && j->tty && j->out_fd >= 0)
        (void)ioctl(j->out_fd, TIOCSWINSZ, &size);
}

static enum agx_push push_stream(struct agx_pid1 *p, struct agx_pid1_run *j, unsigned i)
{
    static uint8_t piece[AGX_INIT_DATA_MAX];
    const struct agx_log_pump_stream *s = &j->log_pump.streams[i];
    bool done = atomic_load(&j->log_pump.done); /* loaded before the read: no bytes follow then */
    struct agx_init_msg m = { .kind = AGX_INIT_OUTPUT,
                              .id = { j->exec->id, j->exec->id_len },
                              .flags = i == AGX_LOG_PUMP_ERR ? AGX_INIT_ERR : 0 };
    struct agx_caplog_piece got;

    if (s->data_fd < 0 || j->sent_eof[i])
        return PUSH_DONE;
    if (agx_caplog_read(s->data_fd, s->index_fd, j->sent[i], piece, sizeof(piece), &got, NULL) < 0)
        return PUSH_DONE;
    m.offset = j->sent[i] + got.skipped;
    m.data = agx_str_bytes(piece, got.len);
    if (done && m.offset + got.len >= got.total)
        m.flags |= AGX_INIT_EOF;
    else if (got.len == 0)
        return PUSH_DONE;
    if (!agx_channel_send(p, &m))
        return PUSH_BLOCKED;
    j->sent[i] = m.offset + got.len;
    j->sent_eof[i] = m.flags & AGX_INIT_EOF;
    if (!done)
        agx_log_pump_saw(&j->log_pump, i, j->sent[i]);
    return j->sent_eof[i] ? PUSH_DONE : PUSH_MORE;
}

enum agx_push agx_pid1_exec_push(struct agx_pid1 *p, struct agx_pid1_exec *c)
{
    struct agx_pid1_run *j = agx_pid1_exec_run(p, c);
    enum agx_push all = PUSH_DONE;

    for (unsigned i = 0; j && i < AGX_LOG_PUMP_STREAMS; i++) {
        enum agx_push r = push_stream(p, j, i);

        if (r == PUSH_BLOCKED)
            return r;
        if (r == PUSH_MORE)
            all = r;
    }
    return all;
}

/* A process that left the session of a command may still write to its output. Its bytes are
 * dropped, but it must not die of SIGPIPE. Past the limit the oldest pipe is closed. */
void agx_leftover_keep(struct agx_pid1 *p, int fd)
{
    struct pollfd poll_one = { .fd = fd, .events = 0 };
    unsigned index = p->leftover_next;

    if (fd < 0)
        return;
    if (poll(&poll_one, 1, 0) == 1 && (poll_one.revents & POLLHUP)) { /* it has no writers */
        agx_closep(&fd);
        return;
    }
    for (unsigned i = 0; i < PID1_LEFTOVERS_MAX && p->leftovers[index] >= 0; i++)
        index = (index + 1) % PID1_LEFTOVERS_MAX;
    agx_close_fd(&p->leftovers[index]);
    p->leftover_next = (index + 1) % PID1_LEFTOVERS_MAX;
    if (agx_pid1_watch(p, fd, EPOLLIN, SOURCE_LEFTOVER, index))
        p->leftovers[index] = fd;
    else
        agx_closep(&fd);
}

void agx_leftover_read(struct agx_pid1 *p, unsigned index)
{
    static char dropped[64 << 10];
    ssize_t n = read(p->leftovers[index], dropped, sizeof(dropped));

    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        agx_close_fd(&p->leftovers[index]);
}
