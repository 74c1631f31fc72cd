#include "loop/timeslice.h"
#include "tests/support/test.h"

#include <sched.h>
#include <sys/resource.h>

TEST(timeslice_shorten_keeps_policy_and_niceness)
{
    int policy = sched_getscheduler(0), nice = getpriority(PRIO_PROCESS, 0);

    agx_timeslice_shorten();
    ASSERT_INT(policy, sched_getscheduler(0));
    ASSERT_INT(nice, getpriority(PRIO_PROCESS, 0));
}
