#include "backend/docker/api/engine_endpoint.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "tests/support/digest.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* A home with Docker's files in it. */
struct fixture {
    char home[32], config[48];
    struct agx_docker_env env;
    struct agx_engine_endpoint endpoint;
    struct agx_error *error;
};

static void setup(struct fixture *f)
{
    *f = (struct fixture){ .home = "/tmp/agx-where-XXXXXX" };
    ASSERT_NOT_NULL(mkdtemp(f->home));
    (void)snprintf(f->config, sizeof(f->config), "%s/.docker", f->home);
    f->env.home = f->home;
}

static void teardown(struct fixture *f)
{
    char command[100];

    (void)snprintf(command, sizeof(command), "rm -rf -- '%s'", f->home);
    ASSERT_INT(0, system(command));
    agx_engine_endpoint_done(&f->endpoint);
    f->error = agx_error_free(f->error);
}

/* Writes a file below the home's .docker, with the directories that it needs. */
static void put(struct fixture *f, const char *name, const char *text)
{
    char path[300];
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/%s", f->config, name);
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        ASSERT_TRUE(mkdir(path, 0700) == 0 || errno == EEXIST);
        *slash = '/';
    }
    file = fopen(path, "we");
    ASSERT_NOT_NULL(file);
    (void)fputs(text, file);
    ASSERT_INT(0, fclose(file));
}

static void put_context(struct fixture *f, const char *name, const char *meta)
{
    char digest[AGX_DIGEST_SIZE], path[200];

    (void)snprintf(path, sizeof(path), "contexts/meta/%s/meta.json",
                   test_digest_of(agx_str_from(name), digest) + strlen("sha256:"));
    put(f, path, meta);
}

static int find(struct fixture *f, const char *target)
{
    agx_engine_endpoint_done(&f->endpoint);
    f->error = agx_error_free(f->error);
    return agx_engine_endpoint_find(target, &f->env, &f->endpoint, &f->error);
}

TEST(endpoint_without_anything_set_is_the_usual_socket)
{
    struct fixture f;

    setup(&f);
    f.env.host = "";
    f.env.context = "default";
    ASSERT_OK(find(&f, NULL));
    ASSERT_CSTR("unix:///var/run/docker.sock", f.endpoint.host);
    ASSERT_CSTR("/var/run/docker.sock", f.endpoint.unix_socket);
    ASSERT_TRUE(f.endpoint.is_local);
    f.env.home = NULL;
    f.env.context = NULL;
    ASSERT_OK(find(&f, ""));
    ASSERT_TRUE(f.endpoint.is_local);
    teardown(&f);
}

TEST(endpoint_of_the_target_wins_over_docker_host_and_that_over_the_context)
{
    struct fixture f;

    setup(&f);
    f.env.host = "unix:///run/one.sock";
    f.env.context = "missing";
    ASSERT_OK(find(&f, "unix:///run/two.sock"));
    ASSERT_CSTR("/run/two.sock", f.endpoint.unix_socket);
    ASSERT_OK(find(&f, NULL));
    ASSERT_CSTR("/run/one.sock", f.endpoint.unix_socket);
    teardown(&f);
}

TEST(endpoint_of_tcp_has_the_usual_ports_and_keeps_a_path)
{
    static const char *const cases[][2] = {
        { "tcp://host:1234", "http://host:1234" }, { "tcp://host", "http://host:2375" },
        { "tcp://[::1]", "http://[::1]:2375" },    { "tcp://[::1]:7", "http://[::1]:7" },
        { "tcp://host:1/", "http://host:1" },      { "tcp://host:1/proxy", "http://host:1/proxy" },
        { "https://host", "https://host:2376" },   { "http://host:80", "http://host:80" },
    };
    struct fixture f;

    setup(&f);
    for (size_t i = 0; i < AGX_ARRAY_LEN(cases); i++) {
        ASSERT_OK(find(&f, cases[i][0]));
        ASSERT_CSTR(cases[i][1], f.endpoint.base);
        ASSERT_CSTR(cases[i][0], f.endpoint.host);
        ASSERT_NULL(f.endpoint.unix_socket);
        ASSERT_FALSE(f.endpoint.is_local);
    }
    teardown(&f);
}

