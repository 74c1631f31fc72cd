/*
 * attach.h: an attached command: its output is written here, our input is sent to it, and an
 * interruption cancels it.
 *
 * States: it runs; it was cancelled by us (`signal`), and has AGX_CLI_CANCEL_MS for its last
 * output; it has ended and the rest of its output is being read.
 *
 * Invariants:
 *  (1) after a lost connection, output continues exactly where it was;
 *  (2) at most one piece of input is in flight, and the next is collected meanwhile: the slower the
 *      connection, the larger the pieces. A command that reads slowly blocks us when that buffer is
 *      full, and after a lost connection we know whether a piece may be lost.
 */
#ifndef AGX_CLI_ATTACH_H
#define AGX_CLI_ATTACH_H

#include "cli/output.h"
#include "wire/view.h"

struct agx_attach {
    struct agx_ctl *ctl;
    const char *exec_id; /* borrowed; NULL: none yet */
    int signal_fd;       /* SIGINT and SIGTERM are blocked and arrive here */
    int signal;          /* the received signal; 0: none */
    uint64_t due_ms;     /* after a signal: when we stop waiting */
    bool abandoned;      /* we no longer wait for the end */
    struct agx_output out[2];
    struct agx_grpc_reply *wait;
    bool ended;
    struct agx_exec_view view; /* once it has ended */
    struct agx_grpc_reply *cancel;
    bool has_input;       /* there is more to read or to send */
    bool input_over;      /* end of input was read */
    struct agx_buf ahead; /* read but not yet sent */
    struct agx_grpc_reply *input;
};

/* Blocks the two signals from now on. Free `s` in either case. */
int agx_attach_init(struct agx_attach *s, struct agx_ctl *ctl,
                    struct agx_error **err) AGX_MUST_CHECK;
void agx_attach_done(struct agx_attach *s);

/* For a call before the command exists: as agx_ctl_call(), but a signal ends it soon, with
 * -AGX_CANCELLED. */
int agx_attach_call(struct agx_attach *s, const char *method, const struct agx_buf *request,
                    struct agx_buf *reply, struct agx_error **err) AGX_MUST_CHECK;

/* Runs until the command's end, and returns the exit status. */
int agx_attach_run(struct agx_attach *s, const char *exec_id, bool has_input, int *ret_status,
                   struct agx_error **err) AGX_MUST_CHECK;

/* Our exit status for an ended command; `signal`: the one for which we cancelled it. */
int agx_attach_status(const struct agx_exec *e, int signal);

#endif
