/* timeslice.c: sets the time slice with sched_setattr(2), which glibc 2.36 does not wrap. */
#include "loop/timeslice.h"

#include "base/banned.h"

#include <stdint.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Well below the usual 3 to 4 ms, but long enough that a computing worker is not switched all the
 * time. */
#define TURN_NS 500000

/* The kernel's struct sched_attr in its first version. */
struct attr {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

void agx_timeslice_shorten(void)
{
    struct attr a = { .size = sizeof(a) };

    /* Policy and niceness stay unchanged; only the ordinary scheduling class has a slice to
     * shorten. */
    if (syscall(SYS_sched_getattr, 0, &a, sizeof(a), 0) < 0 || a.policy != SCHED_OTHER)
        return;
    a.runtime = TURN_NS;
    (void)syscall(SYS_sched_setattr, 0, &a, 0);
}
