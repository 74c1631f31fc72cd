/* probe_hogs.c: those that take all they can get. They never end by themselves. */
#include "tests/security/probe.h"

#include <errno.h>
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

const struct probe probes_hogs[] = {
    { "fork-bomb", fork_bomb },
    { NULL, NULL },
};
