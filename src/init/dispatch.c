/*
 * dispatch.c: the daemon's requests, and the messages to it.
 *
 * There is no queue of messages. Messages that are due for a command are a few bits of its record,
 * and a pending reply that belongs to no record stops reading until it is sent. So a daemon that
 * does not read costs no memory, whatever it requests.
 */
#include "init/pid1.h"

#include <signal.h>
#include <stdio.h>

#include "base/banned.h"

enum { SENDS_TURN = 64 }; /* then other work gets its turn */

static void set_reply(struct agx_pid1 *p, enum agx_init_kind kind, struct agx_str id)
{
    struct agx_reply *r = &p->reply;

    memcpy(r->id, id.ptr, id.len);
    r->msg = (struct agx_init_msg){ .kind = kind, .id = { r->id, id.len } };
    r->due = true;
}

/* The newest daemon wins. It asks for the commands that it knows; nothing is reported unasked. */
static void on_hello(struct agx_pid1 *p, const struct agx_init_msg *m)
{
    while (p->owing_head != PID1_NONE) {
        struct agx_pid1_exec *c = &p->execs[p->owing_head];

        p->owing_head = c->owing_next;
        c->queued = false;
        c->owes = 0;
        if (c->forget || c->state == EXEC_REFUSED)
            agx_pid1_exec_forget(p, c);
    }
    p->owing_tail = PID1_NONE;
    p->epoch++;
    p->reply = (struct agx_reply){
        .due = true,
        .msg = { .kind = AGX_INIT_WELCOME,
                 .nonce = m->nonce,
                 .pid = (uint32_t)getpid(),
                 .running = p->n_jobs,
                 .held = p->n_cmds },
    };
}

void agx_dispatch_owe(struct agx_pid1 *p, struct agx_pid1_exec *c, unsigned what)
{
    uint16_t index = (uint16_t)(c - p->execs);

    if (c->epoch != p->epoch)
        return;
    c->owes |= (uint8_t)what;
    if (c->queued)
        return;
    c->queued = true;
    c->owing_next = PID1_NONE;
    if (p->owing_head == PID1_NONE)
        p->owing_head = index;
    else
        p->execs[p->owing_tail].owing_next = index;
    p->owing_tail = index;
}

/* The daemon asks about a command on this connection: sends its state. */
static void tell_state(struct agx_pid1 *p, struct agx_pid1_exec *c)
{
    c->epoch = p->epoch;
    if (p->channel.stdio && c->state != EXEC_REFUSED)
        agx_dispatch_owe(p, c, EXEC_OWES_OUTPUT);
    if (c->state == EXEC_EXITED)
        agx_dispatch_owe(p, c, EXEC_OWES_EXITED);
    else if (c->state == EXEC_REFUSED)
        agx_dispatch_owe(p, c, EXEC_OWES_REFUSED);
    else if (c->state == EXEC_RUNNING || c->state == EXEC_ENDING || c->state == EXEC_FLUSHING)
        agx_dispatch_owe(p, c, EXEC_OWES_STARTED);
}

void agx_dispatch_refuse(struct agx_pid1 *p, struct agx_str id, enum agx_code code, const char *why)
{
    struct agx_reply *r = &p->reply;

    if (why != r->text)
        (void)snprintf(r->text, sizeof(r->text), "%s", why);
    set_reply(p, AGX_INIT_REFUSED, id);
    r->msg.code = code;
    r->msg.data = agx_str_from(r->text);
}

static void on_start(struct agx_pid1 *p, const struct agx_init_msg *m, int *fds, size_t n_fds)
{
    struct agx_pid1_exec *c = agx_pid1_exec_find(p, m->id);
    char *why = p->reply.text;
    uint32_t code;

    if (c) {
        tell_state(p, c);
        return;
    }
    if (!agx_pid1_exec_start(p, m, fds, n_fds, &code, why))
        agx_dispatch_refuse(p, m->id, (enum agx_code)code, why);
}

static void on_query(struct agx_pid1 *p, struct agx_pid1_exec *c, const struct agx_init_msg *m)
{
    struct agx_pid1_run *j;

    if (!c) {
        set_reply(p, AGX_INIT_UNKNOWN, m->id);
        return;
    }
    j = agx_pid1_exec_run(p, c);
    if (j && p->channel.stdio) {
        j->sent[AGX_LOG_PUMP_OUT] = m->offset;
        j->sent[AGX_LOG_PUMP_ERR] = m->err_offset;
        j->sent_eof[AGX_LOG_PUMP_OUT] = j->sent_eof[AGX_LOG_PUMP_ERR] = false;
    }
    tell_state(p, c);
}

static void on_kill(struct agx_pid1 *p, struct agx_pid1_exec *c, const struct agx_init_msg *m)
{
    if (!c) {
        set_reply(p, AGX_INIT_GONE, m->id);
        return;
    }
    c->epoch = p->epoch;
    if (c->state == EXEC_EXITED || c->state == EXEC_REFUSED)
        agx_dispatch_owe(p, c, EXEC_OWES_GONE);
    else
        agx_pid1_exec_kill(p, c, m->grace_ms);
}

static void on_signal(struct agx_pid1 *p, const struct agx_pid1_exec *c, uint32_t signo)
{
    const struct agx_pid1_run *j = c ? agx_pid1_exec_run(p, c) : NULL;

    if (j && c->state < EXEC_FLUSHING && signo < NSIG)
        (void)kill(-j->pid, (int)signo);
}

