/* attach.c: an attached command. */
#include "cli/attach.h"

#include "base/clock.h"
#include "base/limits.h"
#include "cli/interrupt.h"
#include "wire/method.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/banned.h"

/* One read of the input: what a pipe holds. */
enum { INPUT_BYTES = 64 << 10 };

/* ---- signals ---- */

int agx_attach_init(struct agx_attach *s, struct agx_ctl *ctl, struct agx_error **err)
{
    *s = (struct agx_attach){ .ctl = ctl,
                              .signal_fd = -1,
                              .due_ms = UINT64_MAX,
                              .ahead = AGX_BUF_INIT(AGX_BACKEND_WRITE_MAX) };
    return agx_interrupt_open(&s->signal_fd, err);
}

/* If this fails the connection is lost, which the other streams report. */
static void start_cancel(struct agx_attach *s)
{
    _cleanup_buf_ struct agx_buf request = AGX_BUF_INIT(AGX_GRPC_MESSAGE_MAX);

    if (agx_id_encode(&request, s->exec_id) < 0 ||
        agx_ctl_start(s->ctl, AGX_METHOD_CANCEL_EXEC, &request, &s->cancel, NULL) < 0)
        s->abandoned = true;
}

/* The first signal cancels the command, the second stops waiting for its end. */
static void take_signal(struct agx_attach *s)
{
    int signo = agx_interrupt_take(s->signal_fd);

    if (signo == 0)
        return;
    if (s->signal != 0)
        s->abandoned = true;
    else if (s->exec_id && !s->ended)
        start_cancel(s);
    s->signal = signo;
    s->due_ms = agx_clock_ms() + AGX_CLI_CANCEL_MS;
}

static bool is_given_up(const struct agx_attach *s)
{
    return s->abandoned || agx_clock_ms() >= s->due_ms;
}

/* -1: for ever. */
static int patience_ms(const struct agx_attach *s)
{
    uint64_t now = agx_clock_ms();

    if (s->due_ms == UINT64_MAX)
        return -1;
    return s->due_ms > now ? (int)(s->due_ms - now) : 0;
}

/* Waits until output can be written; a signal ends the wait, and later the writing. */
static bool may_write(void *user, int fd)
{
    struct agx_attach *s = user;

    while (!is_given_up(s)) {
        struct pollfd fds[] = { { .fd = fd, .events = POLLOUT },
                                { .fd = s->signal_fd, .events = POLLIN } };

        (void)poll(fds, AGX_ARRAY_LEN(fds), patience_ms(s));
        if (fds[1].revents)
            take_signal(s);
        if (fds[0].revents)
            return true;
    }
    return false;
}

/* Waits for the daemon, a signal, or input. */
static void wait_for_something(struct agx_attach *s, bool with_input, bool *ret_input)
{
    struct pollfd fds[] = {
        { .fd = s->signal_fd, .events = POLLIN },
        { .fd = agx_grpc_client_fd(s->ctl->client),
          .events = agx_grpc_client_events(s->ctl->client) },
        { .fd = with_input ? STDIN_FILENO : -1, .events = POLLIN },
    };

    *ret_input = false;
    if (poll(fds, AGX_ARRAY_LEN(fds), patience_ms(s)) < 0)
        return;
    if (fds[0].revents)
        take_signal(s);
    *ret_input = fds[2].revents != 0;
}

int agx_attach_call(struct agx_attach *s, const char *method, const struct agx_buf *request,
                    struct agx_buf *reply, struct agx_error **err)
{
    struct agx_grpc_reply *answer = NULL;
    struct agx_str message;
    bool input;
    int r = agx_ctl_start(s->ctl, method, request, &answer, err);

