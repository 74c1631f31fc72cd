/*
 * cmd_call.c: `agentix call`: one call with libagentix, in an event loop over three descriptors:
 * the runtime's, standard input (bidi) and signals.
 */
#include "base/banned.h"
#include "base/buf.h"
#include "base/limits.h"
#include "cli/call_options.h"
#include "cli/interrupt.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    READ_SIZE = 64 << 10,
    GOING = -1, /* no exit status yet */
};

struct run {
    const struct agx_call_command *command;
    struct agx_runtime *rt;
    struct agx_call *call;
    int signal_fd;
    bool interrupted;
    struct agx_buf input; /* stdin: an incomplete line, or lines that wait */
    bool input_over;      /* end of input */
    uint64_t line;        /* of the input, for messages */
};

static void cmd_call_complain(const struct run *r, const struct agx_error *err)
{
    const char *traceback = agx_error_traceback(err);
    char text[4096];

    fprintf(stderr, "agentix: %s\n", agx_error_format(err, text, sizeof(text)));
    if (r->command->traceback && traceback)
        fputs(traceback, stderr);
}

/* The same, and returns the exit status. Frees the error. */
static int cmd_call_fail(const struct run *r, struct agx_error *err)
{
    cmd_call_complain(r, err);
    agx_error_free(err);
    return AGX_EXIT_FAILED;
}

/* Prints and flushes one value on one line. GOING, or the exit status. */
static int print_value(const struct run *r, const void *bytes, size_t len)
{
    struct agx_error *err = NULL;
    struct agx_reader reader;
    char *json = NULL;
    bool good;

    agx_reader_init(&reader, bytes, len);
    if (agx_reader_json(&reader, &json, &err) < 0)
        return cmd_call_fail(r, err);
    good = puts(json) >= 0 && fflush(stdout) == 0;
    free(json);
    if (good)
        return GOING;
    perror("agentix: standard output");
    return AGX_EXIT_FAILED;
}

/* Prints all received items. */
static int take_all(struct run *r)
{
    struct agx_error *err = NULL;
    const void *bytes;
    size_t len;
    int status = GOING, got = AGX_TAKE_VALUE;

    while (status == GOING && got == AGX_TAKE_VALUE) {
        got = agx_call_take(r->call, &bytes, &len, &err);
        if (got == AGX_TAKE_VALUE)
            status = print_value(r, bytes, len);
        else if (got == AGX_TAKE_END)
            status = AGX_EXIT_OK;
        else if (got < 0)
            status = cmd_call_fail(r, err);
    }
    return status == AGX_EXIT_FAILED && r->interrupted ? AGX_EXIT_INTERRUPTED : status;
}

/* Sends a line of JSON; ignores empty lines. */
static int send_line(struct run *r, struct agx_str line)
{
    struct agx_writer *w;
    struct agx_error *err = NULL;
    const void *bytes;
    size_t len;
    int status = GOING;

    r->line++;
    if (agx_str_trim(line).len == 0 || agx_str_eq(agx_str_trim(line), AGX_STR("\r")))
        return GOING;
    w = agx_writer_new();
    if (agx_writer_json(w, line.ptr, line.len, &err) < 0 ||
        agx_writer_bytes(w, &bytes, &len, &err) < 0 ||
        agx_call_send(r->call, bytes, len, &err) < 0) {
        fprintf(stderr, "agentix: line %llu of the input:\n", (unsigned long long)r->line);
        status = cmd_call_fail(r, err);
    }
    agx_writer_free(w);
    return status;
}

/* Sends whole lines as far as the function accepts them; at the end of the input the rest, then the
 * end. */
static int send_lines(struct run *r)
{
    struct agx_error *err = NULL;
    int status = GOING;

    while (status == GOING && agx_call_can_send(r->call) && r->input.len > 0) {
        struct agx_str all = agx_buf_peek(&r->input);
        size_t n = agx_str_find(all, '\n');

        if (n == all.len && !r->input_over)
            break;
        status = send_line(r, (struct agx_str){ all.ptr, n });
        agx_buf_consume(&r->input, AGX_MIN(n + 1, all.len));
    }
    if (status == GOING && r->input_over && r->input.len == 0 &&
        agx_call_end_input(r->call, &err) < 0)
        status = cmd_call_fail(r, err);
    return status;
}

