/*
 * initstream.c: init's messages on a byte stream that may break anywhere.
 *
 *     WAITING --timer--> CONNECTING --opened--> GREETING --WELCOME--> READY
 *        ^                   |                     |                    |
 *        +--- closed, or no answer in time --------+------ closed ------+      NOT_FOUND: LOST
 *
 * Each connection begins with padding, which completes a frame that an earlier one left half sent,
 * and with a HELLO that has its own number: everything before the WELCOME with that number belongs
 * to an earlier connection.
 *
 * Invariant: after lost() or in CLOSED the only callback to the user is closed().
 */
#include "backend/exec/initstream.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/uuid.h"
#include "codec/initproto_frame.h"

#include "base/banned.h"

enum state {
    STREAM_WAITING,
    STREAM_CONNECTING,
    STREAM_GREETING,
    STREAM_READY,
    STREAM_LOST,
    STREAM_CLOSED,
};

struct agx_initstream {
    struct agx_initlink base;
    struct agx_initstream_config config;
    const struct agx_initlink_ops *ops;
    void *user;
    enum state state;
    struct agx_siphash_key key;
    uint64_t nonce;
    unsigned attempts; /* since it was last READY */
    uv_timer_t timer;
    agx_done_fn closed;
    void *closed_user;
    uint8_t in[2 * AGX_INIT_FRAME_MAX]; /* received bytes */
    size_t in_len;
    uint8_t packet[AGX_INIT_INLINE_MAX]; /* assembled from frames: init sends no larger packet */
    size_t packet_len;
    bool in_packet;
};

static const char digits[] = "0123456789abcdef";

int agx_initstream_make_key(char ret_key[AGX_INITSTREAM_KEY_LEN + 1], struct agx_error **err)
{
    uint8_t bytes[AGX_INITSTREAM_KEY_LEN / 2];
    int r = agx_random_bytes(bytes, sizeof(bytes), err);

    for (size_t i = 0; r == 0 && i < AGX_INITSTREAM_KEY_LEN; i++)
        ret_key[i] = digits[i % 2 ? bytes[i / 2] & 15 : bytes[i / 2] >> 4];
    ret_key[AGX_INITSTREAM_KEY_LEN] = '\0';
    return r;
}

static bool parse_key(const char *text, struct agx_siphash_key *ret)
{
    uint64_t words[2] = { 0 };

    for (size_t i = 0; i < AGX_INITSTREAM_KEY_LEN; i++) {
        const char *at = text && text[i] ? strchr(digits, text[i]) : NULL;

        if (!at)
            return false;
        words[i / 16] = words[i / 16] << 4 | (uint64_t)(at - digits);
    }
    *ret = (struct agx_siphash_key){ words[0], words[1] };
    return text[AGX_INITSTREAM_KEY_LEN] == '\0';
}

/* ---- the connection ---- */

static void on_timer(uv_timer_t *t);

static void wait_for(struct agx_initstream *s, enum state state, uint64_t ms)
{
    s->state = state;
    (void)uv_timer_start(&s->timer, on_timer, ms, 0);
}

static void try_later(struct agx_initstream *s)
{
    uint64_t ms = s->config.retry_ms;

    for (unsigned i = 0; i < s->attempts && ms < s->config.retry_max_ms; i++)
        ms *= 2;
    s->attempts++;
    wait_for(s, STREAM_WAITING, AGX_MIN(ms, s->config.retry_max_ms));
}

static void connect_now(struct agx_initstream *s)
{
    s->in_len = s->packet_len = 0;
    s->in_packet = false;
    wait_for(s, STREAM_CONNECTING, s->config.connect_ms);
    if (s->config.wire->connect(s->config.user, s, NULL) < 0)
        try_later(s);
}

static void on_timer(uv_timer_t *t)
{
    struct agx_initstream *s = container_of(t, struct agx_initstream, timer);

    if (s->state == STREAM_WAITING) {
        connect_now(s);
        return;
    }
    s->config.wire->close(s->config.user); /* no answer */
    try_later(s);
}

static int send_frames(struct agx_initstream *s, const struct agx_init_msg *m, size_t pad,
                       struct agx_error **err)
{
    size_t len = agx_init_encode(m, NULL, 0), at = 0;
    size_t frames = len / AGX_INIT_FRAME_DATA + 1;
    _cleanup_free_ uint8_t *packet = len <= AGX_INIT_PACKET_MAX ? malloc(len) : NULL;
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(pad + len + frames * AGX_INIT_FRAME_HEAD);

    if (!packet || agx_buf_reserve(&out, out.max) < 0)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED,
                             "a message for agentix-init is larger than %zu bytes",
                             AGX_INIT_PACKET_MAX);
    (void)agx_init_encode(m, packet, len);
    memset(out.data, 0, pad);
    out.len = pad;
    do {
        struct agx_str data;

        agx_init_frame_seal(&s->key, AGX_INIT_FROM_DAEMON, agx_str_bytes(packet, len), &at,
                            out.data + out.len, &data);
        memcpy(out.data + out.len + AGX_INIT_FRAME_HEAD, data.ptr, data.len);
        out.len += AGX_INIT_FRAME_HEAD + data.len;
    } while (at < len);
    return s->config.wire->write(s->config.user, agx_buf_peek(&out), err);
}

void agx_initstream_opened(struct agx_initstream *s)
{
    const struct agx_init_msg hello = { .kind = AGX_INIT_HELLO, .nonce = ++s->nonce };

    s->state = STREAM_GREETING; /* the timer keeps running */
    if (send_frames(s, &hello, AGX_INIT_FRAME_PAD, NULL) < 0) {
        s->config.wire->close(s->config.user);
        try_later(s);
    }
}

