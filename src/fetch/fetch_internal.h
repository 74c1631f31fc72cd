/* fetch_internal.h: what fetch.c, call.c and duplex.c share. */
#ifndef AGX_FETCH_FETCH_INTERNAL_H
#define AGX_FETCH_FETCH_INTERNAL_H

#include "base/list.h"
#include "fetch/fetch.h"

#include <curl/curl.h>

struct agx_buf;
struct agx_duplex_request;
struct fetch_transfer;

struct fetch_transfer_kind {
    /* After libcurl returned, when fetch_tell() was called. May be NULL. */
    void (*news)(struct fetch_transfer *t);
    /* libcurl has finished it. */
    void (*ended)(struct fetch_transfer *t, CURLcode result);
    /* The fetch closes: end without a callback. */
    void (*drop)(struct fetch_transfer *t);
};

/* A transfer of libcurl and its purpose; embedded first by calls and duplexes. */
struct fetch_transfer {
    const struct fetch_transfer_kind *kind;
    struct agx_fetch *fetch;
    CURL *easy;                 /* NULL: not with libcurl any more */
    struct agx_list_node node;  /* among all of the fetch */
    struct agx_list_node told;  /* among those whose news() is due */
    char text[CURL_ERROR_SIZE]; /* what libcurl says of its failure */
};

struct agx_fetch {
    struct agx_loop *loop;
    CURLM *multi;
    char *unix_socket, *base, *ca_file, *cert_file, *key_file;
    bool insecure;
    bool inside;     /* inside libcurl: none of its functions may be called */
    bool closing;    /* libcurl is cleaned up */
    unsigned n_open; /* handles on the loop, also those of transfers, and the fetch itself */
    uv_timer_t timer;
    struct agx_list transfers, told; /* of struct fetch_transfer */
};

/* Makes an easy handle for `path` of the server, with the options of every request, and adds it to
 * libcurl; nothing happens before the loop's next turn. */
int fetch_prepare(struct agx_fetch *f, struct fetch_transfer *t, const char *path,
                  struct agx_error **err) AGX_MUST_CHECK;
int fetch_begin(struct fetch_transfer *t, struct agx_error **err) AGX_MUST_CHECK;

/* Removes it from libcurl: its connection is closed unless the transfer was complete. */
void fetch_remove(struct fetch_transfer *t);

/* Requests kind->news() for when libcurl has returned. */
void fetch_tell(struct fetch_transfer *t);

/* Passes on the results of a call into libcurl that was made with f->inside set. */
void fetch_settle(struct agx_fetch *f);

/* Releases one of n_open. */
void fetch_released(struct agx_fetch *f);

/* The one adapter for libcurl's codes. `what` is the prefix. Returns -code. */
int fetch_fail(struct agx_error **err, const struct fetch_transfer *t, CURLcode result,
               const char *what);

/* Appends the request with its body; `base` is the server's. Negative when the request cannot be
 * written: a header that would split the head, or one that is too long. */
int duplex_write_request(struct agx_buf *b, const char *base,
                         const struct agx_duplex_request *q) AGX_MUST_CHECK;

#endif
