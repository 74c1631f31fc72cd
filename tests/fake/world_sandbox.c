/*
 * world_sandbox.c: sandboxes of the fake world, and the operations on them.
 *
 * An operation begins, waits as its plan says, and then does everything at once:
 *
 *   begin --> [delay | hang] --> fail, or the effects of the verb --> DONE, freed
 *                 +-- cancel (not of a hang) --> DONE with CANCELLED
 *
 * CREATE makes the sandbox when it begins. If it fails or is cancelled, the sandbox is left for
 * DELETE, as on real backends. A sandbox with an operation refuses others, even if the link of the
 * operation has closed.
 */
#include "tests/fake/world.h"

#include "base/mem.h"

#include "base/banned.h"

struct world_sandbox *world_find(struct world *w, struct agx_str id)
{
    return agx_map_get(&w->sandboxes, id);
}

void world_sandbox_free(struct world_sandbox *sb)
{
    if (sb->op) {
        world_timer_stop(sb->op->delay);
        agx_fake_plan_done(&sb->op->plan);
        free(sb->op);
    }
    world_timer_stop(sb->death);
    agx_pairs_done(&sb->labels);
    free(sb->companions);
    free(sb->id);
    free(sb);
}

/* Frees it, unless an operation still needs the record. */
static void drop_if_nothing(struct world_sandbox *sb)
{
    if (sb->made || sb->op)
        return;
    world_execs_forget(sb);
    (void)agx_map_remove(&sb->world->sandboxes, agx_str_from(sb->id));
    world_sandbox_free(sb);
}

static struct world_sandbox *sandbox_new(struct world *w, struct agx_str id)
{
    struct world_sandbox *sb = agx_new(struct world_sandbox);

    sb->world = w;
    sb->id = agx_str_dup(id);
    sb->primary = AGX_SEEN_MISSING;
    if (!sb->id || agx_map_put(&w->sandboxes, id, sb, NULL) < 0)
        abort();
    return sb;
}

/* ---- effects ---- */

static void make(struct world_sandbox *sb)
{
    if (sb->made)
        return;
    world_note(sb->world, "make %s", sb->id);
    sb->made = true;
    sb->primary = AGX_SEEN_EXITED;
    memset(sb->companions, AGX_SEEN_EXITED, sb->companions_len);
}

static void start_companions(struct world_sandbox *sb, const struct world_op *op)
{
    const struct agx_fake_plan *p = &op->plan;

    for (size_t i = 0; i < sb->companions_len; i++) {
        const bool fails = p->has_companion && p->companion == i;

        if (!fails && sb->companions[i] != AGX_SEEN_RUNNING) {
            world_note(sb->world, "companion-start %s %zu", sb->id, i);
            sb->companions[i] = AGX_SEEN_RUNNING;
        }
        if (op->verb != AGX_DO_REVIVE && op->asker.link) {
            struct agx_fake_out o;

            agx_fake_link_begin(op->asker.link->link, &o, AGX_FAKE_COMPANION, op->asker.tag);
            agx_fake_out_u64(&o, i);
            agx_fake_out_u64(&o, fails ? AGX_UNAVAILABLE : AGX_OK);
            agx_fake_out_cstr(&o, fails ? p->companion_message : "");
            (void)!agx_fake_link_send(op->asker.link->link, &o, NULL, 0); /* `done` fails next */
        }
    }
}

/* The main process ends by itself. */
static void die(struct world_sandbox *sb, enum agx_seen as)
{
    struct world *w = sb->world;
    char id[AGX_IDENT_MAX + 1];

    sb->death = world_timer_stop(sb->death);
    if (!sb->made)
        return;
    (void)snprintf(id, sizeof(id), "%s", sb->id);
    world_note(w, "%s %s", as == AGX_SEEN_MISSING ? "vanish" : (as == AGX_SEEN_OOM ? "oom" : "die"),
               id);
    world_execs_end(sb, "the main process ended");
    sb->primary = as;
    if (as == AGX_SEEN_MISSING) {
        sb->made = false;
        memset(sb->companions, AGX_SEEN_MISSING, sb->companions_len);
        drop_if_nothing(sb);
    }
    world_tell(w, id);
}

static void on_death(void *user)
{
    struct world_sandbox *sb = user;

    die(sb, sb->dies_as);
}

