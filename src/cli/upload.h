/*
 * upload.h: the bytes of an import on their way to the daemon, in one call.
 *
 *     agx_upload_begin(&u, err);
 *     agx_upload_put(&u, bytes, err);        as often as there are some
 *     agx_upload_end(&u, &answer, err);
 *     agx_upload_done(&u);                   cancels what has not come to its end
 *
 * SIGINT and SIGTERM end it with -AGX_CANCELLED. It waits with poll(2) where the daemon does not
 * take more, and says how far it is.
 */
#ifndef AGX_CLI_UPLOAD_H
#define AGX_CLI_UPLOAD_H

#include "cli/ctl.h"
#include "cli/progress.h"

struct agx_upload {
    struct agx_ctl *ctl;
    const char *name;              /* of the image; NULL: its archive's */
    uint64_t total;                /* bytes that will come; 0: not known */
    struct agx_progress *progress; /* has begun */
    int signal_fd;                 /* -1 before the beginning */
    int signal;                    /* the one that came; 0: none */
    struct agx_rpc_reply *reply;   /* NULL: it has not begun */
    struct agx_buf message;        /* of one piece */
    uint64_t sent;
};

/* Initialised with -1 for signal_fd and zeros for what is not said. */
int agx_upload_begin(struct agx_upload *u, struct agx_error **err) AGX_MUST_CHECK;

/* Takes all of them, and waits for that. The daemon's refusal is its error. */
int agx_upload_put(struct agx_upload *u, struct agx_str bytes,
                   struct agx_error **err) AGX_MUST_CHECK;

/* Waits until there is something to read there, or its end. */
int agx_upload_wait(struct agx_upload *u, int fd, struct agx_error **err) AGX_MUST_CHECK;

/* That was all; the daemon's answer is appended. */
int agx_upload_end(struct agx_upload *u, struct agx_buf *answer,
                   struct agx_error **err) AGX_MUST_CHECK;

void agx_upload_done(struct agx_upload *u);

#endif
