/*
 * The second link to the daemon: frames over the container's standard input and output. The test
 * acts as the daemon and the engine: it has the other ends of two pipes.
 */
#include "codec/initproto_frame.h"
#include "tests/support/sandbox.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

static const struct agx_siphash_key key = { 0x0123456789abcdef, 0xfedcba9876543210 };

struct peer {
    struct test_sandbox s;
    struct test_init t;
    int to_fd, from_fd;
    uint8_t in[1 << 18];
    size_t in_len;
    uint64_t nonce;
    struct agx_init_msg msg; /* the last one; borrows from `packet` */
    uint8_t packet[AGX_INIT_INLINE_MAX];
    char out[1 << 16]; /* output of any command */
    size_t out_len;
    const char *follow; /* of this command alone; NULL: of any */
    uint64_t out_end;   /* offset behind it */
};

static void write_all(const struct peer *p, const void *bytes, size_t n)
{
    for (size_t at = 0; at < n;) {
        ssize_t r = write(p->to_fd, (const uint8_t *)bytes + at, n - at);

        ASSERT_TRUE(r > 0);
        at += (size_t)r;
    }
}

/* `cut`: so many bytes of it only; 0: all. */
static void say_cut(const struct peer *p, const struct agx_init_msg *m, size_t cut)
{
    static uint8_t packet[1 << 21], frames[1 << 22];
    size_t n = agx_init_encode(m, packet, sizeof(packet)), at = 0, len = 0;
    struct agx_str data;

    ASSERT_TRUE(n <= sizeof(packet));
    while (at < n) {
        agx_init_frame_seal(&key, AGX_INIT_FROM_DAEMON, agx_str_bytes(packet, n), &at, frames + len,
                            &data);
        memcpy(frames + len + AGX_INIT_FRAME_HEAD, data.ptr, data.len);
        len += AGX_INIT_FRAME_HEAD + data.len;
    }
    write_all(p, frames, cut ? cut : len);
}

static void say(const struct peer *p, const struct agx_init_msg *m)
{
    say_cut(p, m, 0);
}

static void keep_output(struct peer *p)
{
    if (p->msg.kind != AGX_INIT_OUTPUT || (p->msg.flags & AGX_INIT_ERR) ||
        (p->follow && !agx_str_eq(p->msg.id, agx_str_from(p->follow))))
        return;
    if (p->follow)
        ASSERT_UINT(p->out_end, p->msg.offset); /* nothing is left out */
    p->out_end = p->msg.offset + p->msg.data.len;
    if (p->msg.data.len < sizeof(p->out) - p->out_len) {
        memcpy(p->out + p->out_len, p->msg.data.ptr, p->msg.data.len);
        p->out_len += p->msg.data.len;
    }
}

/* The next message. False: none for a while. */
static bool hear(struct peer *p, int wait_ms)
{
    for (;;) {
        struct pollfd poll_one = { .fd = p->from_fd, .events = POLLIN };
        struct agx_init_frame f;
        size_t used;
        bool found = agx_init_frame_next(&key, AGX_INIT_FROM_INIT, agx_str_bytes(p->in, p->in_len),
                                         &f, &used);
        ssize_t n;

        if (found) { /* each message of init's is one frame, or two */
            static size_t len;

            len = f.first ? 0 : len;
            memcpy(p->packet + len, f.data.ptr, f.data.len);
            len += f.data.len;
            p->in_len -= used;
            memmove(p->in, p->in + used, p->in_len);
            if (!f.last)
                continue;
            ASSERT_OK(agx_init_decode(agx_str_bytes(p->packet, len), &p->msg, NULL));
            keep_output(p);
            return true;
        }
        p->in_len -= used;
        memmove(p->in, p->in + used, p->in_len);
        if (poll(&poll_one, 1, wait_ms) <= 0)
            return false;
        n = read(p->from_fd, p->in + p->in_len, sizeof(p->in) - p->in_len);
        ASSERT_TRUE(n > 0);
        p->in_len += (size_t)n;
    }
}

