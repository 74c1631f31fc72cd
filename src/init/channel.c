/*
 * channel.c: bytes to and from the daemon, with one of two transports.
 *
 * A socket pair. Init holds both ends of a spare pair, the daemon's end at AGX_INIT_CONTROL_FD.
 * Only a process that may ptrace PID 1 can take it, by pidfd_getfd(2): no path leads to it. A HELLO
 * on the spare pair makes that pair the connection and closes an older one. Init then closes the
 * daemon's end, so that it sees the daemon's death, and makes a new spare.
 *
 * The container's standard input and output, which the engine passes to attached clients. A daemon
 * that died may have left half a message there, so packets go in frames (codec/initproto_frame.h),
 * whose key comes by the environment.
 */
#include "init/pid1.h"

#include "base/fdpass.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/banned.h"

enum { PACKETS_TURN = 64 }; /* then other work gets its turn */

#define KEY_NAME "AGENTIX_INIT_KEY"

static bool make_spare(struct agx_pid1 *p)
{
    struct agx_channel *c = &p->channel;
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
        return false;
    if (dup3(pair[1], AGX_INIT_CONTROL_FD, O_CLOEXEC) < 0 ||
        !agx_pid1_watch(p, pair[0], EPOLLIN, SOURCE_SPARE, 0)) {
        agx_closep(&pair[0]);
        agx_closep(&pair[1]);
        return false;
    }
    agx_closep(&pair[1]);
    c->spare_fd = pair[0];
    return true;
}

/* 32 hexadecimal digits; removed from the environment afterwards. */
static bool take_key(struct agx_siphash_key *ret)
{
    const char *text = getenv(KEY_NAME);
    uint64_t words[2] = { 0 };

    for (unsigned i = 0; i < 32; i++) {
        const char *digits = "0123456789abcdef", *at;

        at = text && text[i] ? strchr(digits, text[i]) : NULL;
        if (!at)
            return false;
        words[i / 16] = words[i / 16] << 4 | (uint64_t)(at - digits);
    }
    ret->k0 = words[0];
    ret->k1 = words[1];
    return unsetenv(KEY_NAME) == 0;
}

