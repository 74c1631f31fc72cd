/*
 * world.h: a backend without processes, for tests of the manager. Its world is plain memory that
 * outlives the backend object; the test decides what hangs, fails and dies.
 */
#ifndef AGX_TESTS_WORLD_H
#define AGX_TESTS_WORLD_H

#include "backend/backend.h"
#include "tests/support/test.h"

enum { WORLD_BOXES = 4096, WORLD_EXECS = 1024 };

struct world_box {
    char id[AGX_IDENT_MAX + 1];
    enum agx_seen seen; /* MISSING: it was deleted */
    uint8_t companions[4];
    size_t companions_len;
    unsigned n[AGX_DO_COUNT]; /* operations that took effect */
    bool busy;                /* an operation runs, or was abandoned and still runs */
};

struct world_exec {
    char id[AGX_IDENT_MAX + 1], sandbox_id[AGX_IDENT_MAX + 1];
    bool running, ended, forgotten, stdin_open;
    int32_t exit_code;
    unsigned starts, kills;
    char input[64];
    struct world_op *op; /* gets the report of its end */
};

struct world {
    struct world_box boxes[WORLD_BOXES];
    size_t n_boxes;
    struct world_exec execs[WORLD_EXECS];
    size_t n_execs;
    /* Failures from now on. */
    bool hold[AGX_DO_COUNT];     /* operations that hang */
    bool deaf;                   /* ignores cancels */
    bool stillborn;              /* a new sandbox dies before its create is done */
    unsigned fail[AGX_DO_COUNT]; /* this many operations fail */
    bool hold_starts;            /* starts of commands hang */
    bool refuse_starts;
    unsigned fail_kills;
    bool hold_looks, fail_looks;
    bool hold_uses;              /* usage is never reported */
    bool deaf_commands;          /* a kill does not end them */
    struct agx_backend *backend; /* the open backend, or NULL */
    unsigned n_calls, n_looks;
};

/* A backend on the world. */
struct agx_backend *world_backend(struct world *w, struct agx_loop *l);

/* Returns NULL if there never was one. */
struct world_box *world_box(struct world *w, const char *id);
struct world_exec *world_exec(struct world *w, const char *id);

/* Lets the hanging operation of this sandbox continue. */
void world_release(struct world *w, const char *id);
/* Reports an image pull for the hanging create. */
void world_pull(struct world *w, const char *id, const struct agx_pull *pull);
/* Ends a command by itself. */
void world_exit(struct world *w, const char *exec_id, int32_t exit_code);
/* Kills the main process; the backend reports it. */
void world_die(struct world *w, const char *id, enum agx_seen how);
void world_news(struct world *w, const char *id);

#endif
