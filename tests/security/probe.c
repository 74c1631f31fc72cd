/* probe.c: finds an attempt by its name and runs it. */
#include "tests/security/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct probe *const tables[] = { probes_files, probes_kernel, probes_init, probes_net,
                                              probes_ipc,   probes_hogs,   probes_suid };

bool probe_say(bool succeeded, const char *what)
{
    const char *why = succeeded ? "succeeded" : strerror(errno);

    (void)printf("%s: %s\n", what, why);
    return succeeded;
}

bool probe_reads(const char *path)
{
    char byte;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    bool reads = fd >= 0 && read(fd, &byte, 1) == 1;

    if (fd >= 0)
        close(fd);
    return probe_say(reads, path);
}

bool probe_opens_to_write(const char *path)
{
    int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);

    if (fd >= 0)
        close(fd);
    return probe_say(fd >= 0, path);
}

bool probe_considered(long result)
{
    return result >= 0 || (errno != EPERM && errno != EACCES && errno != ENOSYS);
}

static const struct probe *find(const char *name)
{
    for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++) {
        for (const struct probe *p = tables[t]; p->name; p++) {
            if (strcmp(p->name, name) == 0)
                return p;
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    const struct probe *p = argc > 1 ? find(argv[1]) : NULL;
    bool succeeded;

    if (!p) {
        (void)fprintf(stderr, "probe: no such attempt: %s\n", argc > 1 ? argv[1] : "(none)");
        return 2;
    }
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    succeeded = p->run(argc > 2 ? argv[2] : "");
    (void)printf("%s\n", succeeded ? "OUT" : "HELD");
    return succeeded ? 0 : 1;
}