    if (r < 0)
        return r;
    while ((r = agx_grpc_reply_next(answer, 0, &message, err)) == AGX_GRPC_NOTHING_YET &&
           !is_given_up(s))
        wait_for_something(s, false, &input);
    if (r == AGX_GRPC_NOTHING_YET)
        r = agx_error_set(err, AGX_CANCELLED, "interrupted before the daemon answered");
    else if (r == 0)
        r = agx_error_set(err, AGX_INTERNAL, "the daemon sent an empty answer");
    else if (r > 0)
        r = agx_buf_append(reply, message) < 0 ? agx_error_no_memory(err) : 0;
    else
        r = agx_ctl_explain(s->ctl, r, agx_grpc_reply_peek_details(answer), err);
    (void)agx_grpc_reply_close(answer);
    return r;
}

/* ---- requests ---- */

static int start_wait(struct agx_attach *s, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf request = AGX_BUF_INIT(AGX_GRPC_MESSAGE_MAX);
    const struct agx_wait_request q = { .id = (char *)s->exec_id, .timeout_ns = AGX_NS_UNSET };

    if (agx_wait_exec_encode(&request, &q) < 0)
        return agx_error_no_memory(err);
    return agx_ctl_start(s->ctl, AGX_METHOD_WAIT_EXEC, &request, &s->wait, err);
}

/* Starts all streams that have not ended, at first and over a new connection. */
static int start_all(struct agx_attach *s, struct agx_error **err)
{
    int r = s->ended ? 0 : start_wait(s, err);

    for (size_t i = 0; r == 0 && i < AGX_ARRAY_LEN(s->out); i++) {
        if (!s->out[i].over)
            r = agx_output_start(&s->out[i], s->ctl, err);
    }
    return r;
}

static void stop_all(struct agx_attach *s)
{
    for (size_t i = 0; i < AGX_ARRAY_LEN(s->out); i++)
        agx_output_stop(&s->out[i]);
    s->wait = agx_grpc_reply_close(s->wait);
    s->cancel = agx_grpc_reply_close(s->cancel);
    s->input = agx_grpc_reply_close(s->input);
}

void agx_attach_done(struct agx_attach *s)
{
    stop_all(s);
    agx_exec_view_done(&s->view);
    agx_buf_done(&s->ahead);
    agx_closep(&s->signal_fd);
}

static bool can_send(const struct agx_attach *s)
{
    return s->has_input && !s->input && !s->ended && (s->ahead.len > 0 || s->input_over);
}

static bool can_read(const struct agx_attach *s)
{
    return s->has_input && !s->input_over && !s->ended && s->ahead.len < s->ahead.max;
}

static int send_input(struct agx_attach *s, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf request = AGX_BUF_INIT(AGX_GRPC_MESSAGE_MAX);
    /* The cast is safe: encoding only reads it. */
    const struct agx_input_request q = { .exec_id = (char *)s->exec_id,
                                         .data = s->ahead,
                                         .eof = s->input_over };

    if (agx_input_request_encode(&request, &q) < 0)
        return agx_error_no_memory(err);
    s->has_input = !s->input_over;
    agx_buf_clear(&s->ahead);
    return agx_ctl_start(s->ctl, AGX_METHOD_WRITE_EXEC_INPUT, &request, &s->input, err);
}

static int read_input(struct agx_attach *s, struct agx_error **err)
{
    size_t room = AGX_MIN((size_t)INPUT_BYTES, s->ahead.max - s->ahead.len);
    ssize_t n;

    if (agx_buf_reserve(&s->ahead, room) < 0)
        return agx_error_no_memory(err);
    n = read(STDIN_FILENO, s->ahead.data + s->ahead.len, room);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return 0;
    if (n < 0)
        fprintf(stderr, "agentix: standard input: %s; the command gets no more input\n",
                strerror(errno));
    s->input_over = n <= 0;
    s->ahead.len += n > 0 ? (size_t)n : 0;
    return 0;
}

/* ---- answers ---- */

/* Each returns 1 after an answer, 0 without one. */

static int take_output(struct agx_attach *s, struct agx_output *o, struct agx_error **err)
{
    int r;

    if (!o->reply)
        return 0;
    r = agx_output_take(o, s->ctl, 0, err);
    if (o->over)
        agx_output_stop(o);
    return r < 0 ? r : r != AGX_GRPC_NOTHING_YET;
}

