/*
 * control_backup.c: Backup: the store writes a copy of itself into an unnamed file in the
 * data directory, which is then sent in pieces.
 *
 *     COPY --done--> SEND --end of the file--> OK
 *
 * One backup at a time, because each needs as much disk as the store. When the client leaves,
 * sending ends; a copy in progress is completed and dropped.
 */
#include "daemon/service/service_internal.h"

#include "base/mem.h"
#include "wire/reply.h"

#include <errno.h>
#include <fcntl.h>

#include "base/banned.h"

struct backup {
    struct agx_service *service;
    struct agx_grpc_call *call; /* NULL: it has ended */
    struct agx_slice slice;
    int fd;
    off_t at;
    bool copied;
};

static void backup_free(struct backup *b)
{
    agx_slices_remove(&b->service->slices, &b->slice);
    b->service->backing_up = false;
    agx_closep(&b->fd);
    free(b);
}

static void backup_fail(struct backup *b, struct agx_error **take_error)
{
    agx_service_fail(b->call, take_error, &(struct agx_refusal){ 0 });
    backup_free(b);
}

/* 1: sent a piece; 2: the same, but the client must read it before the next; 0: the end. */
static int send_piece(struct backup *b, struct agx_error **err)
{
    struct agx_buf *out = agx_service_scratch(b->service);
    uint8_t data[AGX_BACKUP_CHUNK];
    ssize_t n = pread(b->fd, data, sizeof(data), b->at);
    int r;

    if (n < 0)
        return agx_error_errno(err, errno, "read the copy of the store");
    if (n == 0)
        return 0;
    b->at += n;
    r = agx_reply_backup(out, agx_str_bytes(data, (size_t)n));
    if (r == 0)
        r = agx_grpc_call_send(b->call, agx_buf_peek(out));
    if (r < 0)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED,
                             "too much data is queued on this connection to send a backup");
    return r + 1;
}

static void run_slice(struct agx_slice *slice)
{
    struct backup *b = container_of(slice, struct backup, slice);
    struct agx_error *err = NULL;
    int r = send_piece(b, &err);

    if (r < 0) {
        backup_fail(b, &err);
    } else if (r == 0) {
        agx_grpc_call_finish(b->call, &(struct agx_grpc_status){ .code = AGX_OK });
        backup_free(b);
    } else if (r == 1) {
        agx_slices_add(&b->service->slices, slice);
    }
}

static void on_copied(void *user, struct agx_error *error)
{
    struct backup *b = user;

    b->copied = true;
    if (!b->call) {
        agx_error_free(error);
        backup_free(b);
    } else if (error) {
        backup_fail(b, &error);
    } else {
        agx_slices_add(&b->service->slices, &b->slice);
    }
}

static void on_writable(void *user)
{
    struct backup *b = user;

    agx_slices_add(&b->service->slices, &b->slice);
}

static void on_ended(void *user, enum agx_code code)
{
    struct backup *b = user;

    (void)code;
    b->call = NULL;
    if (b->copied)
        backup_free(b);
}

static const struct agx_grpc_call_ops backup_ops = { .ended = on_ended, .writable = on_writable };

static int backup_start(struct agx_service *s, struct backup *b, struct agx_error **err)
{
    if (s->backing_up)
        return agx_error_set(err, AGX_FAILED_PRECONDITION, "another backup is being made");
    b->fd = open(s->config.data_dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (b->fd < 0)
        return agx_error_errno(err, errno, "make a file for the backup in '%s'",
                               s->config.data_dir);
    return agx_store_backup(s->config.store, b->fd, on_copied, b, err);
}

void agx_service_backup(void *service, struct agx_grpc_call *call, struct agx_str request)
{
    struct agx_service *s = service;
    struct backup *b = agx_new(struct backup);
    struct agx_error *err = NULL;

    (void)request; /* it has no fields */
    *b = (struct backup){ .service = s, .call = call, .slice.run = run_slice, .fd = -1 };
    if (backup_start(s, b, &err) < 0) {
        agx_service_fail(call, &err, &(struct agx_refusal){ 0 });
        agx_closep(&b->fd);
        free(b);
        return;
    }
    s->backing_up = true;
    agx_grpc_call_watch(call, &backup_ops, b);
    agx_grpc_call_begin(call);
}
