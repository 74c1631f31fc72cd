/* manager.c: see manager.h. */
#include "tests/support/manager.h"

#include "base/path.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

void fixture_prepare(struct fixture *f)
{
    *f = (struct fixture){ .config = AGX_MANAGER_CONFIG_INIT, .dir = "/tmp/agx-manager-XXXXXX" };
    ASSERT_NOT_NULL(mkdtemp(f->dir));
    f->loop = test_loop_open();
    /* A loop without a handle does not run posted functions. */
    (void)uv_timer_init(agx_loop_uv(f->loop), &f->keep);
    (void)uv_timer_start(&f->keep, test_loop_hang, TEST_LOOP_HANG_MS, 0);
    f->world = calloc(1, sizeof(*f->world));
    ASSERT_OK(agx_store_mem_open(f->loop, &agx_schema_layout, &f->store, NULL));
    f->config.log_root = f->dir;
    f->config.host.home = "/root";
    f->config.host.sandbox_home = "/home/box";
    f->config.sweep_ms = 5;
    f->config.look_ms = 100000;
    f->config.retry_first_ms = 2;
    f->config.retry_max_ms = 10;
    f->config.abandon_ms = f->config.look_deadline_ms = 100000; /* only the test can be slow */
    f->config.watch = (struct agx_watch_config){
        .window_ms = 100000, .stable_ms = 10000, .first_retry_ms = 2, .max_retry_ms = 5
    };
}

void fixture_open_manager(struct fixture *f)
{
    struct agx_error *err = NULL;
    char text[512];

    f->config.store = f->store;
    f->config.backend = world_backend(f->world, f->loop);
    if (agx_manager_open(f->loop, &f->config, &f->manager, &err) < 0)
        FAIL("%s", agx_error_format(err, text, sizeof(text)));
}

void fixture_open(struct fixture *f)
{
    fixture_prepare(f);
    fixture_open_manager(f);
}

static void count_done(void *user, struct agx_error *error)
{
    ++*(unsigned *)user;
    agx_error_free(error);
}

void fixture_close_manager(struct fixture *f)
{
    unsigned n = 0;

    agx_manager_close(f->manager, count_done, &n);
    ASSERT_UINT(0, n);
    UNTIL(f, n == 1);
    f->manager = NULL;
    agx_backend_close(f->config.backend, count_done, &n);
    UNTIL(f, n == 2);
}

void fixture_restart(struct fixture *f)
{
    fixture_close_manager(f);
    fixture_open_manager(f);
}

void fixture_close(struct fixture *f)
{
    unsigned n = 0;
    int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (f->manager)
        fixture_close_manager(f);
    agx_store_close(f->store, count_done, &n);
    UNTIL(f, n == 1);
    uv_close((uv_handle_t *)&f->keep, NULL);
    test_loop_close(f->loop);
    ASSERT_OK(agx_path_remove_tree(tmp, f->dir + strlen("/tmp/"), NULL));
    close(tmp);
    free(f->world);
}

void fixture_turn(struct fixture *f)
{
    (void)uv_run(agx_loop_uv(f->loop), UV_RUN_NOWAIT);
    usleep(50);
}

void fixture_turn_for(struct fixture *f, unsigned *turns, const char *what)
{
    if (++*turns > 100000)
        FAIL("it never came to: %s", what);
    fixture_turn(f);
}

void fixture_settle(struct fixture *f)
{
    for (unsigned i = 0; i < 300; i++)
        fixture_turn(f);
}

void reply_note(void *user, const struct agx_answer *a)
{
    struct reply *r = user;

    r->n++;
    r->code = a->error ? a->error->code : AGX_OK;
    r->reason = a->reason;
    if (a->reason_id)
        snprintf(r->reason_id, sizeof(r->reason_id), "%s", a->reason_id);
    if (a->error)
        (void)agx_error_format(a->error, r->text, sizeof(r->text));
    if (a->sandbox) {
        snprintf(r->id, sizeof(r->id), "%s", a->sandbox->id);
        r->phase = a->sandbox->life.phase;
        r->sequence = a->sandbox->life.last_sequence;
    }
    if (a->exec_id) {
        snprintf(r->exec_id, sizeof(r->exec_id), "%s", a->exec_id);
        snprintf(r->out_path, sizeof(r->out_path), "%s", a->out_path);
        snprintf(r->err_path, sizeof(r->err_path), "%s", a->err_path);
    }
    agx_error_free(a->error);
}