static void on_input(struct agx_pid1 *p, struct agx_pid1_exec *c, const struct agx_init_msg *m)
{
    if (c) {
        c->epoch = p->epoch;
        agx_pid1_exec_input(p, c, m);
        return;
    }
    set_reply(p, AGX_INIT_TAKEN, m->id);
    p->reply.msg.code = AGX_NOT_FOUND;
}

static void on_stop(struct agx_pid1 *p, uint64_t grace_ms)
{
    if (p->main_pid == 0) {
        agx_pid1_end(p, 0);
        return;
    }
    (void)kill(p->main_pid, SIGTERM);
    agx_pid1_kill_main_in(p, grace_ms);
}

void agx_dispatch(struct agx_pid1 *p, const struct agx_init_msg *m, int *fds, size_t n_fds)
{
    struct agx_pid1_exec *c = m->id.len > 0 ? agx_pid1_exec_find(p, m->id) : NULL;

    switch (m->kind) {
    case AGX_INIT_HELLO:
        on_hello(p, m);
        break;
    case AGX_INIT_START:
        on_start(p, m, fds, n_fds);
        break;
    case AGX_INIT_QUERY:
        on_query(p, c, m);
        break;
    case AGX_INIT_KILL:
        on_kill(p, c, m);
        break;
    case AGX_INIT_SIGNAL:
        on_signal(p, c, m->signo);
        break;
    case AGX_INIT_INPUT:
        on_input(p, c, m);
        break;
    case AGX_INIT_RESIZE:
        if (c)
            agx_pid1_exec_resize(p, c, m->rows, m->cols);
        break;
    case AGX_INIT_FORGET:
        if (c && c->state == EXEC_EXITED)
            agx_pid1_exec_forget(p, c);
        break;
    case AGX_INIT_STOP:
        on_stop(p, m->grace_ms);
        break;
    case AGX_INIT_GO:
        agx_pid1_go(p);
        break;
    default: /* sent only by init */
        break;
    }
}

static bool send_exited(struct agx_pid1 *p, const struct agx_pid1_exec *c)
{
    const struct agx_init_msg m = { .kind = AGX_INIT_EXITED,
                                    .id = { c->id, c->id_len },
                                    .exit_code = c->exit_code,
                                    .signo = c->signo,
                                    .usage = c->usage };

    return agx_channel_send(p, &m);
}

static bool send_refused(struct agx_pid1 *p, const struct agx_pid1_exec *c)
{
    const struct agx_spawn_report *r = &agx_pid1_exec_run(p, c)->report;
    const struct agx_init_msg m = { .kind = AGX_INIT_REFUSED,
                                    .id = { c->id, c->id_len },
                                    .code = r->code,
                                    .data = agx_str_from(r->text) };

    return agx_channel_send(p, &m);
}

static bool send_one(struct agx_pid1 *p, struct agx_pid1_exec *c, unsigned what)
{
    struct agx_init_msg m = { .id = { c->id, c->id_len } };

    switch (what) {
    case EXEC_OWES_STARTED:
        m.kind = AGX_INIT_STARTED;
        break;
    case EXEC_OWES_TAKEN:
        m.kind = AGX_INIT_TAKEN;
        m.code = c->taken_code;
        break;
    case EXEC_OWES_REFUSED:
        return send_refused(p, c);
    case EXEC_OWES_EXITED:
        return send_exited(p, c);
    default:
        m.kind = AGX_INIT_GONE;
    }
    return agx_channel_send(p, &m);
}

/* Sends whatever can be sent now. PUSH_MORE: others first. */
static enum agx_push dispatch_settle(struct agx_pid1 *p, struct agx_pid1_exec *c)
{
    while (c->owes) {
        unsigned what = c->owes & -(unsigned)c->owes;
        enum agx_push r = PUSH_DONE;

        if (what == EXEC_OWES_OUTPUT)
            r = agx_pid1_exec_push(p, c);
        else if (!send_one(p, c, what))
            r = PUSH_BLOCKED;
        if (r != PUSH_DONE)
            return r;
        c->owes &= (uint8_t)~what;
        if (c->epoch != p->epoch)
            c->owes = 0; /* the daemon has gone meanwhile */
    }
    return PUSH_DONE;
}

static void flush_first(struct agx_pid1 *p)
{
    struct agx_pid1_exec *c = &p->execs[p->owing_head];
    enum agx_push r = dispatch_settle(p, c);
    unsigned left = c->owes;

    if (r == PUSH_BLOCKED)
        return;
    p->owing_head = c->owing_next;
    if (p->owing_head == PID1_NONE)
        p->owing_tail = PID1_NONE;
    c->queued = false;
    c->owes = 0;
    if (left)
        agx_dispatch_owe(p, c, left);
    else if (c->forget || c->state == EXEC_REFUSED)
        agx_pid1_exec_forget(p, c); /* a refused command is not remembered */
}

void agx_dispatch_flush(struct agx_pid1 *p)
{
    if (p->reply.due && agx_channel_send(p, &p->reply.msg))
        p->reply.due = false;
    for (unsigned i = 0; i < SENDS_TURN && agx_dispatch_can_send(p); i++)
        flush_first(p);
}

bool agx_dispatch_can_send(const struct agx_pid1 *p)
{
    return !p->reply.due && !p->channel.blocked && p->owing_head != PID1_NONE;
}
