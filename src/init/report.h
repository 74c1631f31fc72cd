/*
 * report.h: what a process on its way into a sandbox tells the daemon: codec/initproto_plan.h.
 */
#ifndef AGX_INIT_REPORT_H
#define AGX_INIT_REPORT_H

#include "codec/initproto_plan.h"

/* With descriptors beside it, at most AGX_PLAN_REPORT_FDS_MAX. False: nobody is there. */
bool agx_report_send(int fd, const struct agx_plan_report *r, const int *fds, size_t n_fds);

/* Tells errno as it is now, and ends the process. `what` may be NULL. */
_Noreturn void agx_report_fail(int fd, enum agx_plan_stage stage, const char *what);

/* Until the daemon says GO; ends the process when it has gone away instead. */
void agx_report_await_go(int fd);

#endif
