/*
 * pasta_make.c: starts pasta.
 *
 *   the host's addresses on the default route's interface --> addresses of the namespace
 *   spawn init --gate --> record --> GO --> it becomes pasta --> its pid on stdout: it runs
 *
 * It continues only after its record is written: a daemon that is killed before leaves no process.
 */
#include "backend/native/net/pasta_make.h"

#include "backend/native/net/default_route.h"
#include "backend/native/net/initsock.h"
#include "backend/native/net/links.h"
#include "backend/native/net/pasta.h"
#include "backend/native/net/userns.h"
#include "backend/net/netns.h"
#include "backend/proc.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/limits_native.h"
#include "loop/child.h"

#include <fcntl.h>
#include <linux/netlink.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/banned.h"

#define DEVICE "/dev/net/tun"

/* Links of the namespace: pasta's, and a dummy that only has the host's addresses. */
#define LINK "agxout"
#define HOST_LINK "agxhost"

/* Our ends of that link: from the range for both sides of a translator (RFC 7335), which no network
 * uses. */
#define NEAR_END "192.0.0.2"
#define FAR_END "192.0.0.1"
#define LINK_MASK "255.255.255.248"

enum { GATE_FD = 3, WORDS_TEXT_MAX = 4096 };

/* ---- what it says ---- */

/* A file in memory with a fixed size: later output, which is not read, takes no more memory. */
static int open_words(struct agx_error **err)
{
    _cleanup_close_ int fd = memfd_create("pasta", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0 || ftruncate(fd, WORDS_TEXT_MAX) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK) < 0)
        return agx_error_errno(err, errno, "make a file for what pasta says");
    return AGX_TAKE_FD(fd);
}

/* The last line, without pasta's complaints about a missing system log. */
static int pasta_make_complain(int words_fd, struct agx_error **err)
{
    char text[WORDS_TEXT_MAX + 1] = "";
    struct agx_str rest, line = { 0 }, last = AGX_STR("it ended without a message");
    ssize_t n = pread(words_fd, text, WORDS_TEXT_MAX, 0);

    text[n > 0 ? n : 0] = '\0';
    rest = agx_str_from(text);
    while (agx_str_split(&rest, '\n', &line)) {
        line = agx_str_trim(line);
        if (line.len > 0 && !agx_str_starts(line, AGX_STR("Failed to send ")))
            last = line;
    }
    return agx_error_set(err, AGX_FAILED_PRECONDITION,
                         "network: pasta, which connects sandboxes of an ordinary user, does not "
                         "start: %.*s",
                         AGX_STR_ARG(last));
}

/* ---- the host's addresses ---- */

static int add_address(int fd, const char *text, struct agx_error **err)
{
    struct agx_subnet address;
    const struct agx_links_up up = { .name = HOST_LINK, .network = &address };
    int r = agx_subnet_parse(agx_str_from(text), &address, err);

    return r < 0 ? r : agx_links_up(fd, &up, err);
}

static int set_addresses(const struct agx_pasta_maker *m, const struct agx_words *way,
                         struct agx_error **err)
{
    _cleanup_close_ int fd =
        agx_netns_socket(m->net_fd, AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE, err);
    int r = fd < 0 ? fd : agx_links_remove(fd, HOST_LINK, err);

    if (r == 0)
        r = agx_links_bridge(fd, HOST_LINK, NULL, err);
    for (size_t i = 1; r == 0 && i < way->len; i++)
        r = add_address(fd, way->items[i], err);
    return r;
}

/* ---- the process ---- */

struct start {
    pid_t pid; /* 0: none, or it is open and recorded */
    int pidfd;
    int gate_fd, ready_fd, words_fd;
};

static void start_done(struct start *s)
{
    agx_closep(&s->gate_fd);
    agx_closep(&s->ready_fd);
    agx_closep(&s->words_fd);
    if (s->pidfd >= 0) {
        agx_native_proc_end(s->pidfd);
    } else if (s->pid > 0) {
        (void)kill(s->pid, SIGKILL);
        (void)waitpid(s->pid, NULL, 0);
    }
}

