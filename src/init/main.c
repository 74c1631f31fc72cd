/*
 * main.c: agentix-init: options, the main process, the loop.
 *
 *     agentix-init [--control pidfd|stdio] [--user USER] [--groups LIST] [--keep-home]
 *                  [--await-user MS] [--await-go] [--commands N] [--no-suid]
 *                  [-- COMMAND ARGUMENT...]
 *     agentix-init --gate FD PROGRAM [ARGUMENT...]
 *     agentix-init --hold FD
 *     agentix-init --nssets FD [SETTING=VALUE...]
 *     agentix-init --plan FD
 *
 * As PID 1 it ends when the main process does, with its exit code; the kernel then kills all other
 * processes.
 */
#include "init/pid1.h"

#include "base/clock.h"
#include "base/user.h"
#include "init/gate.h"
#include "init/hold.h"
#include "init/nsset_server.h"
#include "init/plan.h"
#include "init/suid.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/banned.h"

enum {
    EXIT_USAGE = 125, /* as an engine reports that it could not even begin */
    EVENTS_TURN = 64,
    REAPS_TURN = 1024, /* then other work gets its turn */
    ENDING_MS = 2000,  /* for logs and reports after the sandbox's end: an engine waits longer */
    AWAIT_USER_MAX_MS = 60 * 1000, /* no entrypoint takes longer to add a user */
};

struct options {
    bool stdio, keep_home, no_suid;
    bool await_go; /* the main process waits for the daemon's GO */
    const char *user, *groups, *cwd;
    unsigned commands;
    uint64_t await_user_ms; /* since our start: commands wait that long for a user to be added */
    char **argv;            /* NULL: no main process */
    char **env;             /* NULL: init's own */
    const struct agx_planned *planned; /* NULL: there is no plan */
};

static struct agx_pid1 pid1;
static struct options options;

static _Noreturn void die(const char *what, const char *why)
{
    if (pid1.report_fd > 0)
        agx_report_fail(pid1.report_fd, AGX_STAGE_CONTROL, what);
    dprintf(2, "agentix-init: %s: %s\n", what, why);
    _exit(EXIT_USAGE);
}

static _Noreturn void die_errno(const char *what)
{
    die(what, strerror(errno));
}

/* False: not one of our options. */
static bool take_option(struct options *o, const char *name, const char *value)
{
    static struct agx_user nobody;
    uint64_t n;

    if (strcmp(name, "--control") == 0 && value &&
        (strcmp(value, "pidfd") == 0 || strcmp(value, "stdio") == 0))
        o->stdio = value[0] == 's';
    else if (strcmp(name, "--user") == 0 && value)
        o->user = value;
    else if (strcmp(name, "--groups") == 0 && value && agx_user_join(&nobody, agx_str_from(value)))
        o->groups = value;
    else if (strcmp(name, "--commands") == 0 && value &&
             agx_parse_u64(agx_str_from(value), PID1_RECS_MAX, &n) && n > 0)
        o->commands = (unsigned)n;
    else if (strcmp(name, "--await-user") == 0 && value &&
             agx_parse_u64(agx_str_from(value), AWAIT_USER_MAX_MS, &n))
        o->await_user_ms = n;
    else
        return false;
    return true;
}

static int take_descriptor(const char *text)
{
    uint64_t n;

    if (!text || !agx_parse_u64(agx_str_from(text), INT32_MAX, &n) || fcntl((int)n, F_GETFD) < 0)
        die("no such descriptor", text ? text : "");
    (void)fcntl((int)n, F_SETFD, FD_CLOEXEC);
    return (int)n;
}

static void parse_options(struct options *o, int argc, char **argv)
{
    *o = (struct options){ .user = "", .groups = "", .cwd = "", .commands = PID1_RECS_MAX };
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--") == 0) {
            o->argv = argv[i + 1] ? argv + i + 1 : NULL;
            return;
        }
        if (strcmp(argv[i], "--version") == 0) {
            dprintf(1, "agentix-init %s\n", AGX_VERSION);
            _exit(0);
        }
        if (strcmp(argv[i], "--keep-home") == 0)
            o->keep_home = true;
        else if (strcmp(argv[i], "--await-go") == 0)
            o->await_go = true;
        else if (strcmp(argv[i], "--no-suid") == 0)
            o->no_suid = true;
        else if (take_option(o, argv[i], argv[i + 1]))
            i++;
        else
            die("no such option, or a bad value", argv[i]);
    }
}

