/* registry_internal.h: shared by registry*.c only. */
#ifndef AGX_IMAGE_REGISTRY_INTERNAL_H
#define AGX_IMAGE_REGISTRY_INTERNAL_H

#include "base/buf.h"
#include "base/list.h"
#include "fetch/fetch.h"
#include "image/registry.h"
#include "image/weburl.h"

#include <uv.h>

struct agx_registry {
    struct agx_loop *loop;
    struct agx_fetch *fetch; /* its paths are complete addresses: it has no base */
    char *host;              /* the user-visible name */
    char *repository;
    char *root; /* "https://registry-1.docker.io/v2/library/python/" */
    char *user; /* NULL: `secret` is a token that replaces the user */
    char *secret;
    char **insecure; /* ends with NULL */
    unsigned tries;
    uint64_t retry_ms, connect_ms, quiet_ms;
    char *authorization;       /* the header that shows who we are; NULL: not asked for yet */
    uint64_t authorization_no; /* counts those */
    struct agx_list calls;     /* of struct agx_registry_call */
};

struct agx_registry_call {
    struct agx_registry *registry;
    struct agx_list_node node;           /* in registry->calls */
    struct agx_registry_request request; /* path and accept are ours */
    void *user;
    struct agx_fetch_call *fetch; /* in progress; NULL: the timer runs */
    uv_timer_t timer;             /* until the next try */
    char *url;                    /* where we were redirected to; NULL: the registry itself */
    unsigned redirects;
    struct agx_buf got;    /* collected */
    uint64_t at;           /* bytes of the body so far */
    unsigned failures;     /* consecutive */
    unsigned presented;    /* how often we authenticated */
    uint64_t presented_no; /* which authorization the last request had */
};

/* Sends the request (again). */
void registry_call_ask(struct agx_registry_call *c);

/* Ends the call; takes `error`. */
void registry_call_end(struct agx_registry_call *c, struct agx_error *error);

/* Tries again after a pause of at least `wait_ms`, or ends the call with *take_error after the last
 * try. */
void registry_call_retry(struct agx_registry_call *c, uint64_t wait_ms,
                         struct agx_error **take_error);

/* The connection to `u` is encrypted, or need not be. */
bool registry_trusts(const struct agx_registry *r, const struct agx_weburl *u);

/* The registry requires authentication: `header` is its WWW-Authenticate; NULL: none. */
void registry_call_authenticate(struct agx_registry_call *c, const char *header);

/* Sets *err from the status of a failed answer, and its body. */
int registry_refusal(struct agx_error **err, const char *who, unsigned status, struct agx_str body);

/* Another try may help. */
static inline bool registry_may_retry(unsigned status)
{
    return status == 408 || status == 429 || status == 500 || (status >= 502 && status <= 504);
}

#endif
