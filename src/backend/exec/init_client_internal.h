/* init_client_internal.h: what the files of the init client share. */
#ifndef AGX_BACKEND_EXEC_INIT_CLIENT_INTERNAL_H
#define AGX_BACKEND_EXEC_INIT_CLIENT_INTERNAL_H

#include "backend/exec/init_client.h"
#include "base/buf.h"
#include "base/caplog.h"
#include "base/list.h"
#include "base/map.h"

/*
 *     UNKNOWN --up--> UP --init ended, down--> DOWN --up--> UP
 *        |                                      ^ |
 *        +----------------- down ---------------+ +--expect--> UNKNOWN
 */
enum agx_init_client_state {
    AGX_INIT_CLIENT_UNKNOWN,
    AGX_INIT_CLIENT_UP,
    AGX_INIT_CLIENT_DOWN,
    AGX_INIT_CLIENT_CLOSED
};

enum agx_init_client_kind {
    AGX_INIT_CLIENT_START,
    AGX_INIT_CLIENT_ADOPT,
    AGX_INIT_CLIENT_RUN, /* a START of the backend's own */
    AGX_INIT_CLIENT_KILL,
    AGX_INIT_CLIENT_WRITE,
};

/* How to start a command: the contents of START, encoded. */
struct agx_init_client_start {
    struct agx_buf argv, env; /* as agx_init_word_put() writes them */
    uint32_t n_argv, n_env;
    uint32_t flags;
    char *cwd; /* NULL: the default directory */
};

/* How an op ends. */
enum agx_init_client_end { END_EXITED, END_REFUSED, END_UNKNOWN, END_LOST, END_DONE };

struct agx_init_client_op {
    struct agx_backend_op base;
    enum agx_init_client_kind kind;
    struct agx_init_client *init_client;
    struct agx_init_client_exec *cmd; /* it lives as long as the op */
    void *user;
    struct agx_list_node node; /* in its cmd's `ops`, then in `ending` or `due` */
    bool ended;                /* the latter, or its hook runs */

    struct agx_backend_exec_hooks hooks; /* START, ADOPT */
    agx_init_client_ran_fn ran;          /* RUN */
    agx_done_fn done;                    /* KILL, WRITE */
    bool begun;
    bool is_unknown; /* init said so on this connection; the next field likewise */
    bool start_sent;
    struct agx_init_client_start *start; /* START, RUN: until the command runs */
    uint64_t grace_ms;                   /* KILL */
    struct agx_buf input;                /* WRITE: bytes not sent yet */
    size_t input_at;
    bool eof;
    bool cancelled; /* RUN */

    enum agx_init_client_end end;
    int32_t exit_code;
    struct agx_error *error;
    char *output; /* RUN */
};

/* Data and index of stdout, then of stderr; see base/caplog.h. Owned, or -1. */
struct agx_init_client_output {
    int fds[AGX_INIT_FDS_MAX];
    uint64_t head_max[2], tail_max[2];
    bool writes[2]; /* set where we write the stream ourselves */
    struct agx_caplog writers[2];
};

/* A command, for as long as it runs or an op waits for something from it. */
struct agx_init_client_exec {
    struct agx_init_client *init_client;
    struct agx_list ops; /* in the order of their calls, without those that are ending */
    unsigned n_ops;      /* with those */
    bool started;        /* init says that it runs */
    bool input_out;      /* init holds a piece of input: the next one follows TAKEN */
    struct agx_init_client_op *input_op; /* whose piece it is; NULL: that op is gone */
    struct agx_init_client_output logs;
    size_t id_len;
    char id[AGX_INIT_ID_MAX + 1];
};

/* A process that has not become init yet. */
struct agx_init_client_seek {
    struct agx_init_client_pid want; /* container_id is owned */
    uint64_t deadline_ms;
    uv_timer_t timer;
};

struct agx_init_client {
    struct agx_init_client_config config; /* its strings are the fields below */
    char *sandbox_id, *exec_user, *cwd;
    enum agx_init_client_state state;
    bool go;                   /* every init that is reached may start its main process */
    struct agx_initlink *link; /* UP */
    struct agx_init_client_seek seek;
    struct agx_error *why;    /* DOWN: an init that runs and cannot be reached; NULL: none runs */
    struct agx_map cmds;      /* by id */
    struct agx_words forgets; /* ids that init is to be told to forget */
    struct agx_list due;      /* of struct agx_init_client_op: end in a later turn */
    struct agx_list ending;
    uv_timer_t soon; /* ends what is due */
    unsigned n_open; /* the timers, and links that are not closed yet */
    agx_done_fn closed;
    void *closed_user;
};