static bool open_stdio(struct agx_pid1 *p, const char **ret_why)
{
    struct agx_channel *c = &p->channel;

    *ret_why = "no key in " KEY_NAME;
    if (!take_key(&c->key))
        return false;
    *ret_why = "no memory for packets";
    c->packet = mmap(NULL, AGX_INIT_PACKET_MAX, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (c->packet == MAP_FAILED)
        return false;
    *ret_why = "standard input and output are not pipes";
    c->fd = 0;
    c->events = EPOLLIN;
    return fcntl(0, F_SETFL, O_NONBLOCK) == 0 && fcntl(1, F_SETFL, O_NONBLOCK) == 0 &&
           agx_pid1_watch(p, 0, EPOLLIN, SOURCE_CHANNEL, 0) &&
           agx_pid1_watch(p, 1, 0, SOURCE_CHANNEL_OUT, 0);
}

bool agx_channel_open(struct agx_pid1 *p, bool stdio, const char **ret_why)
{
    struct agx_channel *c = &p->channel;

    c->fd = c->spare_fd = -1;
    c->stdio = stdio;
    *ret_why = "no sockets";
    return stdio ? open_stdio(p, ret_why) : make_spare(p);
}

static void channel_lose(struct agx_pid1 *p)
{
    struct agx_channel *c = &p->channel;

    if (c->stdio) { /* keeps its numbers, which no other descriptor may get */
        (void)epoll_ctl(p->epoll_fd, EPOLL_CTL_DEL, 0, NULL);
        (void)epoll_ctl(p->epoll_fd, EPOLL_CTL_DEL, 1, NULL);
        c->fd = -1;
    }
    agx_close_fd(&c->fd);
    c->blocked = c->more = false;
    p->reply.due = false;
    p->epoch++; /* no command was requested on this connection yet */
}

/* A daemon has connected by the spare pair. */
static void promote(struct agx_pid1 *p)
{
    struct agx_channel *c = &p->channel;

    if (c->fd >= 0)
        channel_lose(p);
    c->fd = AGX_TAKE_FD(c->spare_fd);
    c->events = EPOLLIN;
    (void)epoll_ctl(p->epoll_fd, EPOLL_CTL_DEL, c->fd, NULL);
    (void)agx_pid1_watch(p, c->fd, EPOLLIN, SOURCE_CHANNEL, 0);
    /* Without a new pair, the next daemon takes this one and says HELLO on it. */
    (void)make_spare(p);
}

/* Appends the frames of a packet to the queue. */
static bool queue_frames(struct agx_channel *c, struct agx_str packet)
{
    size_t frames = packet.len / AGX_INIT_FRAME_DATA + 1, at = 0;

    if (sizeof(c->out) - c->out_len < packet.len + frames * AGX_INIT_FRAME_HEAD)
        return false;
    do {
        struct agx_str data;

        agx_init_frame_seal(&c->key, AGX_INIT_FROM_INIT, packet, &at, c->out + c->out_len, &data);
        c->out_len += AGX_INIT_FRAME_HEAD;
        memcpy(c->out + c->out_len, data.ptr, data.len);
        c->out_len += data.len;
    } while (at < packet.len);
    return true;
}

static void write_out(struct agx_channel *c)
{
    ssize_t n = 1;

    while (c->out_len > 0 && n > 0) {
        n = write(1, c->out, c->out_len);
        if (n > 0) {
            c->out_len -= (size_t)n;
            memmove(c->out, c->out + n, c->out_len);
        }
    }
    c->blocked = c->out_len > 0;
}

bool agx_channel_send(struct agx_pid1 *p, const struct agx_init_msg *m)
{
    static uint8_t packet[AGX_INIT_INLINE_MAX];
    size_t n = agx_init_encode(m, packet, sizeof(packet));
    struct agx_channel *c = &p->channel;

    if (c->fd < 0 || n > sizeof(packet))
        return true; /* no receiver; or too large, which our messages are not */
    if (c->stdio) {
        bool fits;

        if (m->kind == AGX_INIT_WELCOME) { /* older messages were for another daemon */
            memset(c->out, 0, AGX_INIT_FRAME_PAD);
            c->out_len = AGX_INIT_FRAME_PAD;
        }
        fits = queue_frames(c, agx_str_bytes(packet, n));
        write_out(c);
        return fits;
    }
    if (send(c->fd, packet, n, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
        return true;
    if (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM) {
        c->blocked = true;
        return false;
    }
    channel_lose(p);
    return true;
}

static void close_all(int *fds, size_t n)
{
    for (size_t i = 0; i < n; i++)
        agx_closep(&fds[i]);
}

/*
 * The packet is in the first descriptor, whose size cannot change. Returns an error text, or NULL
 * with the packet mapped.
 */
static const char *map_large(const int *fds, size_t n_fds, void **ret_at, size_t *ret_len)
{
    struct stat st;
    void *at;

    if (n_fds < 1)
        return "the command's own descriptor did not arrive";
    if (fstat(fds[0], &st) < 0 || st.st_size <= 0 || (size_t)st.st_size > AGX_INIT_PACKET_MAX ||
        !(fcntl(fds[0], F_GET_SEALS) & F_SEAL_SHRINK))
        return "a large command that is not sealed, or too large";
    at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fds[0], 0);
    if (at == MAP_FAILED)
        return "no memory for a large command";
    *ret_at = at;
    *ret_len = (size_t)st.st_size;
    return NULL;
}

static void obey_large(struct agx_pid1 *p, struct agx_str id, int *fds, size_t n_fds)
{
    void *at = NULL;
    size_t len = 0;
    const char *why = map_large(fds, n_fds, &at, &len);
    struct agx_init_msg m;

    if (!why && (agx_init_decode(agx_str_bytes(at, len), &m, NULL) < 0 || m.kind != AGX_INIT_START))
        why = "a malformed large command";
    if (why)
        agx_dispatch_refuse(p, id, AGX_RESOURCE_EXHAUSTED, why);
    else
        agx_dispatch(p, &m, fds + 1, n_fds - 1);
    if (at)
        (void)munmap(at, len);
}

/* Only a HELLO is accepted on the spare pair, and makes it the connection. */
static void obey(struct agx_pid1 *p, struct agx_str packet, bool spare, int *fds, size_t n_fds)
{
    struct agx_init_msg m;

    if (agx_init_decode(packet, &m, NULL) < 0 || (spare && m.kind != AGX_INIT_HELLO))
        return;
    if (spare)
        promote(p);
    if (m.kind == AGX_INIT_LARGE)
        obey_large(p, m.id, fds, n_fds);
    else
        agx_dispatch(p, &m, fds, n_fds);
}

/* One packet. 0: there is none; -1: the daemon is gone. */
static int channel_receive(struct agx_pid1 *p, bool spare)
{
    struct agx_channel *c = &p->channel;
    int fds[AGX_INIT_FDS_MAX + 1];
    struct agx_fdpass in = { .fds = fds, .max = AGX_ARRAY_LEN(fds) };
    ssize_t n = agx_fdpass_receive(spare ? c->spare_fd : c->fd, c->in, AGX_INIT_INLINE_MAX,
                                   MSG_DONTWAIT, &in);

    if (n <= 0)
        return n < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOMEM) ? 0 : -1;
    if (!in.cut)
        obey(p, agx_str_bytes(c->in, (size_t)n), spare, fds, in.n);
    close_all(fds, in.n);
    return 1;
}

/* Appends a frame to its packet; a complete packet is carried out. */
static void channel_join(struct agx_pid1 *p, const struct agx_init_frame *f)
{
    struct agx_channel *c = &p->channel;

    if (f->first) {
        c->packet_len = 0;
        c->in_packet = true;
    }
    if (!c->in_packet || f->data.len > AGX_INIT_PACKET_MAX - c->packet_len) {
        c->in_packet = false;
        return;
    }
    if (f->data.len > 0)
        memcpy(c->packet + c->packet_len, f->data.ptr, f->data.len);
    c->packet_len += f->data.len;
    if (!f->last)
        return;
    c->in_packet = false;
    obey(p, agx_str_bytes(c->packet, c->packet_len), false, NULL, 0);
    if (c->packet_len > AGX_INIT_INLINE_MAX)
        (void)madvise(c->packet, AGX_INIT_PACKET_MAX, MADV_DONTNEED);
}

/* False: there is no complete frame yet. */
static bool take_frame(struct agx_pid1 *p)
{
    struct agx_channel *c = &p->channel;
    struct agx_init_frame f;
    size_t used;
    bool found = agx_init_frame_next(&c->key, AGX_INIT_FROM_DAEMON, agx_str_bytes(c->in, c->in_len),
                                     &f, &used);

    if (found)
        channel_join(p, &f);
    c->in_len -= used;
    memmove(c->in, c->in + used, c->in_len);
    return found;
}

static void read_stdio(struct agx_pid1 *p)
{
    struct agx_channel *c = &p->channel;

    c->more = false;
    for (unsigned i = 0; i < PACKETS_TURN && !p->reply.due; i++) {
        ssize_t n;

        if (take_frame(p))
            continue;
        n = read(0, c->in + c->in_len, sizeof(c->in) - c->in_len);
        if (n == 0) /* the engine has closed it: no client will attach again */
            channel_lose(p);
        if (n <= 0)
            return;
        c->in_len += (size_t)n;
    }
    c->more = true;
}

void agx_channel_readable(struct agx_pid1 *p, bool spare)
{
    struct agx_channel *c = &p->channel;

    if (c->stdio) {
        read_stdio(p);
        return;
    }
    for (unsigned i = 0; i < PACKETS_TURN && !p->reply.due; i++) {
        int r = spare && c->spare_fd < 0 ? 0 : channel_receive(p, spare);

        if (r < 0 && !spare)
            channel_lose(p);
        if (r <= 0 || c->fd < 0)
            return;
        spare = false; /* it became the connection, or was noise: checked next turn */
    }
}

void agx_channel_hung_up(struct agx_pid1 *p)
{
    /* The daemon's last messages are read, but not while a reply waits. */
    if (p->reply.due || p->channel.stdio)
        channel_lose(p);
    else
        agx_channel_readable(p, false);
}

void agx_channel_writable(struct agx_pid1 *p)
{
    struct agx_channel *c = &p->channel;

    c->blocked = false;
    if (c->stdio)
        write_out(c);
}

void agx_channel_rest(struct agx_pid1 *p)
{
    struct agx_channel *c = &p->channel;
    uint32_t events = p->reply.due ? 0 : EPOLLIN;
    struct epoll_event e = { .data.u64 = (uint64_t)SOURCE_CHANNEL << 32 };

    if (!c->stdio && c->spare_fd < 0)
        (void)make_spare(p);
    if (c->fd < 0)
        return;
    if (!c->stdio && c->blocked)
        events |= EPOLLOUT;
    if (events != c->events) {
        e.events = c->events = events;
        (void)epoll_ctl(p->epoll_fd, EPOLL_CTL_MOD, c->fd, &e);
    }
    if (c->stdio) {
        e = (struct epoll_event){ .events = c->blocked ? EPOLLOUT : 0,
                                  .data.u64 = (uint64_t)SOURCE_CHANNEL_OUT << 32 };
        (void)epoll_ctl(p->epoll_fd, EPOLL_CTL_MOD, 1, &e);
    }
}
