/*
 * world_main.c: agentix-fakeworld, the world of the fake backend as a process.
 *
 * It ends on request (--stop), when its directory is removed, when the process that
 * AGENTIX_FAKE_PARENT names has ended, or after AGENTIX_FAKE_IDLE without a connection. So a test
 * leaves none behind, however the test ends.
 */
#include "base/fd.h"
#include "loop/listener.h"
#include "loop/unixsock.h"
#include "tests/fake/world.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/banned.h"

/* A world ends at once, but a busy machine may take a while. */
#define STOP_TRIES 11000
#define STOP_PAUSE_MS 5

static const char usage[] =
    "usage: agentix-fakeworld DIR               run the world of the fake backend in DIR\n"
    "       agentix-fakeworld --start DIR       the same in the background, unless one runs there\n"
    "       agentix-fakeworld --script DIR TEXT tell it what will happen (design/backends.md)\n"
    "       agentix-fakeworld --stop DIR        end it\n"
    "environment: AGENTIX_FAKE_PARENT=PID  end with that process\n"
    "             AGENTIX_FAKE_IDLE=30s    end after so long without a connection\n";

struct program {
    struct world world;
    char dir[PATH_MAX], socket[PATH_MAX + 16];
    struct agx_loop *loop;
    struct agx_listener *listener;
    uv_fs_event_t watch;
    uv_poll_t parent;
    int parent_fd;
    uv_timer_t idle;
    uint64_t idle_ms; /* 0: never */
};

static int fail(struct agx_error *err)
{
    char text[512];

    (void)fprintf(stderr, "agentix-fakeworld: %s\n", agx_error_format(err, text, sizeof(text)));
    agx_error_free(err);
    return 1;
}

/* ---- reasons to end ---- */

static void on_ended(void *user)
{
    struct program *p = user;

    agx_loop_stop(p->loop);
}

static void on_dir(uv_fs_event_t *h, const char *name, int events, int status)
{
    struct program *p = container_of(h, struct program, watch);

    (void)name;
    (void)events;
    if (status < 0 || access(p->socket, F_OK) < 0)
        on_ended(p);
}

static void on_parent(uv_poll_t *h, int status, int events)
{
    (void)status;
    (void)events;
    on_ended(container_of(h, struct program, parent));
}

static void on_idle(uv_timer_t *t)
{
    on_ended(container_of(t, struct program, idle));
}

static void on_links(void *user, size_t n)
{
    struct program *p = user;

    if (n > 0 || p->idle_ms == 0)
        (void)uv_timer_stop(&p->idle);
    else
        (void)uv_timer_start(&p->idle, on_idle, p->idle_ms, 0);
}

static int watch_parent(struct program *p, struct agx_error **err)
{
    const char *text = getenv("AGENTIX_FAKE_PARENT");
    uint64_t pid;

    p->parent_fd = -1;
    if (!text)
        return 0;
    if (!agx_parse_u64(agx_str_from(text), INT_MAX, &pid))
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "AGENTIX_FAKE_PARENT is no process id");
    p->parent_fd = pidfd_open((pid_t)pid, 0);
    if (p->parent_fd < 0)
        return agx_error_errno(err, errno, "watch process %s", text);
    (void)uv_poll_init(agx_loop_uv(p->loop), &p->parent, p->parent_fd);
    (void)uv_poll_start(&p->parent, UV_READABLE, on_parent);
    return 0;
}

static int watch_all(struct program *p, struct agx_error **err)
{
    const char *idle = getenv("AGENTIX_FAKE_IDLE");

    (void)uv_fs_event_init(agx_loop_uv(p->loop), &p->watch);
    (void)uv_fs_event_start(&p->watch, on_dir, p->dir, 0);
    (void)uv_timer_init(agx_loop_uv(p->loop), &p->idle);
    if (idle && !agx_fake_parse_ms(agx_str_from(idle), &p->idle_ms))
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "AGENTIX_FAKE_IDLE is no duration");
    on_links(p, 0);
    return watch_parent(p, err);
}

