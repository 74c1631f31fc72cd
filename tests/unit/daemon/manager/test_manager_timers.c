/* test_manager_timers.c: idle stop, clean-up, and the files of the host that a sandbox may get. */
#include "backend/files/sources.h"
#include "tests/support/manager.h"

#include "base/path.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

TEST(an_idle_sandbox_is_stopped_and_a_resume_sets_its_clock_again)
{
    struct fixture f;

    fixture_prepare(&f);
    f.config.idle_ttl_ns = 30 * 1000000;
    fixture_open_manager(&f);
    make_ready(&f, "box1");
    UNTIL(&f, phase_of(&f, "box1") == AGX_PHASE_STOPPED);
    (void)ask(&f, "box1", AGX_ON_RESUME);
    UNTIL(&f, phase_of(&f, "box1") == AGX_PHASE_READY);
    UNTIL(&f, phase_of(&f, "box1") == AGX_PHASE_STOPPED);
    ASSERT_UINT(2, world_box(f.world, "box1")->n[AGX_DO_STOP]);
    fixture_close(&f);
}

/* A sandbox with a command. Its idle time is the shortest in which we are able to start that. */
static struct reply open_busy(struct fixture *f, int64_t cleanup_ttl_ns)
{
    for (int64_t idle_ns = 20 * 1000000;; idle_ns *= 2) {
        struct reply r;

        fixture_prepare(f);
        f->config.idle_ttl_ns = idle_ns;
        if (cleanup_ttl_ns)
            f->config.cleanup_ttl_ns = cleanup_ttl_ns;
        fixture_open_manager(f);
        make_ready(f, "box1");
        r = ask_exec(f, "box1", "exec1");
        if (r.code == AGX_OK)
            return r;
        fixture_close(f);
    }
}

TEST(a_command_keeps_its_sandbox_from_idling)
{
    struct fixture f;
    uint64_t end;

    (void)open_busy(&f, 0);
    end = uv_hrtime() + 3 * (uint64_t)f.config.idle_ttl_ns;
    while (uv_hrtime() < end)
        fixture_settle(&f);
    ASSERT_INT(AGX_PHASE_READY, phase_of(&f, "box1"));
    world_exit(f.world, "exec1", 0);
    UNTIL(&f, phase_of(&f, "box1") == AGX_PHASE_STOPPED);
    ASSERT_CSTR("ACCEPTED PREPARING READY EXEC_STARTED EXEC_FINISHED STOP_REQUESTED STOPPED",
                events_of(&f, "box1"));
    fixture_close(&f);
}

TEST(an_idle_stop_that_cannot_be_stored_is_tried_again)
{
    struct fixture f;

    fixture_prepare(&f);
    f.config.idle_ttl_ns = 20 * 1000000;
    fixture_open_manager(&f);
    make_ready(&f, "box1");
    agx_store_mem_fail(f.store, AGX_RESOURCE_EXHAUSTED, 3);
    UNTIL(&f, phase_of(&f, "box1") == AGX_PHASE_STOPPED);
    ASSERT_CSTR("ACCEPTED PREPARING READY STOP_REQUESTED STOPPED", events_of(&f, "box1"));
    fixture_close(&f);
}

TEST(a_stopped_sandbox_is_deleted_and_then_purged_with_its_logs)
{
    struct fixture f;
    struct reply r;
    char dir[300];

    r = open_busy(&f, 10 * 1000000);
    ASSERT_INT(0, access(r.out_path, F_OK));
    UNTIL(&f, world_exec(f.world, "exec1"));
    world_exit(f.world, "exec1", 0);
    UNTIL(&f, phase_of(&f, "box1") == AGX_PHASE_ABSENT);
    ASSERT_UINT(1, world_box(f.world, "box1")->n[AGX_DO_DELETE]);
    snprintf(dir, sizeof(dir), "%s/box1", f.dir);
    UNTIL(&f, access(dir, F_OK) < 0);
    fixture_close(&f);
}

