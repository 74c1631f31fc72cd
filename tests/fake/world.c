/* world.c: the fake world's links, messages, timers and journal. */
#include "tests/fake/world.h"

#include "base/fd.h"
#include "base/mem.h"

#include <stdarg.h>

#include "base/banned.h"

enum { JOURNAL_HIGH = 64 << 10 };

/* ---- timers ---- */

static void on_timer_closed(uv_handle_t *h)
{
    free(container_of(h, struct world_timer, uv));
}

struct world_timer *world_timer_stop(struct world_timer *t)
{
    if (t)
        uv_close((uv_handle_t *)&t->uv, on_timer_closed);
    return NULL;
}

static void on_timer(uv_timer_t *uv)
{
    struct world_timer *t = container_of(uv, struct world_timer, uv);

    t->fn(t->user); /* which stops it */
}

struct world_timer *world_after(struct world *w, uint64_t ms, void (*fn)(void *user), void *user)
{
    struct world_timer *t = agx_new(struct world_timer);

    t->fn = fn;
    t->user = user;
    (void)uv_timer_init(agx_loop_uv(w->loop), &t->uv);
    (void)uv_timer_start(&t->uv, on_timer, ms, 0);
    return t;
}

/* ---- the journal ---- */

void world_flush(struct world *w)
{
    if (w->journal.len > 0)
        (void)!agx_fd_write_all(w->journal_fd, agx_buf_peek(&w->journal), NULL);
    agx_buf_clear(&w->journal);
}

static void on_flush(uv_prepare_t *h)
{
    world_flush(container_of(h, struct world, flush));
}

/* The number of times that this effect has happened, including this time. */
static size_t count(struct world *w, struct agx_str effect)
{
    size_t *n = agx_map_get(&w->counts, effect);

    if (!n) {
        n = agx_new(size_t);
        if (agx_map_put(&w->counts, effect, n, NULL) < 0)
            abort();
    }
    return ++*n;
}

void world_note(struct world *w, const char *fmt, ...)
{
    char text[2 * AGX_IDENT_MAX + 128];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (agx_buf_printf(&w->journal, "%s #%zu\n", text, count(w, agx_str_from(text))) < 0)
        abort();
    if (w->journal.len > JOURNAL_HIGH)
        world_flush(w);
}

/* ---- answers ---- */

static void send_answer(const struct world_asker *a, struct agx_fake_out *o)
{
    if (agx_fake_link_send(a->link->link, o, NULL, 0) < 0)
        agx_fake_link_close(a->link->link); /* a daemon that does not read */
}

void world_answer(const struct world_asker *a, enum agx_fake_kind kind)
{
    struct agx_fake_out o;

    if (!a->link)
        return;
    agx_fake_link_begin(a->link->link, &o, kind, a->tag);
    send_answer(a, &o);
}

void world_answer_error(const struct world_asker *a, enum agx_fake_kind kind, enum agx_code code,
                        const char *fmt, ...)
{
    struct agx_fake_out o;
    char text[1024];
    va_list ap;

    if (!a->link)
        return;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    agx_fake_link_begin(a->link->link, &o, kind, a->tag);
    agx_fake_out_u64(&o, code);
    agx_fake_out_cstr(&o, text);
    send_answer(a, &o);
}

void world_answer_exit(const struct world_asker *a, int32_t code)
{
    struct agx_fake_out o;

    if (!a->link)
        return;
    agx_fake_link_begin(a->link->link, &o, AGX_FAKE_EXITED, a->tag);
    agx_fake_out_u64(&o, (uint32_t)code);
    send_answer(a, &o);
}

void world_tell(struct world *w, const char *sandbox_id)
{
    AGX_LIST_FOR_EACH (struct world_link, k, &w->links, node) {
        const struct world_asker all = { .link = k };
        struct agx_fake_out o;

        agx_fake_link_begin(k->link, &o, AGX_FAKE_NEWS, 0);
        agx_fake_out_cstr(&o, sandbox_id);
        send_answer(&all, &o);
    }
}

/* ---- messages ---- */

static int on_script(struct world *w, const struct world_asker *asker, struct agx_fake_in *in)
{
    struct agx_str text = agx_fake_in_str(in);
    _cleanup_(agx_error_freep) struct agx_error *e = NULL;
    char words[512];

    if (world_script(w, asker->link, text, &e) < 0)
        world_answer_error(asker, AGX_FAKE_DONE, e->code, "%s",
                           agx_error_format(e, words, sizeof(words)));
    else
        world_answer_error(asker, AGX_FAKE_DONE, AGX_OK, "%s", "");
    return 0;
}

