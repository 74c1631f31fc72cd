/*
 * post_start_record.h: how far the commands of a companion are that run in the primary, in a file
 * for each: afters/SANDBOX/PLACE in the state directory. The next daemon goes on from there.
 *
 * A note is there before the sandbox is READY, and until it is stopped or deleted. It says that a
 * command has begun before that is started, so none is started twice.
 */
#ifndef AGX_BACKEND_DOCKER_POST_START_RECORD_H
#define AGX_BACKEND_DOCKER_POST_START_RECORD_H

#include "core/pairs.h"
#include "core/text.h"

struct agx_post_start_record {
    char *container; /* the companion's */
    bool has_healthcheck;
    uint64_t budget_ms; /* that it has to become healthy */
    struct agx_pairs envs;
    struct agx_words commands;
    size_t next; /* the command that is, or comes; as many as there are: it is over */
    bool begun;  /* that one was started */
};

void agx_post_start_record_done(struct agx_post_start_record *n);

/* -AGX_NOT_FOUND: there is none. What was there in `ret` is not freed. */
int agx_post_start_record_read(const char *state_dir, const char *sandbox_id, size_t place,
                               struct agx_post_start_record *ret,
                               struct agx_error **err) AGX_MUST_CHECK;
int agx_post_start_record_write(const char *state_dir, const char *sandbox_id, size_t place,
                                const struct agx_post_start_record *n,
                                struct agx_error **err) AGX_MUST_CHECK;
/* All of a sandbox. */
int agx_post_start_record_purge(const char *state_dir, const char *sandbox_id,
                                struct agx_error **err) AGX_MUST_CHECK;

typedef void (*agx_post_start_record_fn)(void *user, const char *sandbox_id, size_t place);

/* Calls `found` for every note that there is. */
void agx_post_start_record_each(const char *state_dir, agx_post_start_record_fn found, void *user);

#endif
