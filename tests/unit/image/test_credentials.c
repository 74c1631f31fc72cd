#include "image/credentials.h"
#include "tests/support/loop.h"

#include <stdlib.h>
#include <sys/stat.h>

/* A directory with Docker's config.json and helpers in it. */
struct fixture {
    struct agx_loop *loop;
    char dir[32], path[64];
    struct agx_credentials_env env;
    unsigned n_done;
    char found[500]; /* "server|user|secret"; "": none */
    char error[300];
};

static void write_file(struct fixture *f, const char *name, const char *text, mode_t mode)
{
    char path[100];
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/%s", f->dir, name);
    file = fopen(path, "we");
    ASSERT_NOT_NULL(file);
    (void)fputs(text, file);
    ASSERT_INT(0, fclose(file));
    ASSERT_INT(0, chmod(path, mode));
}

static void setup(struct fixture *f, const char *config)
{
    static const char *const all[] = { "PATH=/usr/bin:/bin", "MARK=m", NULL };

    *f = (struct fixture){ .loop = test_loop_open(), .dir = "/tmp/agx-creds-XXXXXX" };
    ASSERT_NOT_NULL(mkdtemp(f->dir));
    (void)snprintf(f->path, sizeof(f->path), "relative::%s", f->dir);
    f->env = (struct agx_credentials_env){ .config = f->dir, .path = f->path, .all = all };
    if (config)
        write_file(f, "config.json", config, 0600);
}

static void teardown(struct fixture *f)
{
    char command[100];

    test_loop_run(f->loop);
    test_loop_close(f->loop);
    (void)snprintf(command, sizeof(command), "rm -rf -- '%s'", f->dir);
    ASSERT_INT(0, system(command));
}

static void on_done(void *user, const struct agx_credentials *found, struct agx_error *error)
{
    struct fixture *f = user;

    f->n_done++;
    if (found)
        (void)snprintf(f->found, sizeof(f->found), "%s|%s|%s", found->server,
                       found->user ? found->user : "(token)", found->secret);
    if (error)
        agx_error_format(error, f->error, sizeof(f->error));
    agx_error_free(error);
}

static struct agx_credentials_lookup *start(struct fixture *f, const char *registry, uint64_t ms)
{
    struct agx_credentials_lookup *k =
        agx_credentials_lookup_start(f->loop,
                                     &(struct agx_credentials_lookup_params){
                                         .env = &f->env, .registry = registry, .helper_ms = ms },
                                     on_done, f);

    ASSERT_UINT(0, f->n_done);
    return k;
}

static void run(struct fixture *f, const char *registry)
{
    f->n_done = 0;
    f->found[0] = f->error[0] = '\0';
    (void)start(f, registry, 20000);
    test_loop_run(f->loop);
    ASSERT_UINT(1, f->n_done);
}

TEST(credentials_of_a_registry_are_found_in_the_file)
{
    struct fixture f;

    /* me:pa:ss */
    setup(&f, "{\"auths\":{\"https://index.docker.io/v1/\":{\"auth\":\"bWU6cGE6c3M=\"},"
              "\"reg:5000\":{\"username\":\"a\",\"password\":\"~~~???\"},"
              "\"https://old.example/v1/\":{\"identitytoken\":\"tok\"},"
              "\"empty.example\":{}}}");
    run(&f, "docker.io");
    ASSERT_CSTR("https://index.docker.io/v1/|me|pa:ss", f.found);
    run(&f, "reg:5000");
    ASSERT_CSTR("reg:5000|a|~~~???", f.found);
    run(&f, "old.example");
    ASSERT_CSTR("old.example|(token)|tok", f.found);
    run(&f, "empty.example");
    ASSERT_CSTR("", f.found);
    run(&f, "other.example");
    ASSERT_CSTR("", f.found);
    ASSERT_CSTR("", f.error);
    teardown(&f);
}

