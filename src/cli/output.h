/*
 * output.h: copies one stream of a command's output from the daemon to a descriptor. It tracks the
 * offset, so it can continue over another connection.
 */
#ifndef AGX_CLI_OUTPUT_H
#define AGX_CLI_OUTPUT_H

#include "cli/ctl.h"
#include "wire/control_request.h"

struct agx_output {
    const char *exec_id; /* borrowed */
    enum agx_output_stream stream;
    bool follow;
    int fd;          /* where it goes */
    uint64_t offset; /* bytes written so far */
    struct agx_grpc_reply *reply;
    bool over;
    /* Waits until the descriptor may be written to. False: stop writing. NULL: write at once.
     */
    bool (*may_write)(void *user, int fd);
    void *user;
};

/* Requests the output from `offset` on. */
int agx_output_start(struct agx_output *o, struct agx_ctl *ctl,
                     struct agx_error **err) AGX_MUST_CHECK;
/* Takes one message, waiting at most `wait_ms` (-1: without limit). 1: written;
 * AGX_GRPC_NOTHING_YET; 0: the end. */
int agx_output_take(struct agx_output *o, struct agx_ctl *ctl, int wait_ms,
                    struct agx_error **err) AGX_MUST_CHECK;
/* Ends the call on this connection; start() may follow. */
void agx_output_stop(struct agx_output *o);

#endif