/* ---- the server ---- */

static void on_accept(void *user, int fd, const struct agx_addr *peer)
{
    struct program *p = user;

    (void)peer;
    world_accept(&p->world, &fd);
    agx_closep(&fd);
}

static void close_all(struct program *p)
{
    world_done(&p->world);
    p->listener = agx_listener_close(p->listener);
    uv_close((uv_handle_t *)&p->watch, NULL);
    uv_close((uv_handle_t *)&p->idle, NULL);
    if (p->parent_fd >= 0)
        uv_close((uv_handle_t *)&p->parent, NULL);
    (void)agx_loop_close(p->loop, NULL);
    agx_closep(&p->parent_fd);
}

/* Closes the descriptors that we inherited: a test that waits for its pipes must not wait for us.
 */
static void detach(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    (void)setsid();
    (void)!chdir("/");
    for (int fd = 0; fd < 3 && null >= 0; fd++)
        (void)dup2(null, fd);
}

/* `ready_fd` >= 0: we run in the background, and the parent waits until we are ready. */
static int serve(struct program *p, int *take_fd, int ready_fd, struct agx_error **err)
{
    char path[PATH_MAX + 16];
    int journal, r;

    (void)snprintf(path, sizeof(path), "%s/journal", p->dir);
    journal = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (journal < 0)
        return agx_error_errno(err, errno, "open '%s'", path);
    (void)flock(journal, LOCK_EX | LOCK_NB); /* until our last instruction: see stop() */
    r = agx_loop_open(&p->loop, err);
    if (r < 0)
        return r;
    world_init(&p->world, p->loop, journal);
    p->world.ended = on_ended;
    p->world.links_changed = on_links;
    p->world.user = p;
    world_note(&p->world, "world %d", (int)getpid());
    r = agx_listener_open_fd(p->loop, take_fd, &p->listener, err);
    if (r == 0)
        r = agx_listener_start(p->listener, on_accept, p, err);
    if (r == 0)
        r = watch_all(p, err);
    if (r == 0) {
        world_flush(&p->world);
        if (ready_fd >= 0) {
            detach();
            (void)!write(ready_fd, "", 1);
        }
        agx_loop_run(p->loop);
        close_all(p);
    }
    return r;
}

static void raise_limits(void)
{
    struct rlimit files;

    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN); /* a full disk is an error of a write */
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
}

/* Only the child returns, with the write end of a pipe. The parent exits when the child is ready;
 * a process that waited for the parent may then connect. */
static int fork_child(void)
{
    int ends[2];
    char byte;
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) < 0)
        _exit(1);
    pid = fork();
    if (pid == 0) {
        (void)close(ends[0]);
        return ends[1];
    }
    (void)close(ends[1]);
    _exit(pid > 0 && read(ends[0], &byte, 1) == 1 ? 0 : 1);
}

static int run(struct program *p, bool background)
{
    _cleanup_close_ int fd = -1, ready = -1;
    struct agx_unixsock *sock = NULL;
    struct agx_error *err = NULL;
    int r;

    raise_limits();
    r = agx_unixsock_listen(p->socket, &fd, &sock, &err);
    if (r == -AGX_ALREADY_EXISTS && background) {
        agx_error_free(err);
        return 0;
    }
    if (r < 0)
        return fail(err);
    if (background)
        ready = fork_child();
    r = serve(p, &fd, ready, &err);
    agx_unixsock_free(sock);
    return r < 0 ? fail(err) : 0;
}

/* ---- the client ---- */

