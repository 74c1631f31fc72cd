/*
 * report.h: reports to the daemon from a process on its way into a sandbox: codec/initproto_plan.h.
 */
#ifndef AGX_INIT_REPORT_H
#define AGX_INIT_REPORT_H

#include "codec/initproto_plan.h"

/* With at most AGX_PLAN_REPORT_FDS_MAX descriptors. False: the daemon is gone. */
bool agx_report_send(int fd, const struct agx_plan_report *r, const int *fds, size_t n_fds);

/* Reports the current errno and ends the process. `what` may be NULL. */
_Noreturn void agx_report_fail(int fd, enum agx_plan_stage stage, const char *what);

/* Waits for the daemon's GO; ends the process if the daemon is gone. */
void agx_report_await_go(int fd);

#endif