static void start_all(struct world_sandbox *sb, const struct world_op *op)
{
    start_companions(sb, op);
    if (sb->primary != AGX_SEEN_RUNNING) {
        world_note(sb->world, "start %s", sb->id);
        sb->primary = AGX_SEEN_RUNNING;
    }
    if (op->plan.dies) {
        world_timer_stop(sb->death);
        sb->dies_as = op->plan.dies_as;
        sb->death = world_after(sb->world, op->plan.dies_after_ms, on_death, sb);
    }
}

static void stop_all(struct world_sandbox *sb)
{
    sb->death = world_timer_stop(sb->death);
    world_execs_end(sb, NULL);
    if (sb->primary == AGX_SEEN_RUNNING || sb->primary == AGX_SEEN_PAUSED) {
        world_note(sb->world, "stop %s", sb->id);
        sb->primary = AGX_SEEN_EXITED;
    }
    for (size_t i = 0; i < sb->companions_len; i++) {
        if (sb->companions[i] != AGX_SEEN_RUNNING)
            continue;
        world_note(sb->world, "companion-stop %s %zu", sb->id, i);
        sb->companions[i] = AGX_SEEN_EXITED;
    }
}

/* ---- operations ---- */

/* Answers, and frees the operation; `sb` may be gone afterwards. */
static void op_end(struct world_sandbox *sb, enum agx_code code, const char *message)
{
    struct world_op *op = AGX_TAKE_PTR(sb->op);

    world_answer_error(&op->asker, AGX_FAKE_DONE, code, "%s", message);
    world_timer_stop(op->delay);
    agx_fake_plan_done(&op->plan);
    free(op);
    drop_if_nothing(sb);
}

static void op_effects(struct world_sandbox *sb)
{
    const struct world_op *op = sb->op;

    switch (op->verb) {
    case AGX_DO_CREATE:
    case AGX_DO_RESUME:
    case AGX_DO_REVIVE:
        start_all(sb, op);
        return;
    case AGX_DO_STOP:
    case AGX_DO_HALT:
        stop_all(sb);
        return;
    default: /* DELETE: world_start() lets no other in */
        stop_all(sb);
        if (sb->made)
            world_note(sb->world, "remove %s", sb->id);
        sb->made = false;
    }
}

static void op_finish(void *user)
{
    struct world_sandbox *sb = user;
    struct world_op *op = sb->op;
    char text[512];

    op->delay = world_timer_stop(op->delay);
    if (op->plan.way == AGX_FAKE_HANGS || op->plan.way == AGX_FAKE_HANGS_UNTIL_TOLD)
        return;
    if (op->plan.way == AGX_FAKE_FAILS) {
        (void)snprintf(text, sizeof(text), "%s", op->plan.message);
        op_end(sb, op->plan.code, text);
        return;
    }
    if (!sb->made && op->verb != AGX_DO_DELETE && op->verb != AGX_DO_HALT) {
        (void)snprintf(text, sizeof(text), "there is no sandbox '%s'", sb->id);
        op_end(sb, AGX_NOT_FOUND, text);
        return;
    }
    op_effects(sb);
    op_end(sb, AGX_OK, "");
}

static void read_labels(struct agx_fake_in *in, struct agx_pairs *ret)
{
    for (size_t n = agx_fake_in_count(in); n > 0 && !in->bad; n--) {
        struct agx_str key = agx_fake_in_str(in), value = agx_fake_in_str(in);

        if (agx_pairs_set(ret, key, value, NULL) < 0)
            in->bad = true;
    }
}

/* A create describes the sandbox; a removal without a record knows only its id. */
static void describe(struct world_sandbox *sb, size_t companions, struct agx_pairs *take_labels)
{
    agx_pairs_done(&sb->labels);
    sb->labels = *take_labels;
    *take_labels = (struct agx_pairs){ 0 };
    if (sb->companions_len == companions && sb->companions)
        return;
    free(sb->companions);
    sb->companions = agx_alloc(companions + 1);
    sb->companions_len = companions;
    memset(sb->companions, sb->made ? AGX_SEEN_EXITED : AGX_SEEN_MISSING, companions);
}

/* All layers of the fake image have the same size. */
#define LAYER_BYTES 1000000u