static int read_answer(int fd, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf in = AGX_BUF_INIT(AGX_FAKE_MESSAGE_MAX);
    struct agx_fake_in m;
    size_t used;
    int r;

    while ((r = agx_fake_in_open(&m, agx_buf_peek(&in), &used)) >= 0) {
        uint8_t bytes[4096];
        ssize_t n;

        if (r > 0 && m.kind != AGX_FAKE_NEWS)
            break;
        if (r > 0) { /* of the effect that we asked for, or of others */
            agx_buf_consume(&in, used);
            continue;
        }
        n = read(fd, bytes, sizeof(bytes));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0 || agx_buf_append(&in, agx_str_bytes(bytes, (size_t)n)) < 0)
            return agx_error_set(err, AGX_UNAVAILABLE, "the world did not answer");
    }
    if (r > 0 && m.kind == AGX_FAKE_DONE) {
        uint64_t code = agx_fake_in_u64(&m);
        struct agx_str text = agx_fake_in_str(&m);

        if (code == AGX_OK)
            return 0;
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "%.*s", AGX_STR_ARG(text));
    }
    return agx_error_set(err, AGX_INTERNAL, "the world said something else");
}

static int ask(const struct program *p, enum agx_fake_kind kind, const char *text)
{
    _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(AGX_FAKE_MESSAGE_MAX);
    struct sockaddr_un sa = { .sun_family = AF_UNIX };
    struct agx_error *err = NULL;
    struct agx_fake_out o;
    int r;

    memcpy(sa.sun_path, p->socket, AGX_MIN(strlen(p->socket), sizeof(sa.sun_path) - 1));
    if (fd < 0 || connect(fd, (const struct sockaddr *)&sa, sizeof(sa)) < 0) {
        (void)agx_error_errno(&err, errno, "connect to '%s'", p->socket);
        return fail(err);
    }
    agx_fake_out_begin(&o, &out, kind, 1);
    if (text)
        agx_fake_out_cstr(&o, text);
    r = agx_fake_out_end(&o, 0);
    if (r == 0)
        r = agx_fd_write_all(fd, agx_buf_peek(&out), &err);
    if (r == 0)
        r = read_answer(fd, &err);
    return r < 0 ? fail(err) : 0;
}

/* Ends the world and waits for it. The caller removes the directory next, and must not meet a
 * process that still removes its socket there. The kernel ends the lock with the process. */
static int stop(const struct program *p)
{
    _cleanup_close_ int journal = -1;
    char path[PATH_MAX + 16];
    int r;

    (void)snprintf(path, sizeof(path), "%s/journal", p->dir);
    journal = open(path, O_RDONLY | O_CLOEXEC);
    r = ask(p, AGX_FAKE_END, NULL);
    for (int tries = STOP_TRIES; journal >= 0 && r == 0; tries--) {
        const struct timespec pause = { .tv_nsec = STOP_PAUSE_MS * 1000000L };

        if (flock(journal, LOCK_EX | LOCK_NB) == 0)
            break;
        if (tries == 0) {
            (void)fputs("agentix-fakeworld: the world did not end\n", stderr);
            return 1;
        }
        (void)nanosleep(&pause, NULL);
    }
    return r;
}

int main(int argc, char **argv)
{
    static struct program p;
    const char *option = argc > 1 && argv[1][0] == '-' ? argv[1] : "";
    const int n_args = argc - 1 - (*option != '\0');
    const char *dir = n_args > 0 ? argv[argc - n_args] : NULL;
    const bool script = strcmp(option, "--script") == 0;

    if (!dir || n_args != (script ? 2 : 1)) {
        (void)fputs(usage, stderr);
        return 2;
    }
    (void)mkdir(dir, 0700);
    if (!realpath(dir, p.dir)) {
        (void)fprintf(stderr, "agentix-fakeworld: no directory '%s'\n", dir);
        return 1;
    }
    (void)snprintf(p.socket, sizeof(p.socket), "%s/world.sock", p.dir);
    if (script)
        return ask(&p, AGX_FAKE_SCRIPT, argv[argc - 1]);
    if (strcmp(option, "--stop") == 0)
        return stop(&p);
    if (strcmp(option, "--start") == 0 || *option == '\0')
        return run(&p, *option != '\0');
    (void)fputs(usage, stderr);
    return 2;
}
