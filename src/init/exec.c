/*
 * exec.c: the records of commands, and starting commands.
 *
 * A hash table finds a record by its id. A record stays until the daemon has stored the command's
 * end. If all records are in use, a start is refused, and no record is lost.
 */
#include "init/pid1.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "base/banned.h"

enum {
    /* Logs that init keeps itself take memory of the sandbox until FORGET. The limits allow for a
     * restart of the daemon, but not for very many commands at once. */
    KEPT_HEAD = 64 << 10,
    KEPT_TAIL = 512 << 10,
    KEPT_RUNS = 256,
    DEFAULT_UMASK = 022,
};

static unsigned bucket_of(struct agx_str id)
{
    /* The daemon chooses the ids, so the key need not be secret. */
    const struct agx_siphash_key key = { 0 };

    return (unsigned)(agx_siphash(key, id) % PID1_BUCKETS);
}

void agx_pid1_execs_init(struct agx_pid1 *p, unsigned max)
{
    p->cmds_max = max;
    memset(p->buckets, 0xff, sizeof(p->buckets));
    p->owing_head = p->owing_tail = PID1_NONE;
    /* Records enter these lists only after their first use: touching all of them would cost every
     * sandbox a megabyte, and half a millisecond of its start. */
    p->exec_free = p->job_free = PID1_NONE;
    for (unsigned i = 0; i < PID1_LEFTOVERS_MAX; i++)
        p->leftovers[i] = -1;
}

struct agx_pid1_exec *agx_pid1_exec_find(struct agx_pid1 *p, struct agx_str id)
{
    for (uint16_t i = p->buckets[bucket_of(id)]; i != PID1_NONE; i = p->execs[i].hash_next) {
        struct agx_pid1_exec *c = &p->execs[i];

        if (agx_str_eq((struct agx_str){ c->id, c->id_len }, id))
            return c;
    }
    return NULL;
}

struct agx_pid1_run *agx_pid1_exec_run(struct agx_pid1 *p, const struct agx_pid1_exec *c)
{
    return c->run == PID1_NONE ? NULL : &p->runs[c->run];
}

static struct agx_pid1_exec *take_record(struct agx_pid1 *p, struct agx_str id)
{
    const bool used_before = p->exec_free != PID1_NONE;
    uint16_t *bucket = &p->buckets[bucket_of(id)];
    uint16_t index = used_before ? p->exec_free : (uint16_t)p->cmds_high++;
    struct agx_pid1_exec *c = &p->execs[index];

    if (used_before)
        p->exec_free = c->hash_next;
    p->n_cmds++;
    *c = (struct agx_pid1_exec){ .state = EXEC_STARTING,
                                 .id_len = (uint8_t)id.len,
                                 .run = PID1_NONE,
                                 .epoch = p->epoch,
                                 .hash_next = *bucket };
    memcpy(c->id, id.ptr, id.len);
    *bucket = index;
    return c;
}

static void unlink_record(struct agx_pid1 *p, const struct agx_pid1_exec *c)
{
    const unsigned bucket = bucket_of((struct agx_str){ c->id, c->id_len });
    const uint16_t index = (uint16_t)(c - p->execs);
    uint16_t at = p->buckets[bucket];

    if (at == index) {
        p->buckets[bucket] = c->hash_next;
        return;
    }
    while (p->execs[at].hash_next != index)
        at = p->execs[at].hash_next;
    p->execs[at].hash_next = c->hash_next;
}

void agx_pid1_exec_forget(struct agx_pid1 *p, struct agx_pid1_exec *c)
{
    c->forget = c->queued;
    if (c->forget)
        return;
    if (c->run != PID1_NONE)
        agx_pid1_run_release(p, &p->runs[c->run]);
    unlink_record(p, c);
    c->state = EXEC_FREE;
    c->hash_next = p->exec_free;
    p->exec_free = (uint16_t)(c - p->execs);
    p->n_cmds--;
}

static struct agx_pid1_run *take_job(struct agx_pid1 *p)
{
    const bool used_before = p->job_free != PID1_NONE;
    struct agx_pid1_run *j = &p->runs[used_before ? p->job_free : p->jobs_high++];

    if (used_before)
        p->job_free = j->next_free;
    p->n_jobs++;
    j->used = true;
    j->exec = NULL;
    j->in_fd = j->out_fd = j->err_fd = j->report_fd = -1;
    j->reaped = j->tty = j->input_eof = j->input_watched = false;
    j->kill_at_ms = 0;
    j->input_at = j->input_len = 0;
    j->log_pump.wake_fd = -1;
    for (unsigned i = 0; i < AGX_LOG_PUMP_STREAMS; i++) {
        j->log_pump.streams[i].fd = j->log_pump.streams[i].data_fd =
            j->log_pump.streams[i].index_fd = -1;
        j->log_pump.streams[i].paced = false;
        j->sent[i] = 0;
        j->sent_eof[i] = false;
    }
    return j;
}