static int on_hello(const struct world_asker *asker, struct agx_fake_in *in)
{
    struct agx_fake_out o;

    if (agx_fake_in_u64(in) != AGX_FAKE_VERSION)
        return -AGX_INVALID_ARGUMENT;
    agx_fake_link_begin(asker->link->link, &o, AGX_FAKE_WELCOME, asker->tag);
    agx_fake_out_u64(&o, AGX_FAKE_VERSION);
    return agx_fake_link_send(asker->link->link, &o, NULL, 0);
}

static int on_end(struct world *w, const struct world_asker *asker)
{
    world_answer_error(asker, AGX_FAKE_DONE, AGX_OK, "%s", "");
    w->ended(w->user);
    return 0;
}

int world_on_message(void *user, struct agx_fake_in *in)
{
    struct world_link *k = user;
    struct world *w = k->world;
    struct world_asker asker = { k, in->tag };

    switch (in->kind) {
    case AGX_FAKE_HELLO:
        return on_hello(&asker, in);
    case AGX_FAKE_PING:
        world_answer(&asker, AGX_FAKE_PONG);
        return 0;
    case AGX_FAKE_START:
        return world_start(w, asker, in);
    case AGX_FAKE_CANCEL:
        world_cancel(w, asker);
        return 0;
    case AGX_FAKE_LOOK:
        return world_look(w, asker, in);
    case AGX_FAKE_USAGE:
        return world_use(w, asker, in);
    case AGX_FAKE_EXEC:
        return world_exec_start(w, asker, in);
    case AGX_FAKE_ADOPT:
        return world_exec_adopt(w, asker, in);
    case AGX_FAKE_KILL:
        return world_exec_kill(w, asker, in);
    case AGX_FAKE_WRITE:
        return world_exec_write(w, asker, in);
    case AGX_FAKE_FORGET:
        return world_exec_forget(w, in);
    case AGX_FAKE_SCRIPT:
        return on_script(w, &asker, in);
    case AGX_FAKE_END:
        return on_end(w, &asker);
    default:
        return -AGX_INVALID_ARGUMENT;
    }
}

static void on_link_closed(void *user)
{
    struct world_link *k = user;
    struct world *w = k->world;

    world_forget_link(w, k);
    world_execs_forget_link(w, k);
    agx_list_remove(&k->node);
    free(k);
    w->links_changed(w->user, --w->n_links);
}

static const struct agx_fake_link_ops link_ops = { world_on_message, on_link_closed };

void world_accept(struct world *w, int *take_fd)
{
    struct world_link *k = agx_new(struct world_link);

    k->world = w;
    k->link = agx_fake_link_new(w->loop, &link_ops, k);
    agx_list_push_front(&w->links, &k->node);
    /* The newest handle runs first, so the journal is written before every answer. */
    (void)uv_prepare_stop(&w->flush);
    (void)uv_prepare_start(&w->flush, on_flush);
    w->links_changed(w->user, ++w->n_links);
    if (agx_fake_link_attach(k->link, take_fd, NULL) < 0)
        agx_fake_link_close(k->link);
}

/* ---- the whole ---- */

void world_init(struct world *w, struct agx_loop *l, int journal_fd)
{
    const struct agx_siphash_key seed = { 3, 4 }; /* a fake has no attackers */

    *w = (struct world){ .loop = l, .journal_fd = journal_fd };
    w->journal.max = 2 * JOURNAL_HIGH;
    agx_map_init(&w->sandboxes, seed);
    agx_map_init(&w->execs, seed);
    agx_map_init(&w->counts, seed);
    (void)uv_prepare_init(agx_loop_uv(l), &w->flush);
    (void)uv_prepare_start(&w->flush, on_flush);
    uv_unref((uv_handle_t *)&w->flush);
}

void world_done(struct world *w)
{
    void *value;

    AGX_LIST_FOR_EACH (struct world_link, k, &w->links, node)
        agx_fake_link_close(k->link);
    for (size_t at = 0; agx_map_next(&w->sandboxes, &at, NULL, &value);) {
        world_execs_end(value, NULL);
        world_execs_forget(value);
        world_sandbox_free(value);
    }
    for (size_t at = 0; agx_map_next(&w->counts, &at, NULL, &value);)
        free(value);
    world_flush(w);
    uv_close((uv_handle_t *)&w->flush, NULL);
    agx_map_done(&w->sandboxes);
    agx_map_done(&w->execs);
    agx_map_done(&w->counts);
    agx_fake_rules_done(&w->rules);
    agx_buf_done(&w->journal);
}
