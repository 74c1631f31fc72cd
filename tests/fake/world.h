/*
 * world.h: the fake world: sandboxes and execs that are only records, and what happens to them.
 *
 * It lives in a process of its own (world_main.c) and knows its daemons as links that come and go:
 * an operation or exec whose link has gone runs on. Loop thread only.
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

/* Runs once, later; in the memory of its owner until it fired or was stopped. */
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

/* Who waits for an answer; the link is NULL once it is gone. */
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
    bool made; /* there is something of it; else only an operation */
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
    void (*ended)(void *user); /* somebody asked for the end */
    void (*links_changed)(void *user, size_t n);
    void *user;
    size_t n_links;
};

/* world.c */
void world_init(struct world *w, struct agx_loop *l, int journal_fd);
/* The end: the process exits next, so nothing is freed but what a leak checker would call lost. */
void world_done(struct world *w);
void world_accept(struct world *w, int *take_fd);
/* One effect, as a line of the journal with the number of times that it happened. */
void world_note(struct world *w, const char *fmt, ...) AGX_PRINTF(2, 3);
/* Writes the journal, which happens at the end of each turn. */
void world_flush(struct world *w);
/* Each does nothing when the asker has gone. */
void world_answer(const struct world_asker *a, enum agx_fake_kind kind);
void world_answer_error(const struct world_asker *a, enum agx_fake_kind kind, enum agx_code code,
                        const char *fmt, ...) AGX_PRINTF(4, 5);
void world_answer_exit(const struct world_asker *a, int32_t code);
/* Tells every link to look at a sandbox. */
void world_tell(struct world *w, const char *sandbox_id);
/* One message of a link. Negative: it makes no sense. */
int world_on_message(void *user, struct agx_fake_in *in);

/* world_sandbox.c */
int world_start(struct world *w, struct world_asker asker, struct agx_fake_in *in);
void world_cancel(struct world *w, struct world_asker asker);
int world_look(struct world *w, struct world_asker asker, struct agx_fake_in *in);
/* The text of a script; `from` is the link that it came by. */
int world_script(struct world *w, const struct world_link *from, struct agx_str text,
                 struct agx_error **err);
/* The links of these operations have gone. */
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
/* No process of the sandbox is left. `why` NULL: each was killed, otherwise it is lost. */
void world_execs_end(struct world_sandbox *sb, const char *why);
/* The sandbox is removed, and with it what was kept of its execs. */
void world_execs_forget(struct world_sandbox *sb);
void world_execs_forget_link(struct world *w, const struct world_link *link);

#endif
