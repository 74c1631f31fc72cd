/*
 * upload.h: sends the bytes of an import to the daemon, in one call.
 *
 *     agx_upload_begin(&u, err);
 *     agx_upload_put(&u, bytes, err);        repeat for all bytes
 *     agx_upload_end(&u, &answer, err);
 *     agx_upload_done(&u);                   cancels an unfinished import
 *
 * SIGINT and SIGTERM end it with -AGX_CANCELLED. It waits with poll(2) while the daemon takes no
 * more, and shows its progress.
 */
#ifndef AGX_CLI_UPLOAD_H
#define AGX_CLI_UPLOAD_H

#include "cli/ctl.h"
#include "cli/progress.h"

struct agx_upload {
    struct agx_ctl *ctl;
    const char *name;              /* the image's; NULL: the archive's */
    uint64_t total;                /* total bytes; 0: unknown */
    struct agx_progress *progress; /* has begun */
    int signal_fd;                 /* -1 before the beginning */
    int signal;                    /* the received signal; 0: none */
    struct agx_grpc_reply *reply;  /* NULL: not begun */
    struct agx_buf message;        /* of one piece */
    uint64_t sent;
};

/* `u` has -1 as signal_fd and zeros in unset fields. */
int agx_upload_begin(struct agx_upload *u, struct agx_error **err) AGX_MUST_CHECK;

/* Sends all bytes, blocking. A refusal of the daemon is returned as the error. */
int agx_upload_put(struct agx_upload *u, struct agx_str bytes,
                   struct agx_error **err) AGX_MUST_CHECK;

/* Waits until `fd` has input or is at its end. */
int agx_upload_wait(struct agx_upload *u, int fd, struct agx_error **err) AGX_MUST_CHECK;

/* Ends the stream and appends the daemon's answer. */
int agx_upload_end(struct agx_upload *u, struct agx_buf *answer,
                   struct agx_error **err) AGX_MUST_CHECK;

void agx_upload_done(struct agx_upload *u);

#endif
