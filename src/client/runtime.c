/*
 * runtime.c: the socket of a session, and waiting for it. session.h has all protocol rules; this
 * file moves bytes and reads the clock.
 */
#include "client/runtime_internal.h"

#include "base/banned.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/uuid.h"

#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

enum {
    READ_SIZE = 64 << 10, /* one read of small messages */
    READS_MAX = 16,       /* in one dispatch, so that other descriptors get their turn */
    ADDRESSES_MAX = 8,    /* of one host name */
};

struct address {
    union {
        struct sockaddr any;
        struct sockaddr_un un;
        struct sockaddr_storage storage;
    } sa;
    socklen_t len;
};

struct agx_runtime {
    struct agx_session *session;
    char *url; /* owned; for messages */
    struct address addresses[ADDRESSES_MAX];
    size_t n_addresses, next_address;
    int fd;           /* -1: none */
    uint64_t attempt; /* that `fd` serves */
    bool connecting;  /* connect() has not ended */
    uint8_t *rx;      /* READ_SIZE */
};

static void close_fd(struct agx_runtime *rt)
{
    if (rt->fd >= 0)
        (void)close(rt->fd);
    rt->fd = -1;
    rt->connecting = false;
}

static void lost(struct agx_runtime *rt, int sys_errno, const char *what)
{
    struct agx_error *err = NULL;

    close_fd(rt);
    if (sys_errno > 0)
        (void)agx_error_errno(&err, sys_errno, "%s '%s'", what, rt->url);
    else
        (void)agx_error_set(&err, AGX_UNAVAILABLE, "%s '%s'", what, rt->url);
    /* For any errno (no such socket, no permission) the server is unreachable. */
    if (sys_errno > 0 && err->cause)
        err->code = AGX_UNAVAILABLE;
    agx_session_lost(rt->session, &err, agx_clock_ms());
}

/* Starts to connect to the next address. False: failed at once, with errno. */
static bool begin_connect(struct agx_runtime *rt)
{
    const struct address *a = &rt->addresses[rt->next_address++];
    int fd = socket(a->sa.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), one = 1;

    if (fd < 0)
        return false;
    if (connect(fd, &a->sa.any, a->len) == 0) {
        rt->connecting = false;
    } else if (errno == EINPROGRESS) {
        rt->connecting = true;
    } else {
        agx_closep(&fd);
        return false;
    }
    if (a->sa.any.sa_family != AF_UNIX)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    rt->fd = fd;
    return true;
}

static void connect_next(struct agx_runtime *rt)
{
    close_fd(rt);
    while (rt->next_address < rt->n_addresses) {
        if (begin_connect(rt)) {
            if (!rt->connecting)
                agx_session_dialed(rt->session, agx_clock_ms());
            return;
        }
    }
    lost(rt, errno, "connect");
}

/* Opens or closes the socket, as the session requests. */
static void follow_session(struct agx_runtime *rt)
{
    uint64_t wanted = agx_session_attempt(rt->session);

    if (rt->fd >= 0 && rt->attempt != wanted)
        close_fd(rt);
    if (rt->fd < 0 && wanted > 0) {
        rt->attempt = wanted;
        rt->next_address = 0;
        connect_next(rt);
    }
}

static void finish_connect(struct agx_runtime *rt)
{
    struct pollfd p = { .fd = rt->fd, .events = POLLOUT };
    int failure = 0;
    socklen_t len = sizeof(failure);

    if (poll(&p, 1, 0) <= 0)
        return;
    if (getsockopt(rt->fd, SOL_SOCKET, SO_ERROR, &failure, &len) < 0)
        failure = errno;
    if (failure != 0) {
        errno = failure;
        if (rt->next_address < rt->n_addresses)
            connect_next(rt);
        else
            lost(rt, failure, "connect");
        return;
    }
    rt->connecting = false;
    agx_session_dialed(rt->session, agx_clock_ms());
}

/* Does the descriptor belong to the session's current connection? */
static bool is_live(const struct agx_runtime *rt)
{
    return rt->fd >= 0 && !rt->connecting && rt->attempt == agx_session_attempt(rt->session);
}