static int read_input(struct run *r)
{
    ssize_t n;

    if (agx_buf_reserve(&r->input, READ_SIZE) < 0) {
        fprintf(stderr, "agentix: line %llu of the input is too long\n",
                (unsigned long long)r->line + 1);
        return AGX_EXIT_FAILED;
    }
    n = read(STDIN_FILENO, r->input.data + r->input.len, READ_SIZE);
    if (n < 0 && errno != EINTR && errno != EAGAIN) {
        perror("agentix: standard input");
        return AGX_EXIT_FAILED;
    }
    if (n == 0)
        r->input_over = true;
    if (n > 0)
        r->input.len += (size_t)n;
    return GOING;
}

/* The first signal cancels the call, the second stops waiting for its end. */
static int on_signal(struct run *r)
{
    if (agx_interrupt_take(r->signal_fd) == 0)
        return GOING;
    if (r->interrupted)
        return AGX_EXIT_INTERRUPTED;
    r->interrupted = true;
    agx_call_cancel(r->call);
    return GOING;
}

/* Reads standard input only when its lines can be sent to the function. */
static bool wants_input(const struct run *r)
{
    return r->command->kind == AGX_CALL_BIDI && !r->input_over && agx_call_can_send(r->call);
}

/* Waits for events and handles them. */
static int cmd_call_turn(struct run *r)
{
    struct pollfd fds[] = {
        { .fd = r->signal_fd, .events = POLLIN },
        { .fd = wants_input(r) ? STDIN_FILENO : -1, .events = POLLIN },
        { .fd = agx_runtime_fd(r->rt), .events = agx_runtime_events(r->rt) },
    };
    int status = GOING;

    if (poll(fds, AGX_ARRAY_LEN(fds), agx_runtime_timeout_ms(r->rt)) < 0)
        return GOING; /* EINTR: try again */
    if (fds[0].revents)
        status = on_signal(r);
    if (status == GOING && fds[1].revents)
        status = read_input(r);
    agx_runtime_dispatch(r->rt);
    return status;
}

static int loop(struct run *r)
{
    int status = GOING;

    while (status == GOING) {
        status = take_all(r);
        if (status == GOING && r->command->kind == AGX_CALL_BIDI)
            status = send_lines(r);
        if (status == GOING)
            status = cmd_call_turn(r);
    }
    return status;
}

static int cmd_call_start(struct run *r, struct agx_error **err)
{
    const struct agx_call_command *c = r->command;
    struct agx_runtime_options runtime = AGX_RUNTIME_OPTIONS_INIT;
    struct agx_call_options call = AGX_CALL_OPTIONS_INIT;
    int status;

    runtime.url = c->url;
    runtime.token = c->token;
    call.kind = c->kind;
    call.target = c->target;
    call.timeout_ms = c->timeout_ms;
    status = agx_runtime_open(&runtime, &r->rt, err);
    if (status == 0 && c->args)
        status = agx_writer_bytes(c->args, &call.args, &call.args_len, err);
    if (status == 0 && c->kwargs)
        status = agx_writer_bytes(c->kwargs, &call.kwargs, &call.kwargs_len, err);
    return status < 0 ? status : agx_call_start(r->rt, &call, &r->call, err);
}

static int run_call(const struct agx_call_command *c)
{
    struct run r = { .command = c, .signal_fd = -1, .input = AGX_BUF_INIT(AGX_MESSAGE_MAX) };
    struct agx_error *err = NULL;
    int status;

    if (agx_interrupt_open(&r.signal_fd, &err) < 0)
        return cmd_call_fail(&r, err);
    /* A closed output becomes a write error. */
    (void)signal(SIGPIPE, SIG_IGN);
    status = cmd_call_start(&r, &err) < 0 ? cmd_call_fail(&r, err) : loop(&r);
    agx_call_free(r.call);
    agx_runtime_close(r.rt);
    agx_buf_done(&r.input);
    (void)close(r.signal_fd);
    return status;
}

static int cmd_call(int argc, char **argv, const struct agx_cli_env *env)
{
    struct agx_call_command c;
    int status = agx_call_command_parse(&c, argc, argv, env);

    if (status == 0 && c.help)
        fputs(agx_call_help, stdout);
    else if (status == 0)
        status = run_call(&c);
    agx_call_command_done(&c);
    return status;
}

const struct agx_command agx_cmd_call = {
    .name = "call",
    .summary = "call a function in a runtime and print its result",
    .help = agx_call_help,
    .run = cmd_call,
};
