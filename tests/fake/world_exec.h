/* world_exec.h: one simulated command; world_exec.c has its life cycle, command.c its steps. */
#ifndef AGX_TESTS_FAKE_WORLD_EXEC_H
#define AGX_TESTS_FAKE_WORLD_EXEC_H

#include "core/text.h"
#include "tests/fake/world.h"

enum world_exec_state { EXEC_WAITING, EXEC_RUNNING, EXEC_ENDED, EXEC_LOST };

struct world_log {
    int data_fd, index_fd;
    struct agx_caplog log;
    bool open;
};

/* A request that waits until no process is left. */
struct world_killer {
    struct world_asker asker;
    struct world_killer *next;
};

struct world_exec {
    struct world_sandbox *sandbox;
    char *id;
    enum world_exec_state state;
    int32_t exit_code;
    struct world_asker watcher; /* the newest */
    struct world_killer *killers;
    struct world_timer *timer; /* of the plan's delay, later of the step that runs */
    struct world_timer *grace; /* between TERM and KILL */
    struct world_log out, err;
    char *cwd;
    struct agx_pairs env;
    struct agx_words *steps; /* the words of each command of a list */
    size_t n_steps, step;
    int32_t step_code; /* of the last step that ended */
    bool ignores_term, leader_ended;
    bool reads_input; /* the step reads its input */
    uint64_t left;    /* bytes that the step has to print */
    struct agx_buf input;
    bool input_open;
    struct world_asker writer; /* whose bytes have not been taken yet */
    struct agx_list_node node; /* in sandbox->execs */
};

/* command.c: splits the command into steps. */
void world_command_parse(struct world_exec *e, const struct agx_words *argv);
/* Runs steps until one has to wait; ends the exec after the last. */
void world_command_run(struct world_exec *e);
/* Bytes or the end of the input arrived. */
void world_command_input(struct world_exec *e);

/* world_exec.c: no process is left. */
void world_exec_end(struct world_exec *e, int32_t exit_code);

#endif