void agx_runtime_flush(struct agx_runtime *rt)
{
    struct agx_str pending;

    while (is_live(rt) && (pending = agx_session_pending(rt->session)).len > 0) {
        ssize_t n = send(rt->fd, pending.ptr, pending.len, MSG_NOSIGNAL);

        if (n >= 0)
            agx_session_sent(rt->session, (size_t)n);
        else if (errno == EAGAIN)
            return;
        else if (errno != EINTR)
            lost(rt, errno, "send to");
    }
}

/* False when there is nothing more to read now. */
static bool read_some(struct agx_runtime *rt)
{
    uint8_t *room;
    size_t size;
    ssize_t n;
    bool direct;

    agx_session_want(rt->session, &room, &size);
    direct = size > 0;
    n = recv(rt->fd, direct ? room : rt->rx, direct ? size : READ_SIZE, 0);
    if (n > 0) {
        if (direct)
            agx_session_filled(rt->session, (size_t)n);
        agx_session_read(rt->session, rt->rx, direct ? 0 : (size_t)n, agx_clock_ms());
        return direct || n == READ_SIZE;
    }
    if (n == 0)
        lost(rt, 0, "the connection was closed by");
    else if (errno != EAGAIN && errno != EINTR)
        lost(rt, errno, "receive from");
    return n < 0 && errno == EINTR;
}

void agx_runtime_dispatch(struct agx_runtime *rt)
{
    agx_session_tick(rt->session, agx_clock_ms());
    follow_session(rt);
    if (rt->connecting)
        finish_connect(rt);
    agx_runtime_flush(rt);
    for (int i = 0; i < READS_MAX && is_live(rt); i++) {
        if (!read_some(rt))
            break;
    }
    agx_runtime_flush(rt);
    follow_session(rt);
}

struct agx_session *agx_runtime_session(const struct agx_runtime *rt)
{
    return rt->session;
}

int agx_runtime_fd(const struct agx_runtime *rt)
{
    return rt->fd;
}

short agx_runtime_events(const struct agx_runtime *rt)
{
    if (rt->fd < 0)
        return 0;
    if (rt->connecting)
        return POLLOUT;
    return agx_session_pending(rt->session).len > 0 ? POLLIN | POLLOUT : POLLIN;
}

int agx_runtime_timeout_ms(const struct agx_runtime *rt)
{
    uint64_t at = agx_session_deadline(rt->session), now = agx_clock_ms();
    uint64_t wanted = agx_session_attempt(rt->session);

    if (wanted != (rt->fd >= 0 ? rt->attempt : 0))
        return 0;
    if (at == UINT64_MAX)
        return -1;
    return at <= now ? 0 : (int)AGX_MIN(at - now, (uint64_t)INT_MAX);
}

struct agx_call *agx_runtime_next(struct agx_runtime *rt)
{
    return agx_session_next(rt->session);
}

bool agx_runtime_pump(struct agx_runtime *rt, uint64_t deadline_ms)
{
    int timeout = agx_runtime_timeout_ms(rt);
    struct pollfd p = { .fd = rt->fd, .events = agx_runtime_events(rt) };
    uint64_t now = agx_clock_ms();

    if (now >= deadline_ms)
        return false;
    if (deadline_ms != UINT64_MAX && (timeout < 0 || deadline_ms - now < (uint64_t)timeout))
        timeout = (int)AGX_MIN(deadline_ms - now, (uint64_t)INT_MAX);
    (void)poll(&p, rt->fd >= 0 ? 1 : 0, timeout); /* EINTR: try again */
    agx_runtime_dispatch(rt);
    return true;
}

int agx_runtime_wait(struct agx_runtime *rt, int timeout_ms, struct agx_error **err)
{
    uint64_t deadline = agx_runtime_deadline(timeout_ms);
    int r;

    agx_runtime_dispatch(rt);
    while ((r = agx_session_state(rt->session, err)) == 0) {
        if (!agx_runtime_pump(rt, deadline))
            return agx_error_set(err, AGX_DEADLINE_EXCEEDED, "no connection to '%s' within %d ms",
                                 rt->url, timeout_ms);
    }
    return AGX_MIN(r, 0);
}

uint64_t agx_runtime_deadline(int timeout_ms)
{
    return timeout_ms < 0 ? UINT64_MAX : agx_clock_ms() + (uint64_t)timeout_ms;
}

