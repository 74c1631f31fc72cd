/*
 * world.h: the fake world: sandboxes and execs that are only records, and what happens to them.
 *
 * It lives in a process of its own (world_main.c) and knows its daemons as links. A link may close
 * at any time; its operations and execs continue. Loop thread only.
 */
#ifndef AGX_TESTS_FAKE_WORLD_H
#define AGX_TESTS_FAKE_WORLD_H

#include "base/caplog.h"
#include "base/list.h"
#include "base/map.h"
#include "tests/fake/link.h"
#include "tests/fake/rule.h"

struct world;
struct world_exec;

/* Runs once, later. Its owner keeps its memory until it fired or was stopped. */
struct world_timer {
    uv_timer_t uv;
    void (*fn)(void *user);
    void *user;
};

struct world_timer *world_after(struct world *w, uint64_t ms, void (*fn)(void *user), void *user);
/* Returns NULL and accepts it. */
struct world_timer *world_timer_stop(struct world_timer *t);

struct world_link {
    struct world *world;
    struct agx_fake_link *link;
    struct agx_list_node node; /* in world->links */
};

/* The request that waits for an answer; the link is NULL once it has closed. */
struct world_asker {
    struct world_link *link;
    uint64_t tag;
};

struct world_op {
    struct world_asker asker;
    enum agx_do verb;
    struct agx_fake_plan plan;
    struct world_timer *delay;
    uint64_t layers_done; /* of the pull in its plan */
};

struct world_sandbox {
    struct world *world;
    char *id;
    bool made; /* the sandbox exists; otherwise only an operation does */
    enum agx_seen primary;
    uint8_t *companions; /* enum agx_seen */
    size_t companions_len;
    struct agx_pairs labels;
    struct world_op *op; /* at most one */
    struct world_timer *death;
    enum agx_seen dies_as;
    struct agx_list execs; /* of struct world_exec */
};

struct world {
    struct agx_loop *loop;
    struct agx_list links; /* of struct world_link */
    struct agx_map sandboxes, execs, counts;
    struct agx_fake_rules rules;
    int journal_fd;
    struct agx_buf journal; /* written at the end of the turn, before the answers leave */
    uv_prepare_t flush;
    void (*ended)(void *user); /* a client asked the world to end */
    void (*links_changed)(void *user, size_t n);
    void *user;
    size_t n_links;
};

/* world.c */
void world_init(struct world *w, struct agx_loop *l, int journal_fd);
/* Ends the world. The process exits next, so it frees only what a leak checker would report. */
void world_done(struct world *w);
void world_accept(struct world *w, int *take_fd);
/* Adds one effect to the journal, as a line with the number of times that it happened. */
void world_note(struct world *w, const char *fmt, ...) AGX_PRINTF(2, 3);
/* Writes the journal; called at the end of each turn. */
void world_flush(struct world *w);
/* Each does nothing if the link of the asker has closed. */
void world_answer(const struct world_asker *a, enum agx_fake_kind kind);
void world_answer_error(const struct world_asker *a, enum agx_fake_kind kind, enum agx_code code,
                        const char *fmt, ...) AGX_PRINTF(4, 5);
void world_answer_exit(const struct world_asker *a, int32_t code);
/* Tells every link to look at a sandbox. */
void world_tell(struct world *w, const char *sandbox_id);
/* Handles one message of a link. Negative: it is malformed. */
int world_on_message(void *user, struct agx_fake_in *in);

/* world_sandbox.c */
int world_start(struct world *w, struct world_asker asker, struct agx_fake_in *in);
void world_cancel(struct world *w, struct world_asker asker);
int world_look(struct world *w, struct world_asker asker, struct agx_fake_in *in);
/* Adds the text of a script; `from` is the link that sent it. */
int world_script(struct world *w, const struct world_link *from, struct agx_str text,
                 struct agx_error **err);
/* A link has closed; its operations lose their asker. */
void world_forget_link(struct world *w, const struct world_link *link);
struct world_sandbox *world_find(struct world *w, struct agx_str id);
void world_sandbox_free(struct world_sandbox *sb);

/* world_use.c */
int world_use(struct world *w, struct world_asker asker, struct agx_fake_in *in);

/* world_exec.c */
int world_exec_start(struct world *w, struct world_asker asker, struct agx_fake_in *in);
int world_exec_adopt(struct world *w, struct world_asker asker, struct agx_fake_in *in);
int world_exec_kill(struct world *w, struct world_asker asker, struct agx_fake_in *in);
int world_exec_write(struct world *w, struct world_asker asker, struct agx_fake_in *in);
int world_exec_forget(struct world *w, struct agx_fake_in *in);
/* Ends all execs of the sandbox. `why` NULL: each was killed; otherwise each is lost. */
void world_execs_end(struct world_sandbox *sb, const char *why);
/* The sandbox is removed; frees the records of its execs. */
void world_execs_forget(struct world_sandbox *sb);
void world_execs_forget_link(struct world *w, const struct world_link *link);

#endif
