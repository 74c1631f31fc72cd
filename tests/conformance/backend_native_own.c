/* Behaviour that only the native backend has. */
#include "tests/conformance/backend_native.h"
#include "tests/conformance/backend_stage.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* ---- commands ---- */

static void prepare_shell(struct stage *s, const char *script, struct test_command *c)
{
    static unsigned number;
    char id[32];

    (void)snprintf(id, sizeof(id), "shell-%u", number++);
    test_command_init(c, id, &s->sb);
    command(&c->exec.command, script);
}

static int32_t shell(struct stage *s, const char *script, struct test_command *c)
{
    prepare_shell(s, script, c);
    test_command_start(s->b, &s->sb, c, false, false);
    return test_command_wait(s->b, c);
}

/* Its output is that, and it ends well. */
static void says(struct stage *s, const char *script, const char *want)
{
    struct test_command c;

    ASSERT_INT(0, shell(s, script, &c));
    test_log_is(&c.out, want);
    test_command_done(&c);
}

static int32_t exits(struct stage *s, const char *script)
{
    struct test_command c;
    int32_t code = shell(s, script, &c);

    test_command_done(&c);
    return code;
}

/* ---- files ---- */

TEST(files_are_kept_by_a_stop_and_gone_with_the_sandbox)
{
    struct stage s;

    open_stage(&s);
    test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    says(&s, "echo new > /root/f; rm /etc/group; stat -c %u:%g:%a /root/f", "0:0:644\n");
    test_backend_ok(s.b, &s.sb, AGX_DO_STOP);
    test_backend_ok(s.b, &s.sb, AGX_DO_RESUME);
    says(&s, "cat /root/f; test -e /etc/group || echo gone", "new\ngone\n");
    test_backend_ok(s.b, &s.sb, AGX_DO_DELETE);
    test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    says(&s, "test -e /root/f || echo none; wc -l < /etc/group", "none\n3\n");
    close_stage(&s);
}

TEST(a_sandbox_knows_its_name_and_has_a_minimal_dev)
{
    struct stage s;

    open_stage(&s);
    test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    says(&s, "hostname; cat /etc/hostname", "conform-1\nconform-1\n");
    says(&s, "grep -c conform-1 /etc/hosts", "1\n");
    says(&s, "echo x > /dev/null && head -c 1 /dev/zero | wc -c", "1\n");
    ASSERT_INT(1, exits(&s, "test -e /dev/kmsg || test -e /dev/mem"));
    close_stage(&s);
}

static void host_dir(char path[160], const char *name)
{
    (void)snprintf(path, 160, "%s/%s", native_world_dir(), name);
    ASSERT_INT(0, mkdir(path, 0777));
    ASSERT_INT(0, chmod(path, 0777));
}

static void host_file(const char *dir, const char *name, const char *text)
{
    char path[256];
    FILE *f;

    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    f = fopen(path, "we");
    ASSERT_NOT_NULL(f);
    (void)fputs(text, f);
    (void)fclose(f);
}

TEST(mounts_show_the_host_with_its_own_ids_and_read_only_means_it)
{
    char writable[160], fixed[160], path[256];
    struct agx_mount *m;
    struct stat st;
    struct stage s;

    open_stage(&s);
    host_dir(writable, "writable");
    host_dir(fixed, "fixed");
    host_file(fixed, "f", "of the host\n");
    ASSERT_INT(0, chown(fixed, 1234, 1234));
    ASSERT_OK(agx_spec_add_mount(&s.sb.spec, &m, NULL));
    m->writable = true;
    ASSERT_OK(agx_text_set(&m->source, writable, NULL));
    ASSERT_OK(agx_text_set(&m->target, "/work/deep", NULL));
    ASSERT_OK(agx_spec_add_mount(&s.sb.spec, &m, NULL));
    ASSERT_OK(agx_text_set(&m->source, fixed, NULL));
    ASSERT_OK(agx_text_set(&m->target, "/fixed", NULL));
    test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    says(&s, "cat /fixed/f; stat -c %u /fixed; touch /work/deep/a; chown 77 /work/deep/a",
         "of the host\n1234\n");
    ASSERT_INT(1, exits(&s, "touch /fixed/b"));
    (void)snprintf(path, sizeof(path), "%s/a", writable);
    ASSERT_INT(0, stat(path, &st));
    ASSERT_UINT(77, st.st_uid);
    close_stage(&s);
}

static void add_copy(struct stage *s, const char *source, const char *target)
{
    struct agx_copy *c;

    ASSERT_OK(agx_spec_add_copy(&s->sb.spec, &c, NULL));
    ASSERT_OK(agx_text_set(&c->source, source, NULL));
    ASSERT_OK(agx_text_set(&c->target, target, NULL));
}

