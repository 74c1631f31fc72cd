/* gate.c: see gate.h. */
#include "init/gate.h"

#include "base/fd.h"
#include "init/report.h"

#include "base/banned.h"

_Noreturn void agx_gate_run(int report_fd, char **argv)
{
    agx_report_await_go(report_fd);
    (void)execv(argv[0], argv);
    agx_report_fail(report_fd, AGX_STAGE_CONTROL, argv[0]);
}