TEST(credentials_without_a_file_are_none_and_a_broken_one_is_told)
{
    struct fixture f;

    setup(&f, NULL);
    run(&f, "docker.io");
    ASSERT_CSTR("", f.found);
    ASSERT_CSTR("", f.error);
    write_file(&f, "config.json", "{", 0600);
    run(&f, "docker.io");
    ASSERT_NOT_NULL(strstr(f.error, "config.json"));
    write_file(&f, "config.json", "{\"auths\":{\"x.y\":{\"auth\":\"%%\"}}}", 0600);
    run(&f, "x.y");
    ASSERT_NOT_NULL(strstr(f.error, "'x.y'"));
    ASSERT_CSTR("", f.found);
    f.env.config = NULL;
    run(&f, "docker.io");
    ASSERT_CSTR("", f.error);
    teardown(&f);
}

TEST(credentials_of_a_helper_win_over_the_file)
{
    struct fixture f;

    setup(&f, "{\"auths\":{\"a.b\":{\"username\":\"no\",\"password\":\"no\"}},"
              "\"credsStore\":\"all\",\"credHelpers\":{\"a.b\":\"one\"}}");
    write_file(&f, "docker-credential-one",
               "#!/bin/sh\nread key\n"
               "echo \"{\\\"Username\\\":\\\"$1\\\",\\\"Secret\\\":\\\"$key$MARK\\\"}\"\n",
               0700);
    write_file(&f, "docker-credential-all",
               "#!/bin/sh\necho '{\"Username\":\"<token>\",\"Secret\":\"t\"}'\n", 0700);
    run(&f, "a.b");
    ASSERT_CSTR("a.b|get|a.bm", f.found);
    run(&f, "docker.io");
    ASSERT_CSTR("https://index.docker.io/v1/|(token)|t", f.found);
    ASSERT_CSTR("", f.error);
    teardown(&f);
}

TEST(credentials_of_a_helper_that_has_none_are_none)
{
    struct fixture f;

    setup(&f, "{\"credsStore\":\"x\"}");
    write_file(&f, "docker-credential-x", "#!/bin/sh\necho credentials not found\nexit 1\n", 0700);
    run(&f, "docker.io");
    ASSERT_CSTR("", f.found);
    ASSERT_CSTR("", f.error);
    teardown(&f);
}

TEST(credentials_of_a_helper_that_fails_are_none_and_it_is_told)
{
    struct fixture f;

    setup(&f, "{\"credsStore\":\"x\"}");
    run(&f, "docker.io");
    ASSERT_CSTR("there is no program 'docker-credential-x' in PATH", f.error);
    write_file(&f, "docker-credential-x", "#!/bin/sh\nexit 3\n", 0700);
    run(&f, "docker.io");
    ASSERT_CSTR("'docker-credential-x' failed", f.error);
    write_file(&f, "docker-credential-x", "#!/bin/sh\nyes | head -c 60000\n", 0700);
    run(&f, "docker.io");
    ASSERT_NOT_NULL(strstr(f.error, "gave no credentials"));
    write_file(&f, "docker-credential-x", "#!/no/such/interpreter\n", 0700);
    run(&f, "docker.io");
    ASSERT_NOT_NULL(strstr(f.error, "docker-credential-x'"));
    write_file(&f, "config.json", "{\"credsStore\":\"../x\"}", 0600);
    run(&f, "docker.io");
    ASSERT_NOT_NULL(strstr(f.error, "no program"));
    teardown(&f);
}

TEST(credentials_of_a_helper_that_hangs_are_not_waited_for)
{
    struct fixture f;

    setup(&f, "{\"credsStore\":\"x\"}");
    write_file(&f, "docker-credential-x", "#!/bin/sh\nsleep 1000\n", 0700);
    (void)start(&f, "docker.io", 30);
    test_loop_run(f.loop);
    ASSERT_UINT(1, f.n_done);
    ASSERT_CSTR("'docker-credential-x' does not answer", f.error);
    teardown(&f);
}

TEST(credentials_that_are_cancelled_are_not_told)
{
    struct fixture f;

    setup(&f, "{\"credHelpers\":{\"a.b\":\"x\"}}");
    write_file(&f, "docker-credential-x", "#!/bin/sh\nsleep 1000\n", 0700);
    agx_credentials_lookup_cancel(start(&f, "a.b", 20000));
    agx_credentials_lookup_cancel(start(&f, "docker.io", 20000));
    agx_credentials_lookup_cancel(NULL);
    test_loop_run(f.loop);
    ASSERT_UINT(0, f.n_done);
    teardown(&f);
}