static int pasta_make_spawn(struct start *s, const struct agx_pasta_maker *m,
                            const char *const *argv, struct agx_error **err)
{
    struct agx_child_fd fds[4];
    const struct agx_child_params params = { .file = m->init_path,
                                             .argv = argv,
                                             .fds = fds,
                                             .n_fds = AGX_ARRAY_LEN(fds),
                                             .cwd = "/",
                                             .group = AGX_CHILD_NEW_SESSION };
    int pair[2], pipes[2], r;

    if (pipe2(pipes, O_CLOEXEC) < 0)
        return agx_error_errno(err, errno, "make a pipe");
    s->ready_fd = pipes[0];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
        r = agx_error_errno(err, errno, "make a pair of sockets");
        (void)close(pipes[1]);
        return r;
    }
    s->gate_fd = pair[0];
    fds[0] = (struct agx_child_fd){ m->net_fd, STDIN_FILENO };
    fds[1] = (struct agx_child_fd){ pipes[1], STDOUT_FILENO };
    fds[2] = (struct agx_child_fd){ s->words_fd, STDERR_FILENO };
    fds[3] = (struct agx_child_fd){ pair[1], GATE_FD };
    r = agx_child_spawn(&params, &s->pid, err);
    (void)close(pair[1]);
    (void)close(pipes[1]);
    return r;
}

/* Nothing of the host is forwarded inside, and no address leads to the host itself. The namespace
 * and the file for its pid are passed as descriptors, so pasta needs no permission to open them. */
static int spawn_pasta(struct start *s, const struct agx_pasta_maker *m, const char *program,
                       const char *interface, struct agx_error **err)
{
    const char *const argv[] = { m->init_path,
                                 "--gate",
                                 "3",
                                 program,
                                 "--foreground",
                                 "--quiet",
                                 "--ipv4-only",
                                 "--config-net",
                                 "--no-map-gw",
                                 "--no-netns-quit",
                                 "--tcp-ports=none",
                                 "--udp-ports=none",
                                 "--tcp-ns=none",
                                 "--udp-ns=none",
                                 "--interface",
                                 interface,
                                 "--outbound-if4",
                                 interface,
                                 "--ns-ifname",
                                 LINK,
                                 "--address",
                                 NEAR_END,
                                 "--netmask",
                                 LINK_MASK,
                                 "--gateway",
                                 FAR_END,
                                 "--netns=/proc/self/fd/0",
                                 "--pid=/proc/self/fd/1",
                                 NULL };

    return pasta_make_spawn(s, m, argv, err);
}

static int pasta_make_note(struct start *s, const struct agx_pasta_maker *m,
                           const struct agx_words *way, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf about = AGX_BUF_INIT(AGX_NATIVE_PROC_MAX);
    struct agx_native_proc proc;
    int r;

    s->pidfd = pidfd_open(s->pid, 0);
    if (s->pidfd < 0)
        return agx_error_errno(err, errno, "open the process of pasta");
    for (size_t i = 0; i < way->len; i++) {
        if (agx_buf_printf(&about, "%s%s", i > 0 ? " " : "", way->items[i]) < 0)
            return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "interface '%s' has %zu addresses",
                                 way->items[0], way->len - 1);
    }
    r = agx_native_proc_note(&proc, s->pid, err);
    if (r < 0)
        return r;
    return agx_native_proc_save(m->dir_fd, AGX_PASTA_RECORD, &proc, agx_buf_peek(&about), err);
}

/* Waits for its pid, which it writes when all is set up, or for its end when it failed. */
static int await_ready(const struct start *s, const struct agx_pasta_maker *m,
                       struct agx_error **err)
{
    struct pollfd p = { .fd = s->ready_fd, .events = POLLIN };
    const uint64_t end_ms = agx_clock_ms() + AGX_PASTA_READY_MS;
    char first;

    while (poll(&p, 1, AGX_PASTA_STOP_MS) <= 0) {
        if (atomic_load(&m->stop))
            return agx_error_set(err, AGX_CANCELLED, "the daemon is ending");
        if (agx_clock_ms() >= end_ms)
            return agx_error_set(err, AGX_UNAVAILABLE, "network: pasta does not get ready");
    }
    return read(s->ready_fd, &first, 1) == 1 ? 0 : pasta_make_complain(s->words_fd, err);
}

static int pasta_make_start(struct agx_pasta_maker *m, const struct agx_words *way,
                            struct agx_error **err)
{
    _cleanup_(
        start_done) struct start s = { .pidfd = -1, .gate_fd = -1, .ready_fd = -1, .words_fd = -1 };
    char program[PATH_MAX];
    int r = agx_pasta_check(err);