void send_create(struct fixture *f, const char *id, struct reply *r)
{
    struct agx_spec spec;

    agx_spec_init(&spec);
    ASSERT_OK(agx_text_set(&spec.image, "debian:12", NULL));
    *r = (struct reply){ 0 };
    agx_manager_create(f->manager, 1000, id, &spec, reply_note, r);
    ASSERT_UINT(0, r->n);
}

struct reply ask_create(struct fixture *f, const char *id)
{
    struct reply r;

    send_create(f, id, &r);
    UNTIL(f, r.n == 1);
    return r;
}

struct reply ask(struct fixture *f, const char *id, enum agx_on on)
{
    struct reply r = { 0 };

    agx_manager_ask(f->manager, id, on, reply_note, &r);
    ASSERT_UINT(0, r.n);
    UNTIL(f, r.n == 1);
    return r;
}

void send_exec(struct fixture *f, const char *sandbox_id, const char *exec_id, int64_t deadline_ns,
               struct reply *r)
{
    struct agx_exec exec;

    ASSERT_OK(agx_exec_init(&exec, exec_id, sandbox_id, NULL));
    ASSERT_OK(agx_words_add(&exec.command, AGX_STR("true"), NULL));
    exec.deadline_ns = deadline_ns;
    *r = (struct reply){ 0 };
    agx_manager_exec_create(f->manager, 1000, &exec, false, reply_note, r);
    ASSERT_UINT(0, r->n);
}

struct reply ask_exec(struct fixture *f, const char *sandbox_id, const char *exec_id)
{
    struct reply r;

    send_exec(f, sandbox_id, exec_id, 0, &r);
    UNTIL(f, r.n == 1);
    return r;
}

struct reply ask_cancel(struct fixture *f, const char *exec_id)
{
    struct reply r = { 0 };

    agx_manager_exec_cancel(f->manager, exec_id, reply_note, &r);
    ASSERT_UINT(0, r.n);
    UNTIL(f, r.n == 1);
    return r;
}

enum agx_phase phase_of(struct fixture *f, const char *id)
{
    const struct agx_sandbox *sb;

    return agx_manager_find(f->manager, id, &sb, NULL) == 0 ? sb->life.phase : AGX_PHASE_ABSENT;
}

uint64_t sequence_of(struct fixture *f, const char *id)
{
    const struct agx_sandbox *sb;

    ASSERT_OK(agx_manager_find(f->manager, id, &sb, NULL));
    return sb->life.last_sequence;
}

enum agx_exec_state exec_state_of(struct fixture *f, const char *exec_id)
{
    struct agx_exec exec;
    uint64_t sequence;
    enum agx_exec_state state;

    if (agx_manager_exec_find(f->manager, exec_id, &exec, &sequence, NULL) < 0)
        return AGX_EXEC_NONE;
    state = exec.state;
    agx_exec_done(&exec);
    return state;
}

void make_ready(struct fixture *f, const char *id)
{
    struct reply r = ask_create(f, id);

    if (r.code != AGX_OK)
        FAIL("create: %s", r.text);
    UNTIL(f, phase_of(f, id) == AGX_PHASE_READY);
}

uint64_t number_of(struct fixture *f, const char *id)
{
    uint64_t number = 0;

    ASSERT_INT(1, agx_schema_find_number(f->store, id, &number, NULL));
    ASSERT_TRUE(number > 0);
    return number;
}

const char *events_of(struct fixture *f, const char *id)
{
    static char text[4096];
    size_t len = 0;
    uint64_t newest = sequence_of(f, id), position = 0, number = number_of(f, id);

    text[0] = '\0';
    for (uint64_t i = 1; i <= newest; i++) {
        struct agx_event_record record = { 0 };
        const char *name;

        ASSERT_INT(1, agx_schema_get_event(f->store, number, i, &record, NULL));
        ASSERT_UINT(i, record.event.sequence);
        ASSERT_TRUE(record.position > position);
        position = record.position;
        name = agx_event_name(record.event.type);
        if (strncmp(name, "SANDBOX_", 8) == 0)
            name += 8;
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", i > 1 ? " " : "", name);
        ASSERT_TRUE(len < sizeof(text));
        agx_event_record_done(&record);
    }
    ASSERT_INT(0, agx_schema_get_event(f->store, number, newest + 1,
                                       &(struct agx_event_record){ 0 }, NULL));
    return text;
}
