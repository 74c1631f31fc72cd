/* engexec_internal.h: what the files of engexec share. */
#ifndef AGX_BACKEND_DOCKER_ENGEXEC_INTERNAL_H
#define AGX_BACKEND_DOCKER_ENGEXEC_INTERNAL_H

#include "backend/docker/api/hijack.h"
#include "backend/docker/engexec.h"
#include "base/buf.h"
#include "base/map.h"

/*
 *     MAKING --its id--> OPENING --attached--> RUNNING --stream ended--> ENDING --> EXITED
 *                                                 ^                        ^
 *              NOTED (by an earlier daemon) ------+------ inspected --------+
 *
 * NONE: there is no such command; only that remains to be reported.
 */
enum agx_engexec_state {
    ENGEXEC_NONE,
    ENGEXEC_NOTED,
    ENGEXEC_MAKING,
    ENGEXEC_OPENING,
    ENGEXEC_RUNNING,
    ENGEXEC_ENDING,
    ENGEXEC_EXITED,
};

/* Messages that are due to the link's user; sent in this order, in a later turn. */
#define ENGEXEC_OWES_STARTED 1u
#define ENGEXEC_OWES_REFUSED 2u
#define ENGEXEC_OWES_UNKNOWN 4u
#define ENGEXEC_OWES_TAKEN 8u
#define ENGEXEC_OWES_EXITED 16u
#define ENGEXEC_OWES_GONE 32u

struct agx_engexec_command {
    struct agx_engexec *link;
    enum agx_engexec_state state;
    unsigned owes;
    bool has_begun;   /* STARTED was sent */
    bool kill_wanted; /* GONE is due at its end */
    bool kill_due;    /* a kill must be started, once the command runs and no other kill is being
                       * started */
    uint64_t grace_ms;
    char *killer;                      /* the engine's id of the last kill; NULL: none */
    struct agx_docker_call *kill_call; /* makes, starts or inspects it */
    unsigned kill_rest;                /* turns of the watch until it is inspected */
    unsigned doubts;                   /* how often it was recorded and not yet started */
    char *exec;                        /* the engine's id; NULL: none yet */
    struct agx_docker_call *call;      /* makes or inspects it */
    struct agx_docker_hijack *hijack;  /* its streams */
    uint64_t sent[2];                  /* offsets of its output */
    bool has_input;                    /* until its end was sent */
    bool input_out, input_eof;         /* a piece is being sent */
    struct agx_buf input;
    enum agx_code taken;
    struct agx_error *error; /* REFUSED */
    int32_t exit_code;
    size_t id_len;
    char id[AGX_INIT_ID_MAX + 1];
};

struct agx_engexec {
    struct agx_initlink base;
    const struct agx_initlink_ops *ops;
    void *user;
    struct agx_docker_engine *engine;
    char *container, *exec_user;
    int dir_fd;
    bool is_ready, is_closed;
    struct agx_map cmds;
    uv_timer_t soon;  /* sends the messages that are due */
    uv_timer_t watch; /* inspects commands whose stream we do not have */
    unsigned n_open;
    agx_done_fn closed;
    void *closed_user;
};

/* engexec.c */
void agx_engexec_owe(struct agx_engexec_command *c, unsigned what);
/* Sends a message at once; the user may do anything in it, even close. */
void agx_engexec_tell(struct agx_engexec *x, const struct agx_init_msg *m);

/* Inspects commands whose end is not reported to us, again and again while there are any. */
void agx_engexec_watch(struct agx_engexec *x);

/* engexec_command.c */
struct agx_engexec_command *agx_engexec_command_new(struct agx_engexec *x, struct agx_str id);
void agx_engexec_command_free(struct agx_engexec_command *c);
void agx_engexec_command_start(struct agx_engexec_command *c, const struct agx_init_msg *m);
void agx_engexec_command_kill(struct agx_engexec_command *c);
/* It is being killed and has not ended: whether its kill still runs must be checked. */
bool agx_engexec_command_is_killed(const struct agx_engexec_command *c);
/* One turn of the watch for its kill. */
void agx_engexec_command_kill_look(struct agx_engexec_command *c);
void agx_engexec_command_feed(struct agx_engexec_command *c);
/* Asks the engine whether it still runs. */
void agx_engexec_command_look(struct agx_engexec_command *c);

/* engexec_record.c: the directory of a sandbox, and a file of it for each command. */
int agx_engexec_record_open(const char *state_dir, const char *sandbox_id, struct agx_error **err);
int agx_engexec_record_put(const struct agx_engexec *x, struct agx_str id, const char *exec,
                           struct agx_error **err);
/* Owned; NULL: none. */
char *agx_engexec_record_get(const struct agx_engexec *x, struct agx_str id);
void agx_engexec_record_remove(const struct agx_engexec *x, struct agx_str id);

/* engexec_body.c: bodies of requests; NULL without memory. */
json_t *agx_engexec_body_start(const struct agx_init_msg *m, const char *user);
json_t *agx_engexec_body_kill(struct agx_str id, uint64_t grace_ms, const char *user);

#endif
