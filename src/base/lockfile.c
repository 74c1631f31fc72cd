#include "base/lockfile.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/banned.h"
#include "base/limits.h"
#include "base/str.h"

enum { PID_TEXT = 24 };

static pid_t read_holder(int fd)
{
    char text[PID_TEXT];
    ssize_t n = pread(fd, text, sizeof(text), 0);
    struct agx_str digits = { text, 0 };
    uint64_t pid;

    while ((ssize_t)digits.len < n && text[digits.len] >= '0' && text[digits.len] <= '9')
        digits.len++;
    return agx_parse_u64(digits, INT32_MAX, &pid) ? (pid_t)pid : 0;
}

static bool is_dead(pid_t holder)
{
    return holder > 0 && kill(holder, 0) < 0 && errno == ESRCH;
}

int agx_lockfile_take(int fd, pid_t *ret_holder)
{
    for (unsigned waited_ms = 0; flock(fd, LOCK_EX | LOCK_NB) < 0;) {
        if (errno == EINTR)
            continue;
        if (errno != EWOULDBLOCK)
            return -1;
        *ret_holder = read_holder(fd);
        if (!is_dead(*ret_holder) || waited_ms >= AGX_LOCKFILE_WAIT_MS) {
            errno = EWOULDBLOCK;
            return -1;
        }
        (void)usleep(AGX_LOCKFILE_PAUSE_MS * 1000);
        waited_ms += AGX_LOCKFILE_PAUSE_MS;
    }
    return 0;
}
