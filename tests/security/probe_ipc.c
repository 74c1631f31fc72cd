/*
 * probe_ipc.c: objects that processes of a machine share without a file system. The argument is the
 * name of an object that a process outside has made, or a number of objects.
 */
#include "tests/security/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/shm.h>

/* A segment by its key. */
static bool finds_segment(const char *key)
{
    return probe_say(shmget((key_t)strtol(key, NULL, 10), 0, 0) >= 0, "shmget");
}

/* Messages of the older kind, by the queue's key. */
static bool finds_messages(const char *key)
{
    return probe_say(msgget((key_t)strtol(key, NULL, 10), 0) >= 0, "msgget");
}

static bool finds_queue(const char *name)
{
    return probe_say(mq_open(name, O_RDONLY | O_CLOEXEC) != (mqd_t)-1, "mq_open");
}

/* As many terminals at a time as the argument says. The limit of all of them, kernel.pty.max, is
 * for the whole machine. */
static bool opens_terminals(const char *many)
{
    const long want = strtol(many, NULL, 10);
    struct rlimit files;
    long n = 0;

    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
    while (n < want && open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC) >= 0)
        n++;
    (void)printf("terminals: %ld\n", n);
    return probe_say(n == want, "open /dev/ptmx");
}

/* A socket that has a name, of whatever kind: agentix-init's has none. No argument. */
static bool finds_socket(const char *unused)
{
    char line[512];
    FILE *f = fopen("/proc/net/unix", "re");
    bool out = false;

    (void)unused;
    while (f && !out && fgets(line, sizeof(line), f))
        out = (strchr(line, '@') || strchr(line, '/')) && probe_say(true, line);
    if (f)
        (void)fclose(f);
    errno = ENOENT;
    return out || probe_say(false, "a socket with a name");
}

const struct probe probes_ipc[] = {
    { "sysv-shm", finds_segment },    { "sysv-messages", finds_messages },
    { "message-queue", finds_queue }, { "unix-sockets", finds_socket },
    { "ptys", opens_terminals },      { NULL, NULL },
};