/* The words of a list, for exec. */
static char **take_words(struct agx_init_list list)
{
    const size_t size = (list.count + 1) * sizeof(char *);
    char **words = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
         **at = words;
    union {
        const char *in;
        char *out; /* exec does not change words, but its type says so */
    } word;

    if (words == MAP_FAILED)
        die_errno("memory for arguments");
    while ((word.in = agx_init_list_next(&list)))
        *at++ = word.out;
    return words;
}

/* We are PID 1 of a sandbox now. */
static void take_plan(struct options *o, const struct agx_planned *planned)
{
    const struct agx_plan *p = &planned->plan;

    pid1.report_fd = planned->report_fd;
    *o = (struct options){
        .keep_home = p->flags & AGX_PLAN_KEEP_HOME,
        .user = p->user.ptr,
        .groups = p->groups.ptr,
        .cwd = p->cwd.ptr,
        .commands = p->commands > 0 ? AGX_MIN(p->commands, (uint32_t)PID1_RECS_MAX) : PID1_RECS_MAX,
        .await_user_ms = AGX_MIN(p->await_user_ms, (uint64_t)AWAIT_USER_MAX_MS),
        .argv = p->argv.count > 0 ? take_words(p->argv) : NULL,
        .env = take_words(p->env),
        .planned = planned,
    };
}

bool agx_pid1_watch(struct agx_pid1 *p, int fd, uint32_t events, enum agx_source source,
                    unsigned index)
{
    struct epoll_event e = { .events = events, .data.u64 = (uint64_t)source << 32 | index };

    return epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, fd, &e) == 0;
}

/* The first three descriptors and the one that daemons take must be in use in any case: no other
 * may get their numbers. */
static void settle_descriptors(void)
{
    int fd;

    do {
        fd = open("/dev/null", O_RDWR);
        if (fd < 0)
            fd = memfd_create("none", 0);
    } while (fd >= 0 && fd < AGX_INIT_CONTROL_FD);
    if (fd > AGX_INIT_CONTROL_FD)
        agx_closep(&fd);
    (void)fcntl(AGX_INIT_CONTROL_FD, F_SETFD, FD_CLOEXEC);
}

/* All signals come by descriptor. SIGPIPE and the like come as errors of our writes. */
static void block_signals(struct agx_pid1 *p)
{
    sigset_t all;

    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN);
    (void)signal(SIGTTIN, SIG_IGN);
    (void)signal(SIGTTOU, SIG_IGN);
    (void)signal(SIGCHLD, SIG_DFL); /* if it was inherited as ignored, no child could be waited
                                     * for */
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, NULL);
    p->signal_fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
    if (p->signal_fd < 0 || !agx_pid1_watch(p, p->signal_fd, EPOLLIN, SOURCE_SIGNAL, 0))
        die_errno("signals");
}

/* Everything that is opened by path is opened here, before any code of the sandbox runs. */
static void open_parts(struct agx_pid1 *p, const struct options *o)
{
    const char *why;

    p->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (p->epoll_fd < 0)
        die_errno("epoll");
    /* First of all: a signal to a PID 1 that neither blocks nor handles it is lost. */
    block_signals(p);
    if (!agx_channel_open(p, o->stdio, &why))
        die("control channel", why);
    if (pipe2(p->notify_fd, O_CLOEXEC) < 0 || fcntl(p->notify_fd[0], F_SETFL, O_NONBLOCK) < 0 ||
        !agx_pid1_watch(p, p->notify_fd[0], EPOLLIN, SOURCE_NOTIFY, 0))
        die_errno("pipe");
    p->null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    p->pts_fd = open("/dev/pts", O_PATH | O_DIRECTORY | O_CLOEXEC);
    p->proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (p->null_fd < 0) { /* an empty pipe reads the same */
        int empty[2];

        if (pipe2(empty, O_CLOEXEC) < 0)
            die_errno("pipe");
        agx_closep(&empty[1]);
        p->null_fd = empty[0];
    }
}