TEST(copies_are_there_before_the_main_process_and_belong_to_the_sandbox)
{
    char dir[160], path[256];
    struct stage s;

    open_stage(&s);
    host_dir(dir, "source");
    host_file(dir, "f", "copied\n");
    (void)snprintf(path, sizeof(path), "%s/f", dir);
    ASSERT_INT(0, chown(path, 55, 66));
    add_copy(&s, dir, "/data/in");
    add_copy(&s, path, "/etc/other-name");
    command(&s.sb.spec.command,
            "cat /data/in/f /etc/other-name > /root/part; mv /root/part /root/seen; "
            "sleep 1000000 & wait");
    test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    says(&s, "until [ -e /root/seen ]; do sleep 0.05; done; cat /root/seen", "copied\ncopied\n");
    says(&s, "stat -c %u:%g /data/in/f", "55:66\n");
    says(&s, "echo changed > /data/in/f; cat /data/in/f", "changed\n");
    test_backend_ok(s.b, &s.sb, AGX_DO_STOP);
    test_backend_ok(s.b, &s.sb, AGX_DO_RESUME); /* they are not copied again */
    says(&s, "cat /data/in/f", "changed\n");
    close_stage(&s);
}

TEST(a_copy_that_fails_is_named_and_nothing_is_left)
{
    struct test_reply r;
    char dir[160], out[192];
    struct stage s;

    open_stage(&s);
    host_dir(dir, "source");
    (void)snprintf(out, sizeof(out), "%s/out", dir);
    ASSERT_INT(0, symlink("/etc/shadow", out));
    add_copy(&s, dir, "/data");
    r = test_backend_do(s.b, &s.sb, AGX_DO_CREATE);
    ASSERT_TRUE(r.code != AGX_OK);
    ASSERT_NOT_NULL(strstr(r.text, "/data"));
    ASSERT_INT(AGX_SEEN_MISSING, test_backend_seen(s.b, s.sb.id));
    native_world_is_empty();
    close_stage(&s);
}

/* ---- images ---- */

struct removal {
    unsigned n_done;
    enum agx_code code;
};

static void on_removed(void *user, const struct agx_images_removed *removed,
                       struct agx_error *error)
{
    struct removal *r = user;

    (void)removed;
    r->n_done++;
    r->code = error ? error->code : AGX_OK;
    agx_error_free(error);
}

/* A backend that has not seen its sandbox yet, whose image is to be removed. */
static void open_removal(struct stage *s, struct removal *r)
{
    open_stage(s);
    test_backend_ok(s->b, &s->sb, AGX_DO_CREATE);
    reopen(s);
    agx_images_remove(native_world_images(), agx_str_from(conformance_backend_image()), on_removed,
                      r);
}

TEST(an_image_of_a_sandbox_stays_also_where_the_backend_has_not_seen_the_sandbox_yet)
{
    struct removal r = { 0 };
    struct stage s;

    open_removal(&s, &r);
    test_wait(s.b->loop, &r.n_done, 1);
    ASSERT_INT(AGX_FAILED_PRECONDITION, r.code);
    close_stage(&s);
}

TEST(a_removal_that_waits_at_the_end_of_the_backend_is_refused)
{
    struct removal r = { 0 };
    struct stage s;

    open_removal(&s, &r);
    reopen(&s);
    ASSERT_UINT(1, r.n_done);
    ASSERT_INT(AGX_CANCELLED, r.code);
    close_stage(&s);
}

/* ---- limits ---- */

static unsigned heard;

static void on_news(void *user, const char *sandbox_id)
{
    (void)user;
    (void)sandbox_id;
    heard++;
}

TEST(a_main_process_that_is_killed_for_memory_is_seen_so_also_after_a_restart)
{
    struct test_command go;
    struct stage s;

    open_stage(&s);
    heard = 0;
    s.b->news = on_news;
    ASSERT_OK(agx_text_set(&s.sb.spec.limits.memory, "32m", NULL));
    command(&s.sb.spec.command,
            "until [ -e /go ]; do sleep 0.05; done; exec head -c 200000000 /dev/zero | tail");
    test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    prepare_shell(&s, "touch /go", &go);
    test_command_start(s.b, &s.sb, &go, false, false);
    test_wait(s.b->loop, &go.n_end, 1); /* perhaps with the sandbox, which does not wait for it */
    test_wait(s.b->loop, &heard, 1);
    ASSERT_INT(AGX_SEEN_OOM, test_backend_seen(s.b, s.sb.id));
    reopen(&s);
    ASSERT_INT(AGX_SEEN_OOM, test_backend_seen(s.b, s.sb.id));
    test_command_done(&go);
    close_stage(&s);
}