/* Its log_pump is done, or was never started. */
void agx_pid1_run_release(struct agx_pid1 *p, struct agx_pid1_run *j)
{
    agx_close_fd(&j->in_fd);
    agx_close_fd(&j->out_fd);
    agx_close_fd(&j->err_fd);
    agx_close_fd(&j->report_fd);
    agx_close_fd(&j->log_pump.wake_fd);
    for (unsigned i = 0; i < AGX_LOG_PUMP_STREAMS; i++) {
        agx_close_fd(&j->log_pump.streams[i].data_fd);
        agx_close_fd(&j->log_pump.streams[i].index_fd);
    }
    if (j->exec)
        j->exec->run = PID1_NONE;
    j->used = false;
    j->next_free = p->job_free;
    p->job_free = (uint16_t)(j - p->runs);
    p->n_jobs--;
}

/* The new process's ends; init closes its copies after the fork. */
struct ends {
    int in, out, err, report;
};

static void close_ends(struct ends *e)
{
    agx_closep(&e->in);
    if (e->out != e->in)
        agx_closep(&e->out);
    if (e->err != e->in)
        agx_closep(&e->err);
    agx_closep(&e->report);
}

/* A pipe; the end `ours` is non-blocking. `to_child`: the new process reads the other end. */
static bool make_pipe(int *ours, int *theirs, bool to_child)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) < 0)
        return false;
    *ours = fds[to_child];
    *theirs = fds[!to_child];
    return fcntl(*ours, F_SETFL, O_NONBLOCK) == 0;
}

/* A terminal of the sandbox, by the directory that was there before any code of it ran. */
static bool make_terminal(struct agx_pid1 *p, struct agx_pid1_run *j, const struct agx_init_msg *m,
                          struct ends *e)
{
    const struct winsize size = { .ws_row = (unsigned short)m->rows,
                                  .ws_col = (unsigned short)m->cols };
    int unlock = 0;

