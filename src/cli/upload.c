/* upload.c: an import's client stream. */
#include "cli/upload.h"

#include "base/fd.h"
#include "base/limits.h"
#include "cli/interrupt.h"
#include "cli/show.h"
#include "wire/image_request.h"
#include "wire/method.h"

#include <poll.h>

#include "base/banned.h"

int agx_upload_begin(struct agx_upload *u, struct agx_error **err)
{
    const struct agx_grpc_request q = { .path = AGX_METHOD_IMPORT_IMAGE, .more = true };
    int r = agx_interrupt_open(&u->signal_fd, err);

    u->message.max = AGX_GRPC_MESSAGE_MAX;
    return r < 0 ? r : agx_grpc_client_start(u->ctl->client, &q, &u->reply, err);
}

static void upload_note(struct agx_upload *u)
{
    _cleanup_buf_ struct agx_buf line = AGX_BUF_INIT(sizeof(u->progress->note) - 1);
    char sent[AGX_SHOW_SIZE], total[AGX_SHOW_SIZE];
    int r = agx_show_bar(&line, u->sent, u->total);

    if (r == 0)
        r = agx_buf_printf(&line, "%sSending %s", line.len > 0 ? " " : "",
                           agx_show_bytes(u->sent, sent));
    if (r == 0 && u->total > 0)
        r = agx_buf_printf(&line, " of %s", agx_show_bytes(u->total, total));
    if (r == 0)
        agx_progress_note(u->progress, agx_buf_peek(&line));
}

/* Checks for an answer. AGX_GRPC_NOTHING_YET, or 1 with the answer; an end without one is an error.
 */
static int upload_look(struct agx_upload *u, struct agx_str *ret_answer, struct agx_error **err)
{
    int r = agx_grpc_reply_next(u->reply, 0, ret_answer, err);

    if (r == 0)
        return agx_error_set(err, AGX_INTERNAL, "the daemon ended the import without an answer");
    return r < 0 ? agx_ctl_explain(u->ctl, r, agx_grpc_reply_peek_details(u->reply), err) : r;
}

/* Waits for the daemon, a signal, or input at `fd` (-1: no input). 1: there is input; 0: another
 * event. */
static int wait_some(struct agx_upload *u, int fd, struct agx_error **err)
{
    struct pollfd fds[] = {
        { .fd = u->signal_fd, .events = POLLIN },
        { .fd = agx_grpc_client_fd(u->ctl->client),
          .events = agx_grpc_client_events(u->ctl->client) },
        { .fd = fd, .events = POLLIN },
    };

    (void)poll(fds, AGX_ARRAY_LEN(fds), agx_progress_wait_ms(u->progress));
    agx_progress_tick(u->progress);
    u->signal = agx_interrupt_take(u->signal_fd);
    if (u->signal != 0)
        return agx_error_set(err, AGX_CANCELLED, "interrupted: nothing was imported");
    return fds[2].revents != 0;
}

/* An answer before the end is an error. */
static int upload_check(struct agx_upload *u, struct agx_error **err)
{
    struct agx_str answer;
    int r = upload_look(u, &answer, err);

    if (r == 1)
        return agx_error_set(err, AGX_INTERNAL, "the daemon answered before the end of the import");
    return r < 0 ? r : 0;
}

int agx_upload_put(struct agx_upload *u, struct agx_str bytes, struct agx_error **err)
{
    int r = 0;

    while (r >= 0 && bytes.len > 0) {
        struct agx_str piece = { bytes.ptr, AGX_MIN(bytes.len, AGX_CLI_IMPORT_CHUNK) };

        agx_buf_clear(&u->message);
        if (agx_import_request_encode(&u->message, u->sent == 0 ? u->name : NULL, piece) < 0)
            return agx_error_no_memory(err);
        r = agx_grpc_reply_send(u->reply, agx_buf_peek(&u->message), err);
        bytes = agx_str_skip(bytes, piece.len);
        u->sent += piece.len;
        upload_note(u);
        if (r == 0)
            r = upload_check(u, err);
        while (r == 0 && agx_grpc_reply_unsent(u->reply) >= AGX_CLI_IMPORT_CHUNK) {
            r = wait_some(u, -1, err);
            if (r >= 0)
                r = upload_check(u, err);
        }
    }
    return r;
}

int agx_upload_wait(struct agx_upload *u, int fd, struct agx_error **err)
{
    int r = 0;

    while (r == 0) {
        r = wait_some(u, fd, err);
        if (r == 0)
            r = upload_check(u, err);
    }
    return r < 0 ? r : 0;
}

/* After the answer: waits for the end of the call. */
static int upload_finish(struct agx_upload *u, struct agx_error **err)
{
    struct agx_str message;
    int r = agx_grpc_reply_next(u->reply, -1, &message, err);

    return r > 0 ? agx_error_set(err, AGX_INTERNAL, "the daemon answered the import twice") : r;
}

int agx_upload_end(struct agx_upload *u, struct agx_buf *answer, struct agx_error **err)
{
    struct agx_str message;
    int r;

    agx_grpc_reply_send_end(u->reply);
    agx_progress_note(u->progress, AGX_STR("Unpacking"));
    while ((r = upload_look(u, &message, err)) == AGX_GRPC_NOTHING_YET) {
        r = wait_some(u, -1, err);
        if (r < 0)
            return r;
    }
    if (r < 0)
        return r;
    return agx_buf_append(answer, message) < 0 ? agx_error_no_memory(err) : upload_finish(u, err);
}

void agx_upload_done(struct agx_upload *u)
{
    u->reply = agx_grpc_reply_close(u->reply);
    agx_buf_done(&u->message);
    agx_closep(&u->signal_fd);
}
