/*
 * output.h: one stream of a command's output, from the daemon to a descriptor. It knows how far it
 * came, so that it can go on over another connection.
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
    uint64_t offset; /* what was written so far ends here */
    struct agx_rpc_reply *reply;
    bool over;
    /* Says whether the descriptor may be written to now, or it is time to stop; NULL: it may.
     * False: stop. */
    bool (*may_write)(void *user, int fd);
    void *user;
};

/* Asks for it from `offset` on. */
int agx_output_start(struct agx_output *o, struct agx_ctl *ctl,
                     struct agx_error **err) AGX_MUST_CHECK;
/* Takes one message, waiting for it at most `wait_ms` (-1: as long as it takes). 1: it was written;
 * AGX_RPC_NOTHING_YET; 0: it is over. */
int agx_output_take(struct agx_output *o, struct agx_ctl *ctl, int wait_ms,
                    struct agx_error **err) AGX_MUST_CHECK;
/* Nothing more of this connection; start() may follow. */
void agx_output_stop(struct agx_output *o);

#endif