    j->tty = true;
    j->out_fd = openat(p->pts_fd, "ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    if (j->out_fd < 0 || ioctl(j->out_fd, TIOCSPTLCK, &unlock) < 0)
        return false;
    e->in = e->out = e->err = ioctl(j->out_fd, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    j->in_fd = fcntl(j->out_fd, F_DUPFD_CLOEXEC, 0);
    return e->in >= 0 && j->in_fd >= 0 && ioctl(j->out_fd, TIOCSWINSZ, &size) == 0;
}

static bool make_pipes(struct agx_pid1 *p, struct agx_pid1_run *j, const struct agx_init_msg *m,
                       struct ends *e)
{
    if (!make_pipe(&j->out_fd, &e->out, false) || !make_pipe(&j->err_fd, &e->err, false))
        return false;
    if (m->flags & AGX_INIT_STDIN)
        return make_pipe(&j->in_fd, &e->in, true);
    e->in = fcntl(p->null_fd, F_DUPFD_CLOEXEC, 0);
    return e->in >= 0;
}

/* The logs: descriptors of the daemon, or in memory if the channel cannot pass descriptors. */
static bool set_log(struct agx_pid1 *p, struct agx_log_pump_stream *s, int *fds)
{
    s->paced = p->channel.stdio;
    if (!s->paced) {
        s->data_fd = AGX_TAKE_FD(fds[0]);
        s->index_fd = AGX_TAKE_FD(fds[1]);
        return true;
    }
    s->data_fd = memfd_create("log", MFD_CLOEXEC);
    s->index_fd = memfd_create("index", MFD_CLOEXEC);
    return s->data_fd >= 0 && s->index_fd >= 0;
}

static bool set_logs(struct agx_pid1 *p, struct agx_pid1_run *j, const struct agx_init_msg *m,
                     int *fds)
{
    struct agx_log_pump_stream *out = &j->log_pump.streams[AGX_LOG_PUMP_OUT];
    struct agx_log_pump_stream *err = &j->log_pump.streams[AGX_LOG_PUMP_ERR];

    out->head_max = p->channel.stdio ? KEPT_HEAD : m->out_head;
    out->tail_max = p->channel.stdio ? KEPT_TAIL : m->out_tail;
    err->head_max = p->channel.stdio ? KEPT_HEAD : m->err_head;
    err->tail_max = p->channel.stdio ? KEPT_TAIL : m->err_tail;
    return set_log(p, out, fds) && (j->tty || set_log(p, err, fds + 2));
}

/* Everything that needs a descriptor or a thread. */
static bool exec_prepare(struct agx_pid1 *p, struct agx_pid1_run *j, const struct agx_init_msg *m,
                         int *fds, struct ends *e)
{
    bool tty = m->flags & AGX_INIT_TTY;

    if (!(tty ? make_terminal(p, j, m, e) : make_pipes(p, j, m, e)))
        return false;
    if (!make_pipe(&j->report_fd, &e->report, false) || !set_logs(p, j, m, fds))
        return false;
    j->log_pump.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (j->log_pump.wake_fd < 0 ||
        !agx_pid1_watch(p, j->report_fd, EPOLLIN, SOURCE_REPORT, (unsigned)(j - p->runs)))
        return false;
    j->log_pump.streams[AGX_LOG_PUMP_OUT].fd = j->out_fd;
    j->log_pump.streams[AGX_LOG_PUMP_ERR].fd = j->err_fd;
    j->log_pump.notify_fd = p->notify_fd[1];
    j->log_pump.tag = (uint16_t)(j - p->runs);
    return true;
}

static pid_t fork_command(struct agx_pid1 *p, const struct agx_pid1_run *j,
                          const struct agx_init_msg *m, const struct ends *e)
{
    const struct agx_spawn s = {
        .in_fd = e->in,
        .out_fd = e->out,
        .err_fd = e->err,
        .tty = j->tty,
        .report_fd = e->report,
        .user = m->user,
        .user_until_ms = p->users_until_ms,
        .groups = p->groups,
        .cwd = m->cwd.len > 0 ? m->cwd : AGX_STR("/"),
        .umask = m->flags & AGX_INIT_UMASK ? (mode_t)m->umask : DEFAULT_UMASK,
        .rlimits = &m->rlimits,
        .argv = m->argv,
        .env = m->env,
        .base_env = m->flags & AGX_INIT_INHERIT ? p->base_env : NULL,
    };

    return agx_spawn(&s);
}

static bool exec_refuse(uint32_t *ret_code, char *text, enum agx_code code, const char *fmt, ...)
    AGX_PRINTF(4, 5);
static bool exec_refuse(uint32_t *ret_code, char *text, enum agx_code code, const char *fmt, ...)
{
    va_list args;

    *ret_code = code;
    va_start(args, fmt);
    (void)vsnprintf(text, AGX_INIT_TEXT_MAX, fmt, args);
    va_end(args);
    return false;
}

static bool may_start(const struct agx_pid1 *p, const struct agx_init_msg *m, size_t n_fds,
                      uint32_t *ret_code, char *text)
{
    const size_t want = p->channel.stdio ? 0 : m->flags & AGX_INIT_TTY ? 2 : 4;

    if (p->ending)
        return exec_refuse(ret_code, text, AGX_UNAVAILABLE, "the sandbox is ending");
    if (p->n_cmds == p->cmds_max)
        return exec_refuse(ret_code, text, AGX_RESOURCE_EXHAUSTED,
                           "the limit of %u remembered commands is reached", p->n_cmds);
    if (p->n_jobs == PID1_JOBS_MAX || (p->channel.stdio && p->n_jobs >= KEPT_RUNS))
        return exec_refuse(ret_code, text, AGX_RESOURCE_EXHAUSTED,
                           "the limit of %u running commands is reached", p->n_jobs);
    if (n_fds < want)
        return exec_refuse(ret_code, text, AGX_RESOURCE_EXHAUSTED,
                           "%zu of %zu descriptors of the logs arrived", n_fds, want);
    if ((m->flags & AGX_INIT_TTY) && p->pts_fd < 0)
        return exec_refuse(ret_code, text, AGX_FAILED_PRECONDITION, "there is no /dev/pts");
    return true;
}

bool agx_pid1_exec_start(struct agx_pid1 *p, const struct agx_init_msg *m, int *fds, size_t n_fds,
                         uint32_t *ret_code, char ret_text[AGX_INIT_TEXT_MAX])
{
    struct ends ends = { -1, -1, -1, -1 };
    const char *what = "descriptors";
    bool moving = false;
    struct agx_pid1_run *j;
    int fault;

    if (!may_start(p, m, n_fds, ret_code, ret_text))
        return false;
    j = take_job(p);
    if (exec_prepare(p, j, m, fds, &ends)) {
        what = "a thread";
        moving = agx_log_pump_start(&j->log_pump);
    }
    if (moving) {
        what = "a process";
        j->pid = fork_command(p, j, m, &ends);
    }
    fault = errno;
    close_ends(&ends);
    if (moving && j->pid > 0) {
        j->exec = take_record(p, m->id);
        j->exec->run = (uint16_t)(j - p->runs);
        return true;
    }
    if (moving)
        agx_log_pump_finish(&j->log_pump); /* the end of the log pump releases the run */
    else
        agx_pid1_run_release(p, j);
    return exec_refuse(ret_code, ret_text, AGX_RESOURCE_EXHAUSTED, "%s for the command: %s", what,
                       strerror(fault));
}

void agx_pid1_exec_reported(struct agx_pid1 *p, struct agx_pid1_run *j)
{
    struct agx_pid1_exec *c = j->exec;
    ssize_t n = read(j->report_fd, &j->report, sizeof(j->report));

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    agx_close_fd(&j->report_fd);
    if (!c || c->state != EXEC_STARTING)
        return;
    if (n == (ssize_t)sizeof(j->report)) {
        j->report.text[sizeof(j->report.text) - 1] = '\0';
        c->state = EXEC_REFUSING;
        return;
    }
    c->state = EXEC_RUNNING;
    agx_dispatch_owe(p, c, EXEC_OWES_STARTED);
}