static int take_wait(struct agx_attach *s, struct agx_error **err)
{
    struct agx_str message;
    int r;

    if (!s->wait)
        return 0;
    r = agx_grpc_reply_next(s->wait, 0, &message, err);
    if (r == AGX_GRPC_NOTHING_YET)
        return 0;
    if (r == 0)
        r = agx_error_set(err, AGX_INTERNAL, "the daemon ended the wait without an answer");
    else if (r > 0)
        r = agx_exec_view_decode(&s->view, message, NULL, err);
    else
        r = agx_ctl_explain(s->ctl, r, agx_grpc_reply_peek_details(s->wait), err);
    if (r < 0)
        return r;
    s->ended = true;
    s->wait = agx_grpc_reply_close(s->wait);
    return 1;
}

/* A command that ended by itself keeps its exit code. */
static int take_cancel(struct agx_attach *s, struct agx_error **err)
{
    struct agx_error *why = NULL;
    struct agx_str message;
    int r;

    if (!s->cancel)
        return 0;
    r = agx_grpc_reply_next(s->cancel, 0, &message, &why);
    if (r == AGX_GRPC_NOTHING_YET)
        return 0;
    if (r < 0)
        r = agx_ctl_explain(s->ctl, r, agx_grpc_reply_peek_details(s->cancel), &why);
    s->cancel = agx_grpc_reply_close(s->cancel);
    if (r < 0 && strcmp(s->ctl->reason, "EXEC_ALREADY_TERMINAL") == 0) {
        s->signal = 0;
        s->due_ms = UINT64_MAX;
        r = 0;
    }
    if (r >= 0)
        agx_error_free(why);
    else
        agx_error_propagate(err, &why);
    return r < 0 ? r : 1;
}

/* Input that the command no longer reads is not an error: it ended or closed its stdin. */
static int take_input(struct agx_attach *s, struct agx_error **err)
{
    struct agx_error *why = NULL;
    struct agx_str message;
    int r;

    if (!s->input)
        return 0;
    r = agx_grpc_reply_next(s->input, 0, &message, &why);
    if (r == AGX_GRPC_NOTHING_YET)
        return 0;
    if (r == -AGX_UNAVAILABLE) {
        agx_error_free(why);
        return agx_error_set(err, AGX_DATA_LOSS,
                             "the connection was lost while input was sent to the command, which "
                             "keeps running; `agentix exec logs -f %s` follows it",
                             s->exec_id);
    }
    s->input = agx_grpc_reply_close(s->input);
    if (r < 0)
        s->has_input = false;
    if (r < 0 && r != -AGX_FAILED_PRECONDITION && r != -AGX_NOT_FOUND) {
        agx_error_propagate(err, &why);
        return r;
    }
    agx_error_free(why);
    return 1;
}

/* Checks each stream once. */
static int take_all(struct agx_attach *s, struct agx_error **err)
{
    int came = 0, r = take_wait(s, err);

    if (r >= 0) {
        came |= r;
        r = take_cancel(s, err);
    }
    if (r >= 0) {
        came |= r;
        r = take_input(s, err);
    }
    for (size_t i = 0; r >= 0 && i < AGX_ARRAY_LEN(s->out); i++) {
        came |= r;
        r = take_output(s, &s->out[i], err);
    }
    return r < 0 ? r : came | r;
}

static bool is_ready(const struct agx_grpc_reply *r)
{
    return r && agx_grpc_reply_ready(r);
}

static bool something_is_ready(const struct agx_attach *s)
{
    return is_ready(s->wait) || is_ready(s->cancel) || is_ready(s->input) ||
           is_ready(s->out[0].reply) || is_ready(s->out[1].reply);
}

/* ---- the main loop ---- */

static bool is_over(const struct agx_attach *s)
{
    return (s->ended && s->out[0].over && s->out[1].over) || is_given_up(s);
}