TEST(a_disk_limit_holds_and_what_was_written_is_kept_by_a_stop)
{
    struct stage s;

    open_stage(&s);
    ASSERT_OK(agx_text_set(&s.sb.spec.limits.disk, "32m", NULL));
    if (test_backend_check(s.b, &s.sb.spec, NULL) < 0)
        SKIP("this machine cannot limit a disk");
    test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    ASSERT_INT(1, exits(&s, "head -c 64000000 /dev/zero > /root/big"));
    ASSERT_INT(1, exits(&s, "head -c 64000000 /dev/zero > /etc/hosts"));
    says(&s, "rm /root/big; : > /etc/hosts; echo small > /root/f; cat /root/f", "small\n");
    test_backend_ok(s.b, &s.sb, AGX_DO_STOP);
    reopen(&s);
    test_backend_ok(s.b, &s.sb, AGX_DO_RESUME);
    says(&s, "cat /root/f", "small\n");
    ASSERT_INT(1, exits(&s, "head -c 64000000 /dev/zero > /root/big"));
    close_stage(&s);
}

TEST(what_cannot_be_had_is_refused_by_the_name_of_its_field)
{
    struct agx_error *err = NULL;
    struct agx_port *port;
    struct stage s;

    open_stage(&s);
    ASSERT_OK(test_backend_check(s.b, &s.sb.spec, NULL));
    ASSERT_OK(agx_text_set(&s.sb.spec.gpus, "all", NULL));
    ASSERT_CODE(AGX_FAILED_PRECONDITION, test_backend_check(s.b, &s.sb.spec, &err));
    ASSERT_MESSAGE(err, "gpus");
    agx_error_freep(&err);
    ASSERT_OK(agx_text_set(&s.sb.spec.gpus, NULL, NULL));
    ASSERT_OK(agx_spec_add_port(&s.sb.spec, &port, NULL));
    *port = (struct agx_port){ 80, 8080, AGX_PROTOCOL_SCTP };
    ASSERT_CODE(AGX_FAILED_PRECONDITION, test_backend_check(s.b, &s.sb.spec, &err));
    ASSERT_MESSAGE(err, "ports");
    agx_error_freep(&err);
    close_stage(&s);
}

/* ---- companions ---- */

TEST(companions_are_reached_by_name_and_their_commands_run_when_they_are_healthy)
{
    struct agx_companion *c;
    struct stage s;

    open_stage(&s);
    ASSERT_OK(agx_spec_add_companion(&s.sb.spec, &c, NULL));
    ASSERT_OK(agx_text_set(&c->name, "web", NULL));
    ASSERT_OK(agx_text_set(&c->image, conformance_backend_image(), NULL));
    command(&c->command, "echo hello > /tmp/index.html; exec httpd -f -p 80 -h /tmp");
    c->healthcheck = (struct agx_healthcheck){ .set = true,
                                               .interval_ns = 50000000,
                                               .timeout_ns = AGX_NS_UNSET,
                                               .start_period_ns = AGX_NS_UNSET,
                                               .start_interval_ns = AGX_NS_UNSET,
                                               .retries = 1000 };
    ASSERT_OK(agx_words_add(&c->healthcheck.test, AGX_STR("CMD-SHELL"), NULL));
    ASSERT_OK(agx_words_add(&c->healthcheck.test, AGX_STR("wget -q -O /dev/null localhost"), NULL));
    ASSERT_OK(agx_words_add(&c->post_start_on_primary, AGX_STR("wget -q -O /root/page http://web/"),
                            NULL));
    test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    says(&s, "until [ -s /root/page ]; do sleep 0.05; done; cat /root/page", "hello\n");
    close_stage(&s);
}

TEST(a_companion_that_ended_is_started_again_beside_the_rest)
{
    struct test_reply r;
    struct stage s;
    pid_t primary;

    open_stage(&s);
    agx_sandbox_done(&s.sb);
    make_sandbox(&s.sb, "conform-2", 2);
    heard = 0;
    s.b->news = on_news;
    test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    primary = native_world_pid(s.sb.id, 0);
    ASSERT_INT(0, kill(native_world_pid(s.sb.id, 1), SIGKILL));
    test_wait(s.b->loop, &heard, 1);
    r = test_backend_look(s.b, s.sb.id);
    ASSERT_INT(AGX_SEEN_RUNNING, r.primary);
    ASSERT_INT(AGX_SEEN_EXITED, r.companions[0]);
    ASSERT_INT(AGX_SEEN_RUNNING, r.companions[1]);
    test_backend_ok(s.b, &s.sb, AGX_DO_REVIVE);
    r = test_backend_look(s.b, s.sb.id);
    ASSERT_INT(AGX_SEEN_RUNNING, r.companions[0]);
    ASSERT_INT(primary, native_world_pid(s.sb.id, 0));
    says(&s, "grep -c cache /etc/hosts", "1\n");
    reopen(&s); /* which finds it */
    r = test_backend_look(s.b, s.sb.id);
    ASSERT_INT(AGX_SEEN_RUNNING, r.companions[0]);
    close_stage(&s);
}

