/* output.c: one stream of a command's output. */
#include "cli/output.h"

#include "base/limits.h"
#include "wire/method.h"
#include "wire/view.h"

#include <limits.h>
#include <poll.h>
#include <stdio.h>

#include "base/banned.h"

int agx_output_start(struct agx_output *o, struct agx_ctl *ctl, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf request = AGX_BUF_INIT(AGX_GRPC_MESSAGE_MAX);
    const struct agx_output_request q = {
        .exec_id = (char *)o->exec_id, .stream = o->stream, .offset = o->offset, .follow = o->follow
    };

    if (agx_output_request_encode(&request, &q) < 0)
        return agx_error_no_memory(err);
    return agx_ctl_start(ctl, AGX_METHOD_READ_EXEC_OUTPUT, &request, &o->reply, err);
}

void agx_output_stop(struct agx_output *o)
{
    o->reply = agx_grpc_reply_close(o->reply);
}

/* Writes pieces that fit into a pipe with any room, so that a signal is noticed in between. Others
 * may have made the descriptor non-blocking. */
static int write_all(struct agx_output *o, struct agx_str bytes, struct agx_error **err)
{
    while (bytes.len > 0) {
        struct pollfd p = { .fd = o->fd, .events = POLLOUT };
        ssize_t n;

        if (o->may_write && !o->may_write(o->user, o->fd))
            return 0;
        n = write(o->fd, bytes.ptr, AGX_MIN(bytes.len, (size_t)PIPE_BUF));
        if (n < 0 && errno == EAGAIN)
            (void)poll(&p, 1, -1);
        else if (n < 0 && errno != EINTR)
            return agx_error_wrap(err, agx_error_errno(err, errno, "write to descriptor %d", o->fd),
                                  "the command's output is lost");
        if (n > 0)
            bytes = agx_str_skip(bytes, (size_t)n);
    }
    return 0;
}

/* -AGX_ABORTED: it cannot be written. */
static int pass_on(struct agx_output *o, struct agx_str message, struct agx_error **err)
{
    struct agx_output_view v = { 0 };
    int r = agx_output_view_decode(&v, message, err);

    if (r < 0)
        return r;
    if (v.skipped > 0)
        fprintf(stderr, "agentix: %llu bytes of the %s were not kept\n",
                (unsigned long long)v.skipped,
                o->stream == AGX_OUTPUT_STDOUT ? "output" : "error output");
    r = write_all(o, agx_buf_peek(&v.data), err) < 0 ? -AGX_ABORTED : 0;
    o->offset = v.offset + v.data.len;
    agx_output_view_done(&v);
    return r < 0 ? r : 1;
}

int agx_output_take(struct agx_output *o, struct agx_ctl *ctl, int wait_ms, struct agx_error **err)
{
    struct agx_str message;
    int r = agx_grpc_reply_next(o->reply, wait_ms, &message, err);

    if (r == 1)
        return pass_on(o, message, err);
    if (r == 0)
        o->over = true;
    return r < 0 ? agx_ctl_explain(ctl, r, agx_grpc_reply_peek_details(o->reply), err) : r;
}