static int attach_turn(struct agx_attach *s, struct agx_error **err)
{
    bool input;
    int r = take_all(s, err);

    if (r == 0 && !is_over(s) && !something_is_ready(s)) {
        wait_for_something(s, can_read(s), &input);
        if (input)
            r = read_input(s, err);
    }
    if (r >= 0 && can_send(s))
        r = send_input(s, err);
    return r;
}

/* While waiting for the daemon, signals have their default action. */
static int go_on(struct agx_attach *s, struct agx_error **err)
{
    sigset_t set, before;
    int r;

    stop_all(s);
    if (s->signal != 0)
        return -AGX_UNAVAILABLE; /* after a cancel we do not wait for a new connection */
    agx_interrupt_set(&set);
    (void)sigprocmask(SIG_UNBLOCK, &set, &before);
    r = agx_ctl_again(s->ctl, err);
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return r < 0 ? r : start_all(s, err);
}

int agx_attach_status(const struct agx_exec *e, int signal)
{
    if (e->state == AGX_EXEC_FINISHED)
        return e->exit_code;
    if (e->state == AGX_EXEC_FAILED && e->exit_code > 0)
        return e->exit_code & 0xff ? e->exit_code & 0xff : AGX_EXIT_NO_CODE;
    return signal ? AGX_EXIT_SIGNALLED + signal : AGX_EXIT_NO_CODE;
}

/* Prints why a command failed, unless it is its exit code. */
static void tell_why(const struct agx_exec *e)
{
    struct agx_error *err = NULL;

    if (e->state == AGX_EXEC_CANCELLED)
        fputs("agentix: the command was cancelled\n", stderr);
    if (e->state != AGX_EXEC_FAILED ||
        (e->exit_code > 0 && agx_text_eq(e->error_code, AGX_FAILED_EXEC_RUN)))
        return;
    (void)agx_error_set(&err, AGX_ABORTED, "%s (%s)", agx_text(e->error_message),
                        agx_text(e->error_code));
    (void)agx_cli_fail(err);
}

/* Cancels a command whose output cannot be written. */
static void give_it_up(struct agx_attach *s)
{
    _cleanup_buf_ struct agx_buf request = AGX_BUF_INIT(AGX_GRPC_MESSAGE_MAX);
    _cleanup_buf_ struct agx_buf reply = AGX_BUF_INIT(AGX_GRPC_MESSAGE_MAX);

    if (agx_id_encode(&request, s->exec_id) == 0 &&
        agx_ctl_call(s->ctl, AGX_METHOD_CANCEL_EXEC, &request, &reply, NULL) == 0)
        fputs("agentix: the command is cancelled, because its output cannot be written\n", stderr);
}

int agx_attach_run(struct agx_attach *s, const char *exec_id, bool has_input, int *ret_status,
                   struct agx_error **err)
{
    int r;

    s->exec_id = exec_id;
    s->has_input = has_input;
    for (size_t i = 0; i < AGX_ARRAY_LEN(s->out); i++)
        s->out[i] = (struct agx_output){ .exec_id = exec_id,
                                         .stream = i == 0 ? AGX_OUTPUT_STDOUT : AGX_OUTPUT_STDERR,
                                         .follow = true,
                                         .fd = i == 0 ? STDOUT_FILENO : STDERR_FILENO,
                                         .may_write = may_write,
                                         .user = s };
    r = start_all(s, err);
    if (r >= 0 && s->signal != 0) /* it came before the command existed */
        start_cancel(s);
    while (r >= 0 && !is_over(s)) {
        r = attach_turn(s, err);
        if (r == -AGX_UNAVAILABLE)
            r = go_on(s, err);
    }
    if (r == -AGX_ABORTED)
        give_it_up(s);
    if (r < 0 && s->signal == 0)
        return r;
    if (r < 0)
        (void)agx_cli_fail(AGX_TAKE_PTR(*err));
    if (s->ended && s->signal == 0)
        tell_why(&s->view.exec);
    *ret_status =
        s->ended ? agx_attach_status(&s->view.exec, s->signal) : AGX_EXIT_SIGNALLED + s->signal;
    return 0;
}