    if (r < 0)
        return r;
    agx_userns_find("", "pasta", program);
    if ((r = s.words_fd = open_words(err)) < 0 ||
        (r = spawn_pasta(&s, m, program, way->items[0], err)) < 0 ||
        (r = pasta_make_note(&s, m, way, err)) < 0 || (r = agx_initsock_go(s.gate_fd, err)) < 0 ||
        (r = await_ready(&s, m, err)) < 0)
        return r;
    m->pidfd = AGX_TAKE_FD(s.pidfd);
    s.pid = 0;
    return 0;
}

/* ---- all of it ---- */

int agx_pasta_check(struct agx_error **err)
{
    char program[PATH_MAX];

    agx_userns_find("", "pasta", program);
    if (!program[0])
        return agx_error_set(err, AGX_FAILED_PRECONDITION,
                             "network: sandboxes of an ordinary user need 'pasta', which is "
                             "not installed: install the package 'passt', ask for 'none', or run "
                             "agentixd as root");
    if (access(DEVICE, R_OK | W_OK) < 0)
        return agx_error_set(err, AGX_FAILED_PRECONDITION,
                             "network: sandboxes of an ordinary user need '" DEVICE
                             "', which cannot be opened: %s: 'sudo modprobe tun' and 'sudo chmod "
                             "666 " DEVICE "' help, or ask for 'none', or run agentixd as root",
                             strerror(errno));
    return 0;
}

void agx_pasta_end(int dir_fd)
{
    struct agx_native_proc proc;
    int pidfd;

    if (!agx_native_proc_load(dir_fd, AGX_PASTA_RECORD, &proc, NULL))
        return;
    pidfd = agx_native_proc_open(&proc, NULL);
    if (pidfd >= 0)
        agx_native_proc_end(pidfd);
    (void)unlinkat(dir_fd, AGX_PASTA_RECORD, 0);
}

static bool runs(const struct agx_pasta_maker *m)
{
    struct pollfd p = { .fd = m->pidfd, .events = POLLIN };

    return m->pidfd >= 0 && poll(&p, 1, 0) == 0;
}

static void pasta_make_end(struct agx_pasta_maker *m)
{
    if (m->pidfd >= 0)
        agx_native_proc_end(AGX_TAKE_FD(m->pidfd));
    (void)unlinkat(m->dir_fd, AGX_PASTA_RECORD, 0);
    agx_words_done(&m->way);
}

int agx_pasta_make(struct agx_pasta_maker *m, struct agx_error **err)
{
    _cleanup_(agx_words_done) struct agx_words way = { 0 };
    int r = agx_default_route_read(&way, err);

    if (r < 0 || (runs(m) && agx_words_eq(&m->way, &way)))
        return r;
    pasta_make_end(m); /* before the addresses change: it never leads to an unguarded one */
    if (way.len == 0)
        return 0;
    r = set_addresses(m, &way, err);
    if (r == 0)
        r = pasta_make_start(m, &way, err);
    if (r < 0) {
        (void)unlinkat(m->dir_fd, AGX_PASTA_RECORD, 0);
        return r;
    }
    m->way = way;
    way = (struct agx_words){ 0 };
    return 0;
}

static int take_default_route(struct agx_pasta_maker *m, struct agx_str text,
                              struct agx_error **err)
{
    struct agx_str word;
    int r = 0;

    while (r == 0 && agx_str_split(&text, ' ', &word))
        r = agx_words_add(&m->way, word, err);
    return r;
}

int agx_pasta_maker_init(struct agx_pasta_maker *m, const char *init_path, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf about = AGX_BUF_INIT(AGX_NATIVE_PROC_MAX);
    struct agx_native_proc proc;
    int r = agx_text_set(&m->init_path, init_path, err);

    if (r < 0 || !agx_native_proc_load(m->dir_fd, AGX_PASTA_RECORD, &proc, &about))
        return r;
    m->pidfd = agx_native_proc_open(&proc, NULL);
    if (m->pidfd < 0) {
        m->pidfd = -1;
        return 0;
    }
    return take_default_route(m, agx_buf_peek(&about), err);
}

void agx_pasta_maker_done(struct agx_pasta_maker *m)
{
    agx_closep(&m->pidfd);
    agx_words_done(&m->way);
    free(m->init_path);
}
