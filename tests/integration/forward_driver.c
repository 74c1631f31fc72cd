/*
 * forward_driver.c: runs forwarders as the daemon does, by commands on standard input, one per
 * line. It answers each with one line: "ok" and the result, or the error.
 *
 *     start NAME PID ADDRESS {tcp|udp|sctp}:HOST_PORT:PORT...    of the sandbox whose PID 1 is PID
 *     dns NAME PID SERVER
 *     adopt NAME PID START BOOT                                  with the answer of a start
 *     stop NAME
 *     await NAME                                                 waits until it ends by itself
 *     ended NAME                                                 "ok 1" if it has, else "ok 0"
 *
 * usage: forward_driver PROGRAM. The end of the input ends the driver; forwarders stay.
 */
#include "backend/native/forward.h"
#include "tests/support/driver.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/pidfd.h>

enum { FORWARDS = 16, PORTS = 16, NAME = 32 };

struct slot {
    char name[NAME];
    struct agx_forward *forward;
    unsigned ended; /* how often it was told so */
    bool awaited;
};

static struct {
    struct test_driver driver;
    const char *program;
    struct slot slots[FORWARDS];
} d;

static struct slot *find(const char *name)
{
    for (size_t i = 0; i < FORWARDS; i++) {
        if (strcmp(d.slots[i].name, name) == 0)
            return &d.slots[i];
    }
    test_driver_must(false, name);
    return NULL;
}

static struct slot *claim(const char *name)
{
    struct slot *s = find("");

    *s = (struct slot){ 0 };
    (void)snprintf(s->name, sizeof(s->name), "%s", name);
    return s;
}

static void on_ended(void *user)
{
    struct slot *s = user;

    s->ended++;
    if (s->awaited)
        test_driver_say("ok", NULL);
    s->awaited = false;
}

static uint64_t number(struct agx_str text)
{
    uint64_t n = 0;

    test_driver_must(agx_parse_u64(text, INT64_MAX, &n), text.ptr);
    return n;
}

static void on_started(void *user, struct agx_error *error)
{
    struct slot *s = user;
    const struct agx_native_proc *p = agx_forward_proc(s->forward);

    if (error) {
        s->forward = agx_forward_stop(s->forward);
        s->name[0] = '\0';
        test_driver_say("", error);
        return;
    }
    (void)printf("ok %d %llu %s\n", (int)p->pid, (unsigned long long)p->start, p->boot);
    (void)fflush(stdout);
}

static struct agx_port read_port(const char *word)
{
    struct agx_str rest = agx_str_from(word), part = { 0 };
    struct agx_port p = { 0 };

    test_driver_must(agx_str_split(&rest, ':', &part), word);
    p.protocol = part.ptr[0] == 't'   ? AGX_PROTOCOL_TCP
                 : part.ptr[0] == 'u' ? AGX_PROTOCOL_UDP
                                      : AGX_PROTOCOL_SCTP;
    test_driver_must(agx_str_split(&rest, ':', &part), word);
    p.host_port = (uint32_t)number(part);
    p.container_port = (uint32_t)number(rest);
    return p;
}

static int do_start(char **w, size_t n, bool dns, struct agx_error **err)
{
    struct agx_port ports[PORTS] = { 0 };
    struct agx_forward_sockets sockets = { 0 };
    char path[64];
    pid_t pid = (pid_t)number(agx_str_from(w[2]));
    struct agx_forward_params params = { .program = d.program, .ports = ports };
    struct slot *s;
    int r = 0;

    for (size_t i = 4; !dns && i < n; i++)
        ports[i - 4] = read_port(w[i]);
    if (!dns)
        r = agx_forward_bind(ports, n - 4, &sockets, err);
    if (r < 0)
        return r;
    (void)snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)pid);
    params.net_fd = open(path, O_RDONLY | O_CLOEXEC);
    params.pidfd = pidfd_open(pid, 0);
    params.sockets = &sockets;
    params.address = w[3];
    params.dns = dns ? w[3] : NULL;
    s = claim(w[1]);
    r = agx_forward_start(d.driver.loop, &params, on_started, s, &s->forward, err);
    if (r < 0)
        s->name[0] = '\0';
    else
        agx_forward_watch(s->forward, on_ended, s);
    agx_forward_sockets_done(&sockets);
    (void)close(params.net_fd);
    (void)close(params.pidfd);
    return r;
}

static int do_adopt(char **w, struct agx_error **err)
{
    struct agx_native_proc proc = { 0 };
    struct slot *s;
    int r;

    proc.pid = (pid_t)number(agx_str_from(w[2]));
    proc.start = number(agx_str_from(w[3]));
    (void)snprintf(proc.boot, sizeof(proc.boot), "%s", w[4]);
    s = claim(w[1]);
    r = agx_forward_adopt(d.driver.loop, &proc, &s->forward, err);
    if (r < 0) {
        s->name[0] = '\0';
        return r;
    }
    agx_forward_watch(s->forward, on_ended, s);
    test_driver_say("ok", NULL);
    return 0;
}

static int do_line(char **w, size_t n, struct agx_error **err)
{
    struct slot *s;

    if (strcmp(w[0], "start") == 0 || strcmp(w[0], "dns") == 0)
        return do_start(w, n, w[0][0] == 'd', err);
    if (strcmp(w[0], "adopt") == 0)
        return do_adopt(w, err);
    s = find(w[1]);
    if (strcmp(w[0], "ended") == 0) {
        (void)printf("ok %u\n", s->ended);
        (void)fflush(stdout);
        return 0;
    }
    if (strcmp(w[0], "await") == 0 && s->ended == 0) {
        s->awaited = true;
        return 0;
    }
    if (strcmp(w[0], "stop") == 0) {
        s->forward = agx_forward_stop(s->forward);
        s->name[0] = '\0';
    }
    test_driver_say("ok", NULL);
    return 0;
}

static void on_line(char *line)
{
    struct agx_error *err = NULL;
    char *words[TEST_DRIVER_WORDS];
    size_t n = test_driver_split(line, words);

    if (do_line(words, n, &err) < 0)
        test_driver_say("", err);
}

static void on_end(void)
{
    for (size_t i = 0; i < FORWARDS; i++)
        d.slots[i].forward = agx_forward_free(d.slots[i].forward);
}

int main(int argc, char **argv)
{
    struct agx_error *err = NULL;

    test_driver_must(argc == 2, "usage");
    d.program = argv[1];
    if (agx_loop_open(&d.driver.loop, &err) < 0) {
        test_driver_say("", err);
        return 1;
    }
    d.driver.line = on_line;
    d.driver.end = on_end;
    return test_driver_run(&d.driver);
}