TEST(logs_that_a_purge_left_behind_are_found_at_the_next_start)
{
    struct fixture f;
    struct reply r;
    char dir[300], log[320], other[320];

    fixture_prepare(&f);
    f.config.cleanup_ttl_ns = 1000000;
    fixture_open_manager(&f);
    make_ready(&f, "gone");
    (void)ask(&f, "gone", AGX_ON_DELETE);
    UNTIL(&f, phase_of(&f, "gone") == AGX_PHASE_ABSENT);
    make_ready(&f, "box1");
    r = ask_exec(&f, "box1", "exec1");
    fixture_close_manager(&f);
    snprintf(dir, sizeof(dir), "%s/gone", f.dir);
    snprintf(log, sizeof(log), "%s/exec0.stdout.log", dir);
    ASSERT_INT(0, mkdir(dir, 0700));
    close(open(log, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    snprintf(other, sizeof(other), "%s/photos", f.dir);
    ASSERT_INT(0, mkdir(other, 0700));
    fixture_open_manager(&f);
    UNTIL(&f, access(dir, F_OK) < 0);
    ASSERT_INT(0, access(r.out_path, F_OK));
    ASSERT_INT(0, access(other, F_OK)); /* never ours */
    fixture_close(&f);
}

TEST(a_purge_removes_only_logs)
{
    struct fixture f;
    struct reply r;
    char path[320];

    fixture_prepare(&f);
    f.config.cleanup_ttl_ns = 1000000;
    fixture_open_manager(&f);
    make_ready(&f, "box1");
    r = ask_exec(&f, "box1", "exec1");
    snprintf(path, sizeof(path), "%s/box1/thesis.txt", f.dir);
    close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    (void)ask(&f, "box1", AGX_ON_DELETE);
    UNTIL(&f, access(r.out_path, F_OK) < 0 && access(r.err_path, F_OK) < 0);
    fixture_settle(&f);
    ASSERT_INT(0, access(path, F_OK));
    fixture_close(&f);
}

static struct reply create_with_mount(struct fixture *f, const char *source)
{
    struct agx_spec spec;
    struct agx_mount *m;
    struct reply r = { 0 };

    agx_spec_init(&spec);
    ASSERT_OK(agx_text_set(&spec.image, "debian:12", NULL));
    ASSERT_OK(agx_spec_add_mount(&spec, &m, NULL));
    ASSERT_OK(agx_text_set(&m->source, source, NULL));
    ASSERT_OK(agx_text_set(&m->target, "/mnt", NULL));
    agx_manager_create(f->manager, 1000, NULL, &spec, reply_note, &r);
    ASSERT_UINT(0, r.n);
    UNTIL(f, r.n == 1);
    return r;
}

TEST(what_belongs_to_the_daemon_is_not_given_to_a_sandbox)
{
    struct fixture f;
    struct reply r;
    char top[] = "/tmp/agx-sources-XXXXXX", mine[100], beneath[150], beside[100], way[100];
    const char *private_paths[] = { mine };
    const struct agx_sources_config sources = { .private_paths = private_paths,
                                                .n_private_paths = 1 };
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    fixture_prepare(&f);
    ASSERT_NOT_NULL(mkdtemp(top));
    snprintf(mine, sizeof(mine), "%s/data", top);
    snprintf(beneath, sizeof(beneath), "%s/store", mine);
    snprintf(beside, sizeof(beside), "%s/data-of-mine", top);
    snprintf(way, sizeof(way), "%s/way", top);
    ASSERT_INT(0, mkdir(mine, 0700));
    ASSERT_INT(0, mkdir(beneath, 0700));
    ASSERT_INT(0, mkdir(beside, 0700));
    ASSERT_INT(0, symlink(mine, way));
    ASSERT_OK(agx_sources_new(&sources, &f.config.sources, NULL));
    fixture_open_manager(&f);
    r = create_with_mount(&f, mine);
    ASSERT_INT(AGX_INVALID_ARGUMENT, r.code);
    ASSERT_TRUE(strstr(r.text, "belongs to the daemon") != NULL);
    ASSERT_INT(AGX_INVALID_ARGUMENT, create_with_mount(&f, beneath).code);
    snprintf(beneath, sizeof(beneath), "%s/store", way);
    ASSERT_INT(AGX_INVALID_ARGUMENT, create_with_mount(&f, beneath).code);
    ASSERT_INT(AGX_OK, create_with_mount(&f, beside).code);
    r = create_with_mount(&f, "/nonexistent/path");
    ASSERT_INT(AGX_INVALID_ARGUMENT, r.code);
    ASSERT_TRUE(strstr(r.text, "lstat") != NULL);
    ASSERT_INT(AGX_INVALID_ARGUMENT, create_with_mount(&f, way).code);
    snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/sock", beside);
    ASSERT_INT(0, bind(fd, (struct sockaddr *)&addr, sizeof(addr)));
    ASSERT_INT(AGX_OK, create_with_mount(&f, addr.sun_path).code);
    close(fd);
    fixture_close(&f);
    agx_sources_unref(f.config.sources);
    fd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ASSERT_OK(agx_path_remove_tree(fd, top + strlen("/tmp/"), NULL));
    close(fd);
}