static void tell_pull(const struct world_op *op)
{
    struct agx_fake_out o;

    if (!op->asker.link)
        return;
    agx_fake_link_begin(op->asker.link->link, &o, AGX_FAKE_PULL, op->asker.tag);
    agx_fake_out_cstr(&o, "fake/image:1");
    agx_fake_out_u64(&o, op->layers_done);
    agx_fake_out_u64(&o, op->plan.layers);
    agx_fake_out_u64(&o, op->layers_done * LAYER_BYTES);
    agx_fake_out_u64(&o, op->plan.layers * LAYER_BYTES);
    (void)!agx_fake_link_send(op->asker.link->link, &o, NULL, 0); /* `done` fails next */
}

/* Another layer has arrived; the layers share the delay. */
static void on_layer(void *user)
{
    struct world_sandbox *sb = user;
    struct world_op *op = sb->op;

    op->delay = world_timer_stop(op->delay);
    op->layers_done++;
    tell_pull(op);
    if (op->layers_done == op->plan.layers)
        op_finish(sb);
    else
        op->delay = world_after(sb->world, op->plan.delay_ms / op->plan.layers, on_layer, sb);
}

static void op_begin(struct world_sandbox *sb, struct world_asker asker, enum agx_do verb)
{
    struct world_op *op = agx_new(struct world_op);

    op->asker = asker;
    op->verb = verb;
    agx_fake_rules_find(&sb->world->rules, &sb->labels, agx_do_name(verb), sb->id, &op->plan);
    sb->op = op;
    if (verb == AGX_DO_CREATE) {
        world_answer(&asker, AGX_FAKE_BEGUN);
        make(sb);
    }
    if (verb == AGX_DO_CREATE && op->plan.layers > 0)
        op->delay = world_after(sb->world, op->plan.delay_ms / op->plan.layers, on_layer, sb);
    else if (op->plan.delay_ms > 0)
        op->delay = world_after(sb->world, op->plan.delay_ms, op_finish, sb);
    else
        op_finish(sb);
}

int world_start(struct world *w, struct world_asker asker, struct agx_fake_in *in)
{
    _cleanup_(agx_pairs_done) struct agx_pairs labels = { 0 };
    uint64_t verb = agx_fake_in_u64(in), companions;
    struct agx_str id = agx_fake_in_str(in);
    struct world_sandbox *sb;

    (void)agx_fake_in_u64(in); /* the grace: a fake main process ends at once */
    companions = agx_fake_in_u64(in);
    read_labels(in, &labels);
    if (!agx_fake_in_ends(in) || verb == AGX_DO_NONE || verb >= AGX_DO_COUNT ||
        agx_ident_check("id", id, NULL) < 0 || companions > AGX_SPEC_ITEMS_MAX)
        return -AGX_INVALID_ARGUMENT;
    world_note(w, "ask-%s %.*s", agx_do_name((enum agx_do)verb), AGX_STR_ARG(id));
    sb = world_find(w, id);
    if (sb && sb->op) {
        world_answer_error(&asker, AGX_FAKE_DONE, AGX_UNAVAILABLE,
                           "a %s of sandbox '%s' is still running", agx_do_name(sb->op->verb),
                           sb->id);
        return 0;
    }
    if (!sb)
        sb = sandbox_new(w, id);
    if (!sb->made || verb == AGX_DO_CREATE)
        describe(sb, (size_t)companions, &labels);
    op_begin(sb, asker, (enum agx_do)verb);
    return 0;
}

void world_cancel(struct world *w, struct world_asker asker)
{
    void *value;

    for (size_t at = 0; agx_map_next(&w->sandboxes, &at, NULL, &value);) {
        struct world_sandbox *sb = value;

        if (!sb->op || sb->op->asker.link != asker.link || sb->op->asker.tag != asker.tag)
            continue;
        if (sb->op->plan.way != AGX_FAKE_HANGS)
            op_end(sb, AGX_CANCELLED, "cancelled");
        return;
    }
}

void world_forget_link(struct world *w, const struct world_link *link)
{
    void *value;

    for (size_t at = 0; agx_map_next(&w->sandboxes, &at, NULL, &value);) {
        struct world_sandbox *sb = value;

        if (sb->op && sb->op->asker.link == link)
            sb->op->asker.link = NULL;
    }
}

/* ---- looking ---- */