TEST(a_companion_that_ends_before_the_create_does_is_news_behind_it)
{
    struct stage s;

    open_stage(&s);
    agx_sandbox_done(&s.sb);
    make_sandbox(&s.sb, "conform-2", 2);
    command(&s.sb.spec.companions[0].command, "exit 3");
    heard = 0;
    s.b->news = on_news;
    test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    test_wait(s.b->loop, &heard, 1);
    ASSERT_INT(AGX_SEEN_EXITED, test_backend_look(s.b, s.sb.id).companions[0]);
    close_stage(&s);
}

/* Nobody waits for it: it is a child of ours that no backend knows. */
static void kill_and_await(pid_t pid)
{
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd p = { .fd = pidfd, .events = POLLIN };

    ASSERT_OK(pidfd);
    ASSERT_INT(0, kill(pid, SIGKILL));
    while (poll(&p, 1, -1) < 0)
        continue;
    (void)close(pidfd);
}

TEST(a_companion_that_ended_without_a_daemon_is_started_again_and_reached_at_once)
{
    static const char asks[] = "until wget -q -O - http://cache/; do sleep 0.05; done";
    struct agx_loop *l;
    struct test_reply r;
    pid_t primary, other;
    struct stage s;

    open_stage(&s);
    agx_sandbox_done(&s.sb);
    make_sandbox(&s.sb, "conform-2", 2);
    command(&s.sb.spec.companions[0].command,
            "echo hello > /tmp/index.html; exec httpd -f -p 80 -h /tmp");
    test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    says(&s, asks, "hello\n");
    primary = native_world_pid(s.sb.id, 0);
    other = native_world_pid(s.sb.id, 2);
    l = close_backend(&s);
    kill_and_await(native_world_pid(s.sb.id, 1));
    s.b = conformance_backend_open(l);
    for (unsigned i = 0; i < 2; i++) { /* the second time it finds what it had */
        r = test_backend_look(s.b, s.sb.id);
        ASSERT_INT(AGX_SEEN_RUNNING, r.primary);
        ASSERT_INT(AGX_SEEN_EXITED, r.companions[0]);
        ASSERT_INT(AGX_SEEN_RUNNING, r.companions[1]);
        test_backend_ok(s.b, &s.sb, AGX_DO_REVIVE);
        ASSERT_INT(AGX_SEEN_RUNNING, test_backend_look(s.b, s.sb.id).companions[0]);
        ASSERT_INT(primary, native_world_pid(s.sb.id, 0));
        ASSERT_INT(other, native_world_pid(s.sb.id, 2));
        says(&s, asks, "hello\n");
        heard = 0;
        s.b->news = on_news;
        kill_and_await(native_world_pid(s.sb.id, 1));
        test_wait(s.b->loop, &heard, 1);
    }
    test_backend_ok(s.b, &s.sb, AGX_DO_STOP);
    test_backend_ok(s.b, &s.sb, AGX_DO_RESUME);
    says(&s, asks, "hello\n");
    close_stage(&s);
}

/* ---- the host was booted ---- */

TEST(after_a_boot_of_the_host_it_is_there_and_can_be_resumed)
{
    struct stage s;

    open_stage(&s);
    test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    says(&s, "echo kept > /root/f", "");
    native_world_boot(&s);
    ASSERT_INT(AGX_SEEN_EXITED, test_backend_seen(s.b, s.sb.id));
    test_backend_ok(s.b, &s.sb, AGX_DO_RESUME);
    says(&s, "cat /root/f", "kept\n");
    close_stage(&s);
}

TEST(a_failed_create_leaves_nothing_behind)
{
    struct stage s;

    open_stage(&s);
    (void)conformance_backend_fails(s.sb.id, AGX_DO_CREATE);
    ASSERT_TRUE(test_backend_do(s.b, &s.sb, AGX_DO_CREATE).code != AGX_OK);
    native_world_is_empty();
    close_stage(&s);
}

TEST(an_image_that_is_not_there_fails_by_name)
{
    struct test_reply r;
    struct stage s;

    open_stage(&s);
    ASSERT_OK(agx_text_set(&s.sb.spec.image, "agx-none.invalid/nothing:1", NULL));
    r = test_backend_do(s.b, &s.sb, AGX_DO_CREATE);
    ASSERT_TRUE(r.code != AGX_OK);
    ASSERT_NOT_NULL(strstr(r.text, "agx-none.invalid"));
    native_world_is_empty();
    close_stage(&s);
}
