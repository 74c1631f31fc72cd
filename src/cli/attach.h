/*
 * attach.h: a command that runs while we stay: its output comes to us, our input goes to it, and
 * an interruption cancels it.
 *
 * States: it runs; it was cancelled by us (`signal`), and has AGX_CLI_CANCEL_MS for its last words;
 * it has ended and its output is being read to the end.
 *
 * Invariants:
 *  (1) output goes on behind a lost connection exactly where it was;
 *  (2) of the input one piece is on its way at most, and one is gathered meanwhile: the slower the
 *      way, the larger the pieces. A command that reads slowly holds us back when that is full, and
 *      when the connection is lost we know whether a piece is in doubt.
 */
#ifndef AGX_CLI_ATTACH_H
#define AGX_CLI_ATTACH_H

#include "cli/output.h"
#include "wire/view.h"

struct agx_attach {
    struct agx_ctl *ctl;
    const char *exec_id; /* borrowed; NULL: there is none yet */
    int signal_fd;       /* SIGINT and SIGTERM are blocked and arrive here */
    int signal;          /* the one that came; 0: none */
    uint64_t due_ms;     /* after a signal: the end of patience */
    bool abandoned;      /* nobody waits for the end any more */
    struct agx_output out[2];
    struct agx_rpc_reply *wait;
    bool ended;
    struct agx_exec_view view; /* once it has ended */
    struct agx_rpc_reply *cancel;
    bool has_input;       /* there is more to read, or to tell */
    bool input_over;      /* its end was read */
    struct agx_buf ahead; /* what was read and is not on its way yet */
    struct agx_rpc_reply *input;
};

/* Blocks the two signals from now on. `s` is to be done in either case. */
int agx_attach_init(struct agx_attach *s, struct agx_ctl *ctl,
                    struct agx_error **err) AGX_MUST_CHECK;
void agx_attach_done(struct agx_attach *s);

/* For a call before the command exists: as agx_ctl_call(), but ends soon after a signal, with
 * -AGX_CANCELLED. */
int agx_attach_call(struct agx_attach *s, const char *method, const struct agx_buf *request,
                    struct agx_buf *reply, struct agx_error **err) AGX_MUST_CHECK;

/* Stays until the end, and gives the exit status. */
int agx_attach_run(struct agx_attach *s, const char *exec_id, bool has_input, int *ret_status,
                   struct agx_error **err) AGX_MUST_CHECK;

/* The exit status that an ended command gives us; `signal`: the one that we cancelled it for. */
int agx_attach_status(const struct agx_exec *e, int signal);

#endif