static void hear_until(struct peer *p, enum agx_init_kind kind)
{
    do {
        if (!hear(p, 120000)) /* it hangs */
            FAIL("no message of kind %d", kind);
    } while (p->msg.kind != kind);
}

/* A daemon attaches: padding, HELLO, and all until its own WELCOME is an older one's. */
static void attach(struct peer *p)
{
    static const uint8_t pad[AGX_INIT_FRAME_PAD];

    write_all(p, pad, sizeof(pad));
    say(p, &(struct agx_init_msg){ .kind = AGX_INIT_HELLO, .nonce = ++p->nonce });
    do
        hear_until(p, AGX_INIT_WELCOME);
    while (p->msg.nonce != p->nonce);
    p->out_len = 0;
}

static struct peer *open_peer(const char *const *args)
{
    struct peer *p = calloc(1, sizeof(*p));
    int in[2], out[2];

    ASSERT_NOT_NULL(p);
    test_sandbox_make(&p->s, TEST_IMAGE_BUSYBOX);
    ASSERT_INT(0, pipe2(in, O_CLOEXEC) | pipe2(out, O_CLOEXEC));
    ASSERT_INT(0, setenv("AGENTIX_INIT_KEY", "0123456789abcdeffedcba9876543210", 1));
    test_sandbox_boot_stdio(&p->s, &p->t, args, in[0], out[1]);
    (void)unsetenv("AGENTIX_INIT_KEY");
    (void)close(in[0]);
    (void)close(out[1]);
    p->to_fd = in[1];
    p->from_fd = out[0];
    attach(p);
    return p;
}

static void close_peer(struct peer *p)
{
    test_init_close(&p->t);
    (void)close(p->to_fd);
    (void)close(p->from_fd);
    test_sandbox_remove(&p->s);
    free(p);
}

static void start(const struct peer *p, const char *id, const char *const *argv)
{
    static struct test_words words;
    const struct agx_init_msg m = { .kind = AGX_INIT_START,
                                    .id = agx_str_from(id),
                                    .flags = AGX_INIT_INHERIT,
                                    .argv = test_words(&words, argv) };

    say(p, &m);
}

TEST(stdio_command_sends_its_output_and_then_its_end)
{
    struct peer *p = open_peer(TEST_ARGV("--control", "stdio"));

    start(p, "one", TEST_ARGV("sh", "-c", "echo hello; echo $AGENTIX_INIT_KEY; exit 6"));
    hear_until(p, AGX_INIT_STARTED);
    hear_until(p, AGX_INIT_EXITED);
    ASSERT_INT(6, p->msg.exit_code);
    ASSERT_STR(AGX_STR("hello\n\n"), agx_str_bytes(p->out, p->out_len)); /* and no key */
    say(p, &(struct agx_init_msg){ .kind = AGX_INIT_FORGET, .id = AGX_STR("one") });
    say(p, &(struct agx_init_msg){ .kind = AGX_INIT_QUERY, .id = AGX_STR("one") });
    hear_until(p, AGX_INIT_UNKNOWN);
    close_peer(p);
}

TEST(stdio_daemon_that_died_within_a_message_does_not_confuse_the_next)
{
    struct peer *p = open_peer(TEST_ARGV("--control", "stdio"));

    for (size_t cut = 1; cut < 60; cut += 7) {
        const struct agx_init_msg m = { .kind = AGX_INIT_KILL,
                                        .id = AGX_STR("0123456789012345678901234567890123456789") };

        say_cut(p, &m, cut);
        attach(p);
    }
    start(p, "one", TEST_ARGV("echo", "x"));
    hear_until(p, AGX_INIT_EXITED);
    ASSERT_STR(AGX_STR("x\n"), agx_str_bytes(p->out, p->out_len));
    close_peer(p);
}