void agx_initstream_closed(struct agx_initstream *s, struct agx_error *error)
{
    struct agx_error *told = NULL;

    if (!error || error->code != AGX_NOT_FOUND) {
        agx_error_free(error);
        try_later(s);
        return;
    }
    (void)uv_timer_stop(&s->timer);
    s->state = STREAM_LOST;
    (void)agx_error_set(&told, AGX_UNAVAILABLE, "agentix-init: %s", error->message);
    agx_error_free(error);
    s->ops->lost(s->user, told);
}

/* ---- what init says ---- */

static void on_packet(struct agx_initstream *s)
{
    struct agx_init_msg m;

    if (agx_init_decode(agx_str_bytes(s->packet, s->packet_len), &m, NULL) < 0)
        return; /* from a newer init: ignored */
    if (s->state == STREAM_READY && m.kind != AGX_INIT_WELCOME) {
        s->ops->message(s->user, &m);
    } else if (s->state == STREAM_GREETING && m.kind == AGX_INIT_WELCOME && m.nonce == s->nonce) {
        (void)uv_timer_stop(&s->timer);
        s->attempts = 0;
        s->state = STREAM_READY;
        s->ops->ready(s->user);
    }
}

static void initstream_join(struct agx_initstream *s, const struct agx_init_frame *f)
{
    if (f->first) {
        s->packet_len = 0;
        s->in_packet = true;
    }
    if (!s->in_packet || f->data.len > sizeof(s->packet) - s->packet_len) {
        s->in_packet = false;
        return;
    }
    if (f->data.len > 0)
        memcpy(s->packet + s->packet_len, f->data.ptr, f->data.len);
    s->packet_len += f->data.len;
    if (!f->last)
        return;
    s->in_packet = false;
    on_packet(s);
}

static bool takes_bytes(const struct agx_initstream *s, uint64_t nonce)
{
    return (s->state == STREAM_GREETING || s->state == STREAM_READY) && s->nonce == nonce;
}

/* False: there is no complete frame yet. */
static bool take_frame(struct agx_initstream *s)
{
    struct agx_init_frame f;
    size_t used;
    uint64_t nonce = s->nonce;
    bool found = agx_init_frame_next(&s->key, AGX_INIT_FROM_INIT, agx_str_bytes(s->in, s->in_len),
                                     &f, &used);

    if (found)
        initstream_join(s, &f);
    if (!takes_bytes(s, nonce))
        return false;
    s->in_len -= used;
    memmove(s->in, s->in + used, s->in_len);
    return found;
}

void agx_initstream_data(struct agx_initstream *s, struct agx_str bytes)
{
    const uint64_t nonce = s->nonce;

    while (bytes.len > 0 && takes_bytes(s, nonce)) {
        size_t n = AGX_MIN(bytes.len, sizeof(s->in) - s->in_len);

        memcpy(s->in + s->in_len, bytes.ptr, n);
        s->in_len += n;
        bytes = agx_str_skip(bytes, n);
        while (take_frame(s))
            ;
    }
}

/* ---- the link ---- */

static struct agx_initstream *stream_of(const struct agx_initlink *base)
{
    return container_of(base, struct agx_initstream, base);
}

static int stream_send(struct agx_initlink *base, const struct agx_init_msg *m, const int *fds,
                       size_t n_fds, struct agx_error **err)
{
    struct agx_initstream *s = stream_of(base);

    (void)fds;
    (void)n_fds;
    if (s->state != STREAM_READY)
        return agx_error_set(err, AGX_UNAVAILABLE, "agentix-init is not connected");
    return send_frames(s, m, 0, err);
}

static bool stream_is_ready(const struct agx_initlink *base)
{
    return stream_of(base)->state == STREAM_READY;
}

static void on_timer_closed(uv_handle_t *h)
{
    struct agx_initstream *s = container_of((uv_timer_t *)h, struct agx_initstream, timer);

    if (s->config.wire->release)
        s->config.wire->release(s->config.user);
    if (s->closed)
        s->closed(s->closed_user, NULL);
    free(s);
}

static void stream_close(struct agx_initlink *base, agx_done_fn closed, void *user)
{
    struct agx_initstream *s = stream_of(base);

    if (s->state == STREAM_CLOSED)
        return;
    s->state = STREAM_CLOSED;
    s->closed = closed;
    s->closed_user = user;
    s->config.wire->close(s->config.user);
    uv_close((uv_handle_t *)&s->timer, on_timer_closed);
}

static const struct agx_initlink_kind stream_kind = {
    .name = "stdio",
    .carries_logs = false,
    .send = stream_send,
    .is_ready = stream_is_ready,
    .close = stream_close,
};

int agx_initstream_open(struct agx_loop *loop, const struct agx_initstream_config *config,
                        const struct agx_initlink_ops *ops, void *user,
                        struct agx_initlink **ret_link, struct agx_error **err)
{
    struct agx_siphash_key key;
    struct agx_initstream *s;
    uint64_t nonce;
    int r;

    if (!parse_key(config->key, &key))
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "the key of agentix-init is not %d hexadecimal digits",
                             AGX_INITSTREAM_KEY_LEN);
    r = agx_random_bytes(&nonce, sizeof(nonce), err);
    if (r < 0)
        return r;
    s = agx_new(struct agx_initstream);
    s->base.kind = &stream_kind;
    s->config = *config;
    s->config.key = NULL;
    s->key = key;
    s->nonce = nonce;
    s->ops = ops;
    s->user = user;
    (void)uv_timer_init(agx_loop_uv(loop), &s->timer);
    wait_for(s, STREAM_WAITING, 0);
    *ret_link = &s->base;
    return 0;
}