/* The engine sets HOME for init's user, which is not the command's. */
static void set_base_env(struct agx_pid1 *p, const struct options *o)
{
    if (o->env)
        environ = o->env;
    if (!o->keep_home)
        (void)unsetenv("HOME");
    p->base_env = environ;
}

static void start_main(struct agx_pid1 *p, const struct options *o)
{
    mode_t mask = umask(0);
    int log_fd = o->planned && o->argv ? agx_mainlog_start(p, o->planned) : -1;
    const struct agx_spawn s = {
        .in_fd = o->stdio ? p->null_fd : -1,
        .out_fd = o->stdio ? 2 : log_fd, /* stdout is the daemon's channel */
        .err_fd = log_fd,
        .report_fd = -1,
        .is_main = true,
        .user = agx_str_from(o->user),
        .groups = p->groups,
        .cwd = agx_str_from(o->cwd),
        .umask = mask,
        .main_argv = o->argv,
        .base_env = p->base_env,
    };

    (void)umask(mask);
    if (!o->argv)
        return;
    p->main_pid = agx_spawn(&s);
    agx_closep(&log_fd);
    if (p->main_pid < 0)
        die_errno("main process");
}

void agx_pid1_go(struct agx_pid1 *p)
{
    struct options *o = &options;

    if (!o->await_go || p->ending)
        return;
    o->await_go = false;
    p->users_until_ms = agx_clock_ms() + o->await_user_ms;
    start_main(p, o);
}

/* The last report: from here on the daemon uses the control channel. */
static void tell_running(struct agx_pid1 *p)
{
    const struct agx_plan_report running = { .kind = AGX_PLAN_RUNNING };

    if (p->report_fd <= 0)
        return;
    (void)agx_report_send(p->report_fd, &running, NULL, 0);
    agx_closep(&p->report_fd);
    p->report_fd = 0;
}

void agx_pid1_kill_main_in(struct agx_pid1 *p, uint64_t grace_ms)
{
    p->main_kill_at_ms = agx_clock_ms() + AGX_MIN(grace_ms, UINT32_MAX);
}

void agx_pid1_end(struct agx_pid1 *p, int exit_code)
{
    if (p->ending)
        return;
    p->ending = true;
    p->exit_code = exit_code;
    p->ending_until_ms = agx_clock_ms() + ENDING_MS;
    p->main_kill_at_ms = 0;
    if (getpid() == 1)
        (void)kill(-1, SIGKILL); /* every process of this namespace except us */
    agx_mainlog_finish(p);
    for (unsigned i = 0; i < p->jobs_high; i++) {
        if (p->runs[i].used && p->runs[i].exec && p->runs[i].exec->state < EXEC_FLUSHING)
            agx_pid1_exec_kill(p, p->runs[i].exec, 0);
    }
}