TEST(stdio_next_daemon_gets_output_and_end_from_where_it_says)
{
    struct peer *p = open_peer(TEST_ARGV("--control", "stdio"));

    start(p, "one", TEST_ARGV("sh", "-c", "echo 0123456789; exit 2"));
    hear_until(p, AGX_INIT_EXITED);
    attach(p);
    ASSERT_FALSE(hear(p, 200)); /* nothing is told that nobody asked for */
    say(p, &(struct agx_init_msg){ .kind = AGX_INIT_QUERY, .id = AGX_STR("one"), .offset = 4 });
    hear_until(p, AGX_INIT_EXITED);
    ASSERT_INT(2, p->msg.exit_code);
    ASSERT_STR(AGX_STR("456789\n"), agx_str_bytes(p->out, p->out_len));
    close_peer(p);
}

TEST(stdio_frames_without_the_key_are_nothing)
{
    static const struct agx_siphash_key wrong = { 1, 2 };
    uint8_t packet[64], head[AGX_INIT_FRAME_HEAD];
    struct peer *p = open_peer(TEST_ARGV("--control", "stdio"));
    const struct agx_init_msg stop = { .kind = AGX_INIT_STOP };
    struct agx_str data;
    size_t n = agx_init_encode(&stop, packet, sizeof(packet)), at = 0;

    agx_init_frame_seal(&wrong, AGX_INIT_FROM_DAEMON, agx_str_bytes(packet, n), &at, head, &data);
    write_all(p, head, sizeof(head));
    write_all(p, data.ptr, data.len);
    start(p, "one", TEST_ARGV("true"));
    hear_until(p, AGX_INIT_EXITED);
    close_peer(p);
}

TEST(stdio_endless_output_waits_for_a_reader_and_takes_no_memory)
{
    struct peer *p = open_peer(TEST_ARGV("--control", "stdio"));
    uint64_t before;

    p->follow = "flood";
    start(p, "flood", TEST_ARGV("yes"));
    hear_until(p, AGX_INIT_STARTED);
    (void)usleep(300000); /* nobody reads */
    start(p, "other", TEST_ARGV("true"));
    do
        hear_until(p, AGX_INIT_EXITED); /* not behind the flood, which has no end */
    while (!agx_str_eq(p->msg.id, AGX_STR("other")));
    before = p->out_end;
    while (p->out_end < before + (4 << 20)) /* more than init keeps */
        hear_until(p, AGX_INIT_OUTPUT);
    say(p, &(struct agx_init_msg){ .kind = AGX_INIT_KILL, .id = AGX_STR("flood") });
    hear_until(p, AGX_INIT_GONE);
    close_peer(p);
}

TEST(stdio_large_command_goes_through)
{
    static uint8_t words[1 << 20];
    struct agx_init_msg m = { .kind = AGX_INIT_START,
                              .id = AGX_STR("one"),
                              .flags = AGX_INIT_INHERIT };
    struct peer *p = open_peer(TEST_ARGV("--control", "stdio"));
    size_t at = agx_init_word_put(words, sizeof(words), AGX_STR("true"));

    for (m.argv.count = 1; at < 200000; m.argv.count++)
        at += agx_init_word_put(words + at, sizeof(words) - at, AGX_STR("one more word"));
    m.argv.bytes = agx_str_bytes(words, at);
    say(p, &m);
    hear_until(p, AGX_INIT_EXITED);
    ASSERT_INT(0, p->msg.exit_code);
    close_peer(p);
}

TEST(stdio_main_process_does_not_speak_on_the_channel)
{
    struct peer *p = open_peer(
        TEST_ARGV("--control", "stdio", "--", "sh", "-c", "echo noise; cat; exec /prog term"));

    start(p, "one", TEST_ARGV("echo", "x"));
    hear_until(p, AGX_INIT_EXITED);
    ASSERT_STR(AGX_STR("x\n"), agx_str_bytes(p->out, p->out_len));
    close_peer(p);
}