/* init_client.c: the client goes down by itself. Takes the error. `gone`: nothing runs any more. */
void agx_init_client_lose(struct agx_init_client *a, struct agx_error *error, bool gone);

/* init_client_pid.c: stops looking for the process. */
void agx_init_client_seek_stop(struct agx_init_client *a);

/* init_client_op.c: a call, until its last hook. */
struct agx_init_client_op *agx_init_client_op_new(struct agx_init_client *a,
                                                  enum agx_init_client_kind kind, void *user);
/* Attaches the op to the command with this id. NULL without memory; the op is then unchanged. */
struct agx_init_client_exec *agx_init_client_op_join(struct agx_init_client_op *op,
                                                     struct agx_str id);
void agx_init_client_op_free(struct agx_init_client_op *op);
/* The op ends this way at the next agx_init_client_deliver(). Takes the error. */
void agx_init_client_op_end(struct agx_init_client_op *op, enum agx_init_client_end end,
                            struct agx_error *error);
/* Ends the op as fits its kind when init cannot be asked any more. `error` (borrowed) says why;
 * `gone`: because nothing runs. */
void agx_init_client_op_give_up(struct agx_init_client_op *op, const struct agx_error *error,
                                bool gone);
/* Calls the hooks of the ops that are ending. */
void agx_init_client_deliver(struct agx_init_client *a);
/* Also of those that were put off. */
void agx_init_client_deliver_due(struct agx_init_client *a);
/* Sends init what this op needs. May end the op. */
void agx_init_client_op_ask(struct agx_init_client_op *op);

/* init_client_exec.c: commands, and what init reports about them. */
struct agx_init_client_exec *agx_init_client_exec_find(const struct agx_init_client *a,
                                                       struct agx_str id);
/* Frees the command unless it runs or an op waits for something from it. */
void agx_init_client_exec_settle(struct agx_init_client_exec *c);
void agx_init_client_exec_free(struct agx_init_client_exec *c);
/* Sends a QUERY for its state, and for its output from where ours ends. */
int agx_init_client_exec_query(struct agx_init_client_exec *c, struct agx_error **err);
/* Asks about it on a new connection. */
void agx_init_client_exec_ask(struct agx_init_client_exec *c);
/* A START must still be sent, after the answer to a QUERY: other messages would come too early. */
bool agx_init_client_exec_start_is_due(const struct agx_init_client_exec *c);
/* Sends the next piece of input, if none is on its way. */
void agx_init_client_exec_feed(struct agx_init_client_exec *c);
/* The init that ran it is gone, or cannot be reached. */
void agx_init_client_exec_give_up(struct agx_init_client_exec *c, const struct agx_error *error,
                                  bool gone);
void agx_init_client_on_message(void *user, const struct agx_init_msg *m);

/* init_client_output.c: the files of a command's output. */
int agx_init_client_output_set(struct agx_init_client_output *l, const struct agx_backend_log *out,
                               const struct agx_backend_log *err_log, struct agx_error **err);
/* Unnamed files for a command of the backend's own; and the end of their content, owned. */
int agx_init_client_output_make(struct agx_init_client_output *l, struct agx_error **err);
char *agx_init_client_output_tail(const struct agx_init_client_output *l);
/* Where init keeps the logs: how much of the stream is here (0: out, 1: err), and appending to
 * it. */
uint64_t agx_init_client_output_total(struct agx_init_client_output *l, unsigned i);
void agx_init_client_output_put(struct agx_init_client_output *l, const struct agx_init_msg *m);
/* Their writer has ended. */
void agx_init_client_output_end(struct agx_init_client_output *l);
void agx_init_client_output_close(struct agx_init_client_output *l);

/* init_client_start.c: encodes a command for init. */
struct agx_init_client_start *agx_init_client_start_new(const struct agx_words *command,
                                                        const struct agx_pairs *env,
                                                        const char *cwd, uint32_t flags,
                                                        struct agx_error **err);
void agx_init_client_start_free(struct agx_init_client_start *s);

#endif
