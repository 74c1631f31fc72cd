/* fake_internal.h: the struct of the fake backend, which its files share. */
#ifndef AGX_TESTS_FAKE_INTERNAL_H
#define AGX_TESTS_FAKE_INTERNAL_H

#include "base/list.h"
#include "base/map.h"
#include "tests/fake/fake.h"
#include "tests/fake/link.h"

enum agx_fake_op_kind {
    AGX_FAKE_OP_START,
    AGX_FAKE_OP_LOOK,
    AGX_FAKE_OP_USAGE,
    AGX_FAKE_OP_EXEC,
    AGX_FAKE_OP_KILL,
    AGX_FAKE_OP_WRITE
};

struct agx_fake_op {
    struct agx_backend_op base;
    enum agx_fake_op_kind kind;
    uint64_t tag;
    void *user;
    struct agx_backend_hooks hooks; /* START; of the others only `done` */
    agx_backend_seen_fn seen;       /* LOOK */
    agx_backend_usage_fn use;       /* USE */
    struct agx_backend_exec_hooks exec_hooks;
    char *sandbox_id, *exec_id; /* EXEC: to find it again */
    bool adopt, begun;
    bool is_due;               /* in `due` instead of `ops` */
    struct agx_error *error;   /* what it will end with then */
    struct agx_list_node node; /* in `due` */
};

/*
 *   REACHING --welcome--> UP --link closed--> REACHING --failed--> WAITING --timer--> REACHING
 */
enum agx_fake_state { AGX_FAKE_REACHING, AGX_FAKE_UP, AGX_FAKE_WAITING, AGX_FAKE_CLOSED };

struct agx_child;

struct agx_fake {
    struct agx_backend base;
    struct agx_fake_config config;
    char *dir, *program, *socket;
    enum agx_fake_state state;
    struct agx_fake_link *link; /* NULL in WAITING */
    struct agx_child *starter;  /* runs agentix-fakeworld --start */
    unsigned attempts;          /* since it was UP */
    bool was_up;                /* ever: what follows is a return, and news */
    bool ponged;                /* since the last ping */
    unsigned n_handles;         /* timers, link and starter that are not closed */
    uv_timer_t timer;           /* the welcome's deadline, the next ping or attempt */
    uv_timer_t soon;            /* ends what is due */
    struct agx_map ops;         /* by tag */
    uint64_t last_tag;
    struct agx_list due; /* of struct agx_fake_op */
    agx_done_fn closed;
    void *closed_user;
};

static inline struct agx_fake *agx_fake_of(struct agx_backend *b)
{
    return container_of(b, struct agx_fake, base);
}

static inline struct agx_str agx_fake_key(const uint64_t *tag)
{
    return agx_str_bytes(tag, sizeof(*tag));
}

/* world_connect.c: finds the world, starts it, and finds it again after it was lost. */
void agx_fake_world_connect(struct agx_fake *f);
/* The link sent a malformed message or does not answer. */
void agx_fake_drop_link(struct agx_fake *f);

/* fake.c: removes it from the list that it is in. */
void agx_fake_op_unlink(struct agx_fake *f, struct agx_fake_op *op);
void agx_fake_op_free(struct agx_fake_op *op);
/* Calls its last hook, now or in a later turn. Both take the error. */
void agx_fake_op_end(struct agx_fake *f, struct agx_fake_op *op, struct agx_error *error);
void agx_fake_op_end_soon(struct agx_fake *f, struct agx_fake_op *op, struct agx_error *error);
/* The error if the world cannot be reached. */
int agx_fake_unavailable(const struct agx_fake *f, struct agx_error **err);
/* Ends all waiting operations with this error; also execs, unless they are kept to ask again. */
void agx_fake_fail_all(struct agx_fake *f, bool keep_execs);
/* Asks the world, after a reconnect, for the execs that were kept. */
void agx_fake_ask_for_execs(struct agx_fake *f);
void agx_fake_close(struct agx_backend *b, agx_done_fn closed, void *user);
/* A handle, the link or the starter is gone; the last one frees a closed backend. */
void agx_fake_released(struct agx_fake *f);

/* fake_call.c */
extern const struct agx_backend_ops agx_fake_ops;

/* fake_answer.c */
int agx_fake_on_message(void *user, struct agx_fake_in *in);

#endif