static void main_reap(struct agx_pid1 *p)
{
    struct rusage usage;
    unsigned n = 0;
    int status;

    for (; n < REAPS_TURN; n++) {
        pid_t pid = wait4(-1, &status, WNOHANG, &usage);

        if (pid <= 0)
            break;
        if (pid == p->main_pid) {
            p->main_pid = 0;
            agx_pid1_end(p, WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
        } else {
            agx_pid1_exec_reaped(p, pid, status, &usage);
        }
    }
    p->more_dead = n == REAPS_TURN;
    agx_pid1_execs_look(p, agx_clock_ms()); /* the last of a session may have been among them */
}

static void on_signals(struct agx_pid1 *p)
{
    struct signalfd_siginfo info;

    while (read(p->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        int signo = (int)info.ssi_signo;

        if (signo == SIGCHLD)
            continue; /* they coalesce: every turn reaps */
        if (p->main_pid > 0)
            (void)kill(p->main_pid, signo);
        else if (signo == SIGTERM || signo == SIGINT || signo == SIGQUIT)
            agx_pid1_end(p, 0);
    }
}

static void on_notify(struct agx_pid1 *p)
{
    uint16_t tags[256];
    ssize_t n = read(p->notify_fd[0], tags, sizeof(tags));

    for (ssize_t i = 0; i < n / (ssize_t)sizeof(tags[0]); i++)
        if (tags[i] != PID1_NONE) /* PID1_NONE is the main process's: every turn checks it */
            agx_pid1_exec_moved(p, &p->runs[tags[i]]);
}

static void on_event(struct agx_pid1 *p, const struct epoll_event *e)
{
    unsigned index = (unsigned)(e->data.u64 & UINT32_MAX);

    switch ((enum agx_source)(e->data.u64 >> 32)) {
    case SOURCE_SIGNAL:
        on_signals(p);
        break;
    case SOURCE_CHANNEL:
        if (e->events & EPOLLOUT)
            agx_channel_writable(p);
        if (e->events & (EPOLLHUP | EPOLLERR))
            agx_channel_hung_up(p);
        else if (e->events & EPOLLIN)
            agx_channel_readable(p, false);
        break;
    case SOURCE_CHANNEL_OUT:
        if (e->events & EPOLLERR)
            agx_channel_hung_up(p);
        else
            agx_channel_writable(p);
        break;
    case SOURCE_SPARE:
        agx_channel_readable(p, true);
        break;
    case SOURCE_NOTIFY:
        on_notify(p);
        break;
    case SOURCE_REPORT:
        if (p->runs[index].used && p->runs[index].report_fd >= 0)
            agx_pid1_exec_reported(p, &p->runs[index]);
        break;
    case SOURCE_INPUT:
        if (p->runs[index].used && p->runs[index].input_watched)
            agx_pid1_exec_feed(p, &p->runs[index]);
        break;
    case SOURCE_LEFTOVER:
        if (p->leftovers[index] >= 0)
            agx_leftover_read(p, index);
        break;
    }
}

static int wait_ms(const struct agx_pid1 *p)
{
    uint64_t now_ms = agx_clock_ms();

    if (p->more_dead || agx_dispatch_can_send(p) || (p->channel.more && !p->reply.due))
        return 0;
    if (p->ending)
        return 20;
    return agx_pid1_execs_wait_ms(p, now_ms);
}

static bool is_over(const struct agx_pid1 *p)
{
    if (!p->ending)
        return false;
    if (agx_clock_ms() >= p->ending_until_ms)
        return true;
    return !agx_pid1_execs_busy(p) && !agx_mainlog_busy(p) &&
           (p->owing_head == PID1_NONE || p->channel.fd < 0);
}

static void main_turn(struct agx_pid1 *p)
{
    struct epoll_event events[EVENTS_TURN];
    int n = epoll_wait(p->epoll_fd, events, EVENTS_TURN, wait_ms(p));

    for (int i = 0; i < n; i++)
        on_event(p, &events[i]);
    if (p->channel.more && !p->reply.due)
        agx_channel_readable(p, false);
    main_reap(p);
    agx_dispatch_flush(p);
    agx_channel_rest(p);
}

int main(int argc, char **argv)
{
    struct options *o = &options;

    /* First of all: from here on code in the sandbox can neither trace us nor take our
     * descriptors. */
    if (prctl(PR_SET_DUMPABLE, 0) < 0)
        die_errno("become non-dumpable");
    if (argc == 3 && strcmp(argv[1], "--hold") == 0)
        agx_hold_run(take_descriptor(argv[2]));
    if (argc > 3 && strcmp(argv[1], "--gate") == 0)
        agx_gate_run(take_descriptor(argv[2]), argv + 3);
    if (argc > 1 && strcmp(argv[1], "--nssets") == 0)
        agx_nsset_serve(take_descriptor(argv[2]), argv + 3);
    if (argc == 3 && strcmp(argv[1], "--plan") == 0)
        take_plan(o, agx_plan_run(take_descriptor(argv[2])));
    else
        parse_options(o, argc, argv);
    if (o->no_suid && !agx_suid_forbid())
        die_errno("filter system calls");
    settle_descriptors();
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1); /* a PID 1 already is one */
    agx_pid1_execs_init(&pid1, o->commands);
    open_parts(&pid1, o);
    set_base_env(&pid1, o);
    pid1.groups = agx_str_from(o->groups);
    pid1.users_until_ms = agx_clock_ms() + o->await_user_ms;
    if (!o->await_go)
        start_main(&pid1, o);
    tell_running(&pid1);
    while (!is_over(&pid1))
        main_turn(&pid1);
    _exit(pid1.exit_code);
}