static int unix_address(struct agx_runtime *rt, const char *path, struct agx_error **err)
{
    struct sockaddr_un *un = &rt->addresses[0].sa.un;
    size_t len = strlen(path);

    if (len >= sizeof(un->sun_path))
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "'%s': a socket's path has at most %zu bytes", path,
                             sizeof(un->sun_path) - 1);
    un->sun_family = AF_UNIX;
    memcpy(un->sun_path, path, len + 1);
    rt->addresses[0].len = sizeof(*un);
    rt->n_addresses = 1;
    return 0;
}

static int tcp_addresses(struct agx_runtime *rt, const struct agx_url *url, struct agx_error **err)
{
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
    struct addrinfo *list = NULL;
    int r = getaddrinfo(url->host, url->port, &hints, &list);

    if (r == EAI_MEMORY)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "look up '%s': out of memory", url->host);
    if (r != 0)
        return agx_error_set(err, AGX_UNAVAILABLE, "look up '%s': %s", url->host, gai_strerror(r));
    for (struct addrinfo *a = list; a && rt->n_addresses < ADDRESSES_MAX; a = a->ai_next) {
        struct address *to = &rt->addresses[rt->n_addresses++];

        memcpy(&to->sa, a->ai_addr, a->ai_addrlen);
        to->len = a->ai_addrlen;
    }
    freeaddrinfo(list);
    return 0;
}

/* Copies the caller's (perhaps older, smaller) structure over our defaults. */
static int read_options(const struct agx_runtime_options *o, struct agx_runtime_options *ret,
                        struct agx_error **err)
{
    *ret = (struct agx_runtime_options)AGX_RUNTIME_OPTIONS_INIT;
    if (!o || o->size < offsetof(struct agx_runtime_options, token))
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "options: begin with AGX_RUNTIME_OPTIONS_INIT");
    memcpy(ret, o, AGX_MIN(o->size, sizeof(*ret)));
    if (!ret->url)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "options: url is required");
    if (ret->max_message == 0 || ret->max_message > AGX_MESSAGE_MAX)
        ret->max_message = AGX_MESSAGE_MAX;
    if (ret->connect_timeout_ms == 0)
        ret->connect_timeout_ms = AGX_CLIENT_CONNECT_MS;
    return 0;
}

static int fill_runtime(struct agx_runtime *rt, const struct agx_runtime_options *o,
                        const struct agx_url *url, struct agx_error **err)
{
    struct agx_session_config config = {
        .host = agx_str_from(url->authority),
        .token = agx_str_from(o->token ? o->token : ""),
        .max_message = o->max_message,
        .connect_timeout_ms = o->connect_timeout_ms,
        .reconnect_ms = o->reconnect_ms,
        .owner = rt,
    };
    int r;

    rt->fd = -1;
    rt->rx = malloc(READ_SIZE);
    rt->url = strdup(o->url);
    if (!rt->rx || !rt->url)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "no memory for a runtime");
    r = url->path ? unix_address(rt, url->path, err) : tcp_addresses(rt, url, err);
    if (r == 0)
        r = agx_random_bytes(&config.seed, sizeof(config.seed), err);
    return r < 0 ? r : agx_session_new(&config, agx_clock_ms(), &rt->session, err);
}

int agx_runtime_open(const struct agx_runtime_options *options, struct agx_runtime **ret_runtime,
                     struct agx_error **err)
{
    struct agx_runtime_options o;
    struct agx_runtime *rt;
    struct agx_url url;
    int r = read_options(options, &o, err);

    if (r == 0)
        r = agx_url_parse(o.url, &url, err);
    if (r < 0)
        return r;
    rt = calloc(1, sizeof(*rt));
    r = rt ? fill_runtime(rt, &o, &url, err)
           : agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "no memory for a runtime");
    agx_url_done(&url);
    if (r < 0) {
        agx_runtime_close(rt);
        return r;
    }
    follow_session(rt);
    agx_runtime_flush(rt);
    *ret_runtime = rt;
    return 0;
}

struct agx_runtime *agx_runtime_close(struct agx_runtime *rt)
{
    if (!rt)
        return NULL;
    if (rt->session) {
        agx_session_goodbye(rt->session);
        agx_runtime_flush(rt);
    }
    agx_session_free(rt->session);
    close_fd(rt);
    free(rt->rx);
    free(rt->url);
    free(rt);
    return NULL;
}
