/* probe_hogs.c: attempts to use all resources. They never end by themselves. */
#include "tests/security/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* It goes on when it may not fork: whatever becomes free is taken. */
static bool fork_bomb(const char *unused)
{
    (void)unused;
    for (;;) {
        pid_t pid = fork();

        if (pid == 0) {
            for (;;)
                (void)pause();
        }
        if (pid < 0 && errno == ENOSYS)
            return probe_say(false, "fork");
        if (pid < 0)
            (void)usleep(1000);
    }
}

/* "A B A B": two and two change places, for ever. */
static bool swap(const char *argument)
{
    char *words = strdup(argument), *save = NULL;
    const char *a[2], *b[2];
    size_t n = 0;

    for (char *w = strtok_r(words, " ", &save); w && n < 2; w = strtok_r(NULL, " ", &save)) {
        a[n] = w;
        b[n++] = strtok_r(NULL, " ", &save);
    }
    for (;;) {
        for (size_t i = 0; i < n; i++) {
            if (renameat2(AT_FDCWD, a[i], AT_FDCWD, b[i], RENAME_EXCHANGE) < 0)
                return probe_say(false, a[i]);
        }
    }
}

const struct probe probes_hogs[] = {
    { "swap", swap },
    { "fork-bomb", fork_bomb },
    { NULL, NULL },
};
