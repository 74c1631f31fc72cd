#include "backend/net/resolve.h"
#include "tests/support/loop.h"

#include <pthread.h>

/* What the world says of names; the pool's threads read it. */
static struct {
    pthread_mutex_t lock;
    const char *a, *b; /* addresses of a.test and b.test, with blanks between; NULL: no answer */
    unsigned asked;
    unsigned hang_ms; /* b.test is silent for so long, or until it is 0 */
} zone = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void set_hang(unsigned ms)
{
    pthread_mutex_lock(&zone.lock);
    zone.hang_ms = ms;
    pthread_mutex_unlock(&zone.lock);
}

static bool hangs_at(unsigned ms)
{
    bool hangs;

    pthread_mutex_lock(&zone.lock);
    hangs = ms < zone.hang_ms;
    pthread_mutex_unlock(&zone.lock);
    return hangs;
}

static int look(void *user, const char *name, struct agx_subnet_list *out, struct agx_error **err)
{
    struct agx_str rest, word;
    const char *text;

    (void)user;
    pthread_mutex_lock(&zone.lock);
    text = name[0] == 'a' ? zone.a : zone.b;
    zone.asked++;
    pthread_mutex_unlock(&zone.lock);
    for (unsigned ms = 0; name[0] == 'b' && hangs_at(ms); ms++)
        usleep(1000);
    if (!text)
        return agx_error_set(err, AGX_UNAVAILABLE, "nobody answers");
    for (rest = agx_str_from(text); agx_str_split(&rest, ' ', &word);) {
        struct agx_subnet s;

        if (word.len > 0 && agx_subnet_parse(word, &s, NULL) == 0 &&
            agx_subnet_list_add(out, &s, err) < 0)
            return -AGX_RESOURCE_EXHAUSTED;
    }
    return 0;
}

static void set_zone(const char *a, const char *b)
{
    pthread_mutex_lock(&zone.lock);
    zone.a = a;
    zone.b = b;
    zone.hang_ms = 0;
    zone.asked = 0;
    pthread_mutex_unlock(&zone.lock);
}

struct stage {
    struct agx_loop *loop;
    struct agx_resolver *resolver;
    struct agx_resolve *resolve;
    char text[512]; /* the list that was told last */
    size_t n_names; /* entries in it that have one */
    unsigned told;
    unsigned stop_at; /* the loop stops when it was told so often */
    bool stop_inside;
};

static void on_changed(void *user, const struct agx_egress *list, size_t n)
{
    struct stage *s = user;
    size_t used = 0;

    s->text[0] = '\0';
    s->n_names = 0;
    for (size_t i = 0; i < n; i++) {
        char address[AGX_SUBNET_TEXT];

        ASSERT_FALSE(agx_egress_is_unknown(&list[i]));
        s->n_names += list[i].name.len > 0;
        used += (size_t)snprintf(s->text + used, sizeof(s->text) - used, "%s%s:%u", i ? " " : "",
                                 agx_subnet_format(&list[i].to, address), list[i].port);
    }
    if (s->stop_inside)
        s->resolve = agx_resolve_stop(s->resolve);
    if (++s->told == s->stop_at)
        agx_loop_stop(s->loop);
}

static void open_stage(struct stage *s, uint64_t every_ms, uint64_t keep_ms, uint64_t first_ms)
{
    const struct agx_resolver_config config = {
        .lookup = look, .every_ms = every_ms, .keep_ms = keep_ms, .first_ms = first_ms
    };

    *s = (struct stage){ .loop = test_loop_open() };
    ASSERT_OK(agx_resolver_open(s->loop, &config, &s->resolver, NULL));
}

static void start(struct stage *s, const char *const *entries, size_t n)
{
    struct agx_egress list[8];

    for (size_t i = 0; i < n; i++)
        ASSERT_OK(agx_egress_parse(agx_str_from(entries[i]), &list[i], NULL));
    ASSERT_OK(agx_resolve_start(s->resolver, list, n, on_changed, s, &s->resolve, NULL));
    ASSERT_UINT(0, s->told);
}

static void run_until_told(struct stage *s, unsigned times)
{
    s->stop_at = s->told + times;
    test_loop_run_until_stop(s->loop);
}

static void look_whether_asked(uv_timer_t *t)
{
    const struct stage *s = t->data;
    bool enough;

    pthread_mutex_lock(&zone.lock);
    enough = zone.asked >= 5;
    pthread_mutex_unlock(&zone.lock);
    if (enough)
        agx_loop_stop(s->loop);
}

/* Until names were asked for several times since set_zone(). */
static void run_until_asked(struct stage *s)
{
    uv_timer_t t;

    (void)uv_timer_init(agx_loop_uv(s->loop), &t);
    t.data = s;
    (void)uv_timer_start(&t, look_whether_asked, 1, 1);
    test_loop_run_until_stop(s->loop);
    uv_close((uv_handle_t *)&t, NULL);
    (void)uv_run(agx_loop_uv(s->loop), UV_RUN_NOWAIT);
}

static void close_stage(struct stage *s)
{
    s->resolve = agx_resolve_stop(s->resolve);
    agx_resolver_close(s->resolver, NULL, NULL);
    test_loop_run(s->loop);
    test_loop_close(s->loop);
}