static void answer_seen(const struct world_asker *asker, struct agx_str id,
                        const struct world_sandbox *sb)
{
    struct agx_fake_out o;

    agx_fake_link_begin(asker->link->link, &o, AGX_FAKE_SEEN, asker->tag);
    agx_fake_out_str(&o, id);
    agx_fake_out_u64(&o, sb ? sb->primary : AGX_SEEN_MISSING);
    agx_fake_out_str(&o, sb ? agx_str_bytes(sb->companions, sb->companions_len) : AGX_STR(""));
    if (agx_fake_link_send(asker->link->link, &o, NULL, 0) < 0)
        agx_fake_link_close(asker->link->link);
}

int world_look(struct world *w, struct world_asker asker, struct agx_fake_in *in)
{
    _cleanup_(agx_fake_plan_done) struct agx_fake_plan plan = { 0 };
    struct agx_str id = agx_fake_in_str(in);
    struct world_sandbox *sb = world_find(w, id);
    char name[AGX_IDENT_MAX + 1];
    struct agx_str key;
    void *value;

    if (!agx_fake_in_ends(in) || id.len > AGX_IDENT_MAX)
        return -AGX_INVALID_ARGUMENT;
    (void)snprintf(name, sizeof(name), "%.*s", AGX_STR_ARG(id));
    agx_fake_rules_find(&w->rules, sb ? &sb->labels : NULL, "look", name, &plan);
    if (plan.way == AGX_FAKE_HANGS || plan.way == AGX_FAKE_HANGS_UNTIL_TOLD)
        return 0;
    if (plan.way == AGX_FAKE_FAILS) {
        world_answer_error(&asker, AGX_FAKE_DONE, plan.code, "%s", plan.message);
        return 0;
    }
    if (id.len > 0)
        answer_seen(&asker, id, sb);
    for (size_t at = 0; id.len == 0 && agx_map_next(&w->sandboxes, &at, &key, &value);) {
        sb = value;
        if (sb->made)
            answer_seen(&asker, key, sb);
    }
    world_answer_error(&asker, AGX_FAKE_DONE, AGX_OK, "%s", "");
    return 0;
}

/* ---- the script ---- */

/* What happens now: die, oom, vanish, release, companion-die. */
static int script_now(struct world *w, struct agx_str line, struct agx_error **err)
{
    struct agx_str what = agx_fake_word(&line), id = agx_fake_word(&line);
    struct world_sandbox *sb = world_find(w, id);
    uint64_t place;

    if (!sb)
        return agx_error_set(err, AGX_NOT_FOUND, "there is no sandbox '%.*s'", AGX_STR_ARG(id));
    if (agx_str_eq(what, AGX_STR("die"))) {
        die(sb, AGX_SEEN_EXITED);
    } else if (agx_str_eq(what, AGX_STR("oom"))) {
        die(sb, AGX_SEEN_OOM);
    } else if (agx_str_eq(what, AGX_STR("vanish"))) {
        die(sb, AGX_SEEN_MISSING);
    } else if (agx_str_eq(what, AGX_STR("release")) && sb->op) {
        sb->op->plan.way = AGX_FAKE_GOES;
        op_finish(sb);
    } else if (agx_str_eq(what, AGX_STR("companion-die")) &&
               agx_parse_u64(line, UINT32_MAX, &place) && place < sb->companions_len) {
        world_note(w, "companion-die %s %zu", sb->id, (size_t)place);
        sb->companions[place] = AGX_SEEN_EXITED;
        world_tell(w, sb->id);
    } else {
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "'now %.*s' means nothing here",
                             AGX_STR_ARG(what));
    }
    return 0;
}

/* Closes the links as if the sockets had broken. */
static void drop_links(struct world *w, const struct world_link *but)
{
    AGX_LIST_FOR_EACH (struct world_link, k, &w->links, node) {
        if (k != but)
            agx_fake_link_close(k->link);
    }
}

int world_script(struct world *w, const struct world_link *from, struct agx_str text,
                 struct agx_error **err)
{
    struct agx_str line, rest;

    while (agx_str_split(&text, '\n', &line)) {
        int r = 0;

        rest = line = agx_str_trim(line);
        if (line.len == 0 || line.ptr[0] == '#')
            continue;
        if (agx_str_eq(line, AGX_STR("clear")))
            agx_fake_rules_done(&w->rules);
        else if (agx_str_eq(line, AGX_STR("drop")))
            drop_links(w, from);
        else if (agx_str_eq(agx_fake_word(&rest), AGX_STR("now")))
            r = script_now(w, rest, err);
        else
            r = agx_fake_rules_add(&w->rules, line, err);
        if (r < 0)
            return r;
    }
    return 0;
}