TEST(endpoint_of_what_we_do_not_speak_is_refused_by_name)
{
    static const char *const cases[] = {
        "ssh://host", "npipe:////./pipe/x", "fd://",          "unix://run/x", "tcp://",
        "host:2375",  "tcp://u@host:1",     "tcp://host:1?x", "unix://"
    };
    struct fixture f;

    setup(&f);
    for (size_t i = 0; i < AGX_ARRAY_LEN(cases); i++) {
        ASSERT_CODE(AGX_INVALID_ARGUMENT, find(&f, cases[i]));
        ASSERT_MESSAGE(f.error, cases[i]);
    }
    teardown(&f);
}

TEST(endpoint_with_certificates_is_tls_and_checks_only_when_told)
{
    char ca[100];
    struct fixture f;

    setup(&f);
    put(&f, "ca.pem", "");
    put(&f, "key.pem", "");
    (void)snprintf(ca, sizeof(ca), "%s/ca.pem", f.config);
    f.env.host = "tcp://host";
    f.env.cert_path = f.config;
    ASSERT_OK(find(&f, NULL));
    ASSERT_CSTR("https://host:2376", f.endpoint.base);
    ASSERT_CSTR(ca, f.endpoint.ca_file);
    ASSERT_NULL(f.endpoint.cert_file);
    ASSERT_NOT_NULL(f.endpoint.key_file);
    ASSERT_TRUE(f.endpoint.insecure);
    f.env.tls_verify = "1";
    ASSERT_OK(find(&f, NULL));
    ASSERT_FALSE(f.endpoint.insecure);
    f.env.cert_path = NULL; /* Docker's own directory then */
    ASSERT_OK(find(&f, NULL));
    ASSERT_CSTR(ca, f.endpoint.ca_file);
    ASSERT_OK(find(&f, "unix:///run/x")); /* no TLS there */
    ASSERT_NULL(f.endpoint.ca_file);
    teardown(&f);
}

TEST(endpoint_of_a_context_is_what_its_file_says)
{
    char path[200], digest[AGX_DIGEST_SIZE];
    struct fixture f;

    setup(&f);
    put_context(&f, "far",
                "{\"Name\":\"far\",\"Endpoints\":{\"docker\":"
                "{\"Host\":\"tcp://far:2376\",\"SkipTLSVerify\":false}}}");
    f.env.context = "far";
    ASSERT_OK(find(&f, NULL));
    ASSERT_CSTR("http://far:2376", f.endpoint.base);
    (void)snprintf(path, sizeof(path), "contexts/tls/%s/docker/ca.pem",
                   test_digest_of(AGX_STR("far"), digest) + strlen("sha256:"));
    put(&f, path, "");
    ASSERT_OK(find(&f, NULL));
    ASSERT_CSTR("https://far:2376", f.endpoint.base);
    ASSERT_NOT_NULL(strstr(f.endpoint.ca_file, path));
    ASSERT_FALSE(f.endpoint.insecure);

    put(&f, "config.json", "{\"currentContext\":\"near\"}");
    put_context(&f, "near", "{\"Endpoints\":{\"docker\":{\"Host\":\"unix:///run/near\"}}}");
    f.env.context = NULL;
    ASSERT_OK(find(&f, NULL));
    ASSERT_CSTR("/run/near", f.endpoint.unix_socket);
    teardown(&f);
}

TEST(endpoint_of_a_context_that_is_missing_or_broken_is_an_error)
{
    struct fixture f;

    setup(&f);
    f.env.context = "gone";
    ASSERT_CODE(AGX_NOT_FOUND, find(&f, NULL));
    ASSERT_MESSAGE(f.error, "'gone'");
    put_context(&f, "gone", "{\"Endpoints\":[]}");
    ASSERT_CODE(AGX_NOT_FOUND, find(&f, NULL));
    put_context(&f, "gone", "{");
    ASSERT_CODE(AGX_INVALID_ARGUMENT, find(&f, NULL));
    put_context(&f, "gone", "{\"Endpoints\":{\"docker\":{\"Host\":\"ssh://far\"}}}");
    ASSERT_CODE(AGX_INVALID_ARGUMENT, find(&f, NULL));
    ASSERT_MESSAGE(f.error, "ssh://far");
    f.env.context = NULL;
    put(&f, "config.json", "nonsense");
    ASSERT_CODE(AGX_INVALID_ARGUMENT, find(&f, NULL));
    ASSERT_MESSAGE(f.error, "config.json");
    put(&f, "config.json", "[]"); /* no such member there: the default */
    ASSERT_OK(find(&f, NULL));
    f.env.home = NULL;
    f.env.context = "gone";
    ASSERT_CODE(AGX_FAILED_PRECONDITION, find(&f, NULL));
    teardown(&f);
}