TEST(resolve_of_a_list_without_names_is_told_once_as_it_is)
{
    struct stage s;

    open_stage(&s, 5, 1000, 1000);
    start(&s, (const char *const[]){ "203.0.113.7:443", "2001:db8::/32" }, 2);
    run_until_told(&s, 1);
    ASSERT_CSTR("203.0.113.7/32:443 2001:db8::/32:0", s.text);
    close_stage(&s);
    ASSERT_UINT(1, s.told);
}

TEST(resolve_puts_addresses_in_the_place_of_names_with_their_ports)
{
    struct stage s;

    set_zone("8.8.8.8 2606:4700::1", "9.9.9.9");
    open_stage(&s, 60000, 60000, 60000);
    start(&s, (const char *const[]){ "a.test:443", "1.1.1.1", "b.test", "a.test:80" }, 4);
    run_until_told(&s, 1); /* not before all names were asked for */
    ASSERT_CSTR("8.8.8.8/32:443 2606:4700::1/128:443 1.1.1.1/32:0 9.9.9.9/32:0 8.8.8.8/32:80 "
                "2606:4700::1/128:80",
                s.text);
    ASSERT_UINT(5, s.n_names);
    ASSERT_UINT(2, zone.asked); /* once for each name */
    close_stage(&s);
}

TEST(resolve_drops_answers_that_are_not_public)
{
    struct stage s;

    set_zone("10.0.0.1 127.0.0.1 169.254.169.254 192.168.1.1 fd00::1 ::1 fe80::1 8.8.4.4", "");
    open_stage(&s, 60000, 60000, 60000);
    start(&s, (const char *const[]){ "a.test", "b.test" }, 2);
    run_until_told(&s, 1);
    ASSERT_CSTR("8.8.4.4/32:0", s.text);
    close_stage(&s);
}

TEST(resolve_tells_of_changes_and_keeps_old_addresses_for_a_while)
{
    struct stage s;

    set_zone("8.8.8.8", NULL);
    open_stage(&s, 10, 2500, 60000); /* for which the next answer is never late */
    start(&s, (const char *const[]){ "a.test" }, 1);
    run_until_told(&s, 1);
    set_zone("8.8.4.4", NULL);
    run_until_told(&s, 1);
    ASSERT_CSTR("8.8.8.8/32:0 8.8.4.4/32:0", s.text);
    run_until_told(&s, 1);
    ASSERT_CSTR("8.8.4.4/32:0", s.text);
    close_stage(&s);
}

TEST(resolve_keeps_addresses_while_nobody_answers_and_not_when_the_name_is_gone)
{
    struct stage s;

    set_zone("8.8.8.8", NULL);
    open_stage(&s, 5, 1, 60000);
    start(&s, (const char *const[]){ "a.test" }, 1);
    run_until_told(&s, 1);
    set_zone(NULL, NULL);
    run_until_asked(&s);
    ASSERT_UINT(1, s.told);
    set_zone("", NULL);
    run_until_told(&s, 1);
    ASSERT_CSTR("", s.text);
    close_stage(&s);
}

TEST(resolve_with_a_silent_server_is_told_what_is_known_when_the_time_is_up)
{
    struct stage s;

    /* However slow the machine is: long enough that the other has answered. */
    for (uint64_t first_ms = 50;; first_ms *= 2) {
        set_zone("8.8.8.8", "9.9.9.9");
        set_hang(60000);
        open_stage(&s, 60000, 60000, first_ms);
        start(&s, (const char *const[]){ "a.test", "b.test" }, 2);
        run_until_told(&s, 1);
        if (s.text[0])
            break;
        set_hang(0);
        close_stage(&s);
    }
    ASSERT_CSTR("8.8.8.8/32:0", s.text);
    set_hang(0);
    run_until_told(&s, 1);
    ASSERT_CSTR("8.8.8.8/32:0 9.9.9.9/32:0", s.text);
    close_stage(&s);
}

TEST(resolve_stopped_while_it_asks_or_inside_its_call_hears_no_more)
{
    struct stage s;

    set_zone("8.8.8.8", "9.9.9.9");
    set_hang(300);
    open_stage(&s, 5, 60000, 60000);
    start(&s, (const char *const[]){ "b.test" }, 1);
    s.resolve = agx_resolve_stop(s.resolve);
    s.stop_inside = true;
    start(&s, (const char *const[]){ "a.test" }, 1);
    run_until_told(&s, 1);
    ASSERT_NULL(s.resolve);
    close_stage(&s);
    ASSERT_UINT(1, s.told);
}

TEST(resolver_closes_though_a_server_is_silent)
{
    struct stage s;

    set_zone("", "9.9.9.9");
    set_hang(300);
    open_stage(&s, 60000, 60000, 60000);
    start(&s, (const char *const[]){ "b.test" }, 1);
    close_stage(&s);
    ASSERT_UINT(0, s.told);
}

TEST(resolver_asks_the_system_when_nobody_else_is_named)
{
    struct stage s = { .loop = test_loop_open() };

    ASSERT_OK(agx_resolver_open(s.loop, NULL, &s.resolver, NULL));
    start(&s, (const char *const[]){ "no-such-name.invalid" }, 1);
    run_until_told(&s, 1); /* it does not exist, or nobody answers here: no address in both cases */
    ASSERT_CSTR("", s.text);
    close_stage(&s);
}
