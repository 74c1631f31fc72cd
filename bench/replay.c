/*
 * replay.c: one subscriber that reads the whole history of a sandbox, disconnects and starts again.
 *
 *     replay SOCKET SANDBOX EVENTS
 *
 * Prints `ready` when it has read EVENTS events for the first time, and continues until it is
 * killed.
 */
#include "grpc/client.h"
#include "wire/method.h"
#include "wire/sandbox_request.h"

#include <stdio.h>

#include "base/banned.h"

/* Reads from the first event on, until `events` have arrived. */
static int replay(struct agx_grpc_client *client, const struct agx_buf *request, uint64_t events,
                  struct agx_error **err)
{
    const struct agx_grpc_request q = { .path = AGX_METHOD_SUBSCRIBE,
                                        .message = agx_buf_peek(request) };
    struct agx_grpc_reply *reply = NULL;
    struct agx_str message;
    int r = agx_grpc_client_start(client, &q, &reply, err);

    for (uint64_t i = 0; r >= 0 && i < events; i++) {
        r = agx_grpc_reply_next(reply, -1, &message, err);
        if (r == 0)
            r = agx_error_set(err, AGX_ABORTED, "the subscription ended");
    }
    (void)agx_grpc_reply_close(reply);
    return r;
}

int main(int argc, char **argv)
{
    const struct agx_grpc_client_config config = AGX_GRPC_CLIENT_CONFIG_INIT;
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    _cleanup_buf_ struct agx_buf request = AGX_BUF_INIT(AGX_GRPC_MESSAGE_MAX);
    struct agx_grpc_client *client = NULL;
    uint64_t events;
    char text[300];
    int r;

    if (argc != 4 || !agx_parse_u64(agx_str_from(argv[3]), 100000000, &events)) {
        fprintf(stderr, "usage: replay SOCKET SANDBOX EVENTS\n");
        return 2;
    }
    r = agx_subscribe_request_encode(&request,
                                     &(struct agx_subscribe_request){ .sandbox_id = argv[2] });
    if (r == 0)
        r = agx_grpc_client_open(argv[1], &config, &client, &err);
    for (bool ready = false; r >= 0; ready = true) {
        r = replay(client, &request, events, &err);
        if (r >= 0 && !ready) {
            printf("ready\n");
            fflush(stdout);
        }
    }
    agx_grpc_client_close(client);
    fprintf(stderr, "replay: %s\n", agx_error_format(err, text, sizeof(text)));
    return 1;
}
