/* test_cli_args.c: command lines of subcommands. */
#include "base/macros.h"
#include "cli/args.h"
#include "cli/create_options.h"
#include "core/pairs.h"
#include "tests/support/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static const struct agx_subcommand sub = { "get", "ID [--json]", "", "", NULL };
static const struct agx_command command = { .name = "sandbox" };
static const struct agx_cli cli = { .command = &command, .sub = &sub };

struct values {
    bool flag;
    const char *text;
    struct agx_words words;
    struct agx_pairs pairs;
    int64_t time;
    uint64_t number;
};

#define ARGV(...)                                                                                  \
    (char *[])                                                                                     \
    {                                                                                              \
        "get", __VA_ARGS__                                                                         \
    }
#define READ(v, a, ...)                                                                            \
    read_into(v, a, (int)AGX_ARRAY_LEN(((char *[]){ "get", __VA_ARGS__ })), ARGV(__VA_ARGS__))

/* What is said of mistakes is of no interest here. */
static int quietly(int (*run)(void *user), void *user)
{
    int saved = dup(STDERR_FILENO), null = open("/dev/null", O_WRONLY), r;

    (void)fflush(stderr);
    (void)dup2(null, STDERR_FILENO);
    r = run(user);
    (void)fflush(stderr);
    (void)dup2(saved, STDERR_FILENO);
    (void)close(saved);
    (void)close(null);
    return r;
}

struct reading {
    struct values *v;
    struct agx_args *a;
    int argc;
    char **argv;
};

static int read_it(void *user)
{
    struct reading *r = user;
    const struct agx_arg table[] = {
        { "flag", 'f', AGX_ARG_FLAG, &r->v->flag, NULL },
        { "text", 't', AGX_ARG_TEXT, &r->v->text, NULL },
        { "word", 0, AGX_ARG_WORD, &r->v->words, NULL },
        { "pair", 0, AGX_ARG_PAIR, &r->v->pairs, NULL },
        { "time", 0, AGX_ARG_DURATION, &r->v->time, NULL },
        { "number", 'n', AGX_ARG_NUMBER, &r->v->number, NULL },
    };

    return agx_args_read(r->a, &cli, r->argc, r->argv, table, AGX_ARRAY_LEN(table));
}

static int read_into(struct values *v, struct agx_args *a, int argc, char **argv)
{
    struct reading r = { v, a, argc, argv };

    return quietly(read_it, &r);
}

static void values_done(struct values *v)
{
    agx_words_done(&v->words);
    agx_pairs_done(&v->pairs);
}

TEST(args_options_and_words_stand_in_any_order)
{
    struct values v = { 0 };
    struct agx_args a;

    ASSERT_INT(AGX_EXIT_GOING, READ(&v, &a, "one", "--flag", "--text", "x", "two", "--number=7",
                                    "--time=1m30s", "--word", "a", "--word=b", "--pair", "k=v=w"));
    ASSERT_TRUE(v.flag);
    ASSERT_CSTR("x", v.text);
    ASSERT_UINT(7, v.number);
    ASSERT_INT(90 * INT64_C(1000000000), v.time);
    ASSERT_UINT(2, v.words.len);
    ASSERT_CSTR("v=w", agx_pairs_get(&v.pairs, "k"));
    ASSERT_UINT(2, a.words_len);
    ASSERT_CSTR("two", a.words[1]);
    ASSERT_FALSE(a.dashes);
    values_done(&v);
}

TEST(args_letters_have_their_value_beside_them_or_behind_them)
{
    struct values v = { 0 };
    struct agx_args a;

    ASSERT_INT(AGX_EXIT_GOING, READ(&v, &a, "-f", "-n", "5", "-tx"));
    ASSERT_TRUE(v.flag);
    ASSERT_UINT(5, v.number);
    ASSERT_CSTR("x", v.text);
}

TEST(args_behind_dashes_are_a_command)
{
    char *argv[] = { "get", "id", "--", "ls", "--flag", "--" };
    char *without[] = { "get", "--" };
    struct values v = { 0 };
    struct agx_args a;

    ASSERT_INT(AGX_EXIT_GOING, read_into(&v, &a, (int)AGX_ARRAY_LEN(argv), argv));
    ASSERT_FALSE(v.flag);
    ASSERT_TRUE(a.dashes);
    ASSERT_UINT(3, a.rest_len);
    ASSERT_CSTR("--flag", a.rest[1]);
    ASSERT_INT(AGX_EXIT_GOING, read_into(&v, &a, (int)AGX_ARRAY_LEN(without), without));
    ASSERT_TRUE(a.dashes);
    ASSERT_UINT(0, a.rest_len);
}

TEST(args_that_are_wrong_are_a_mistake)
{
    struct values v = { 0 };
    struct agx_args a;

    ASSERT_INT(AGX_EXIT_USAGE, READ(&v, &a, "--nothing"));
    ASSERT_INT(AGX_EXIT_USAGE, READ(&v, &a, "-x"));
    ASSERT_INT(AGX_EXIT_USAGE, READ(&v, &a, "--fla"));
    ASSERT_INT(AGX_EXIT_USAGE, READ(&v, &a, "--flag=yes"));
    ASSERT_INT(AGX_EXIT_USAGE, READ(&v, &a, "--text"));
    ASSERT_INT(AGX_EXIT_USAGE, READ(&v, &a, "--number", "-1"));
    ASSERT_INT(AGX_EXIT_USAGE, READ(&v, &a, "--number", "99999999999999999999"));
    ASSERT_INT(AGX_EXIT_USAGE, READ(&v, &a, "--time", "soon"));
    ASSERT_INT(AGX_EXIT_USAGE, READ(&v, &a, "--time", "-1s"));
    ASSERT_INT(AGX_EXIT_USAGE, READ(&v, &a, "--pair", "=v"));
    ASSERT_INT(AGX_EXIT_USAGE, READ(&v, &a, "--pair", "k"));
    ASSERT_INT(AGX_EXIT_USAGE, READ(&v, &a, "1", "2", "3"));
    values_done(&v);
}

struct creating {
    struct agx_create_options *o;
    int argc;
    char **argv;
};

static int create_it(void *user)
{
    struct creating *c = user;

    return agx_create_options_read(c->o, &cli, c->argc, c->argv);
}

static int create_from(struct agx_create_options *o, int argc, char **argv)
{
    struct creating c = { o, argc, argv };

    return quietly(create_it, &c);
}

#define CREATE(o, ...)                                                                             \
    create_from(o, (int)AGX_ARRAY_LEN(((char *[]){ "create", __VA_ARGS__ })), ARGV(__VA_ARGS__))

static void expect_mistake(int argc, char **argv)
{
    struct agx_create_options o;

    ASSERT_INT(AGX_EXIT_USAGE, create_from(&o, argc, argv));
    agx_create_options_done(&o);
}

#define EXPECT_MISTAKE(...)                                                                        \
    expect_mistake((int)AGX_ARRAY_LEN(((char *[]){ "create", __VA_ARGS__ })), ARGV(__VA_ARGS__))

TEST(create_options_become_the_spec)
{
    struct agx_create_options o;
    struct agx_spec *s = &o.request.spec;

    ASSERT_INT(AGX_EXIT_GOING,
               CREATE(&o, "--image", "debian:12", "--sandbox-id", "abcd", "--label", "a=b",
                      "--env=K=V", "--idle-ttl", "0", "--mount", "/h:/c:writable", "--mount",
                      "/h2:/c2", "--mount", "/h3:/c3:writable,suid=allow", "--copy", "~/x:/y",
                      "--port", "8080:80", "--port", "53:5353/udp", "--egress", "10.0.0.0/8:443",
                      "--cpu-limit", "1.5", "--memory-limit", "1g", "--disk-limit", "2g", "--gpus",
                      "all", "--builtin-tool", "git", "--timeout", "5s", "--", "sleep", "9"));
    ASSERT_CSTR("debian:12", s->image);
    ASSERT_CSTR("abcd", o.request.sandbox_id);
    ASSERT_CSTR("b", agx_pairs_get(&s->labels, "a"));
    ASSERT_CSTR("V", agx_pairs_get(&s->envs, "K"));
    ASSERT_INT(0, s->idle_ttl_ns);
    ASSERT_TRUE(s->mounts[0].writable && !s->mounts[1].writable);
    ASSERT_CSTR("/c2", s->mounts[1].target);
    ASSERT_TRUE(s->mounts[0].suid == AGX_SUID_DENY && s->mounts[2].suid == AGX_SUID_ALLOW);
    ASSERT_TRUE(s->mounts[2].writable);
    ASSERT_CSTR("~/x", s->copies[0].source);
    ASSERT_UINT(8080, s->ports[0].host_port);
    ASSERT_UINT(80, s->ports[0].container_port);
    ASSERT_INT(AGX_PROTOCOL_UDP, s->ports[1].protocol);
    ASSERT_INT(AGX_NETWORK_EGRESS, s->network);
    ASSERT_CSTR("10.0.0.0/8:443", s->egress.items[0]);
    ASSERT_CSTR("1.5", s->limits.cpu);
    ASSERT_CSTR("all", s->gpus);
    ASSERT_CSTR("git", s->builtin_tools.items[0]);
    ASSERT_UINT(2, s->command.len);
    ASSERT_INT(5 * INT64_C(1000000000), o.timeout_ns);
    agx_create_options_done(&o);
}

TEST(create_options_make_sources_absolute)
{
    struct agx_create_options o;
    char cwd[4096], want[5000];

    ASSERT_NOT_NULL(getcwd(cwd, sizeof(cwd)));
    (void)snprintf(want, sizeof(want), "%s/x/../y", cwd);
    ASSERT_INT(AGX_EXIT_GOING, CREATE(&o, "--image", "i", "--mount", "x/../y:/c"));
    ASSERT_CSTR(want, o.request.spec.mounts[0].source);
    ASSERT_INT(AGX_NS_UNSET, o.request.spec.idle_ttl_ns);
    agx_create_options_done(&o);
}

TEST(create_options_that_are_wrong_are_a_mistake)
{
    EXPECT_MISTAKE("--label", "a=b");
    EXPECT_MISTAKE("--image", "i", "word");
    EXPECT_MISTAKE("--image", "i", "--mount", "/h");
    EXPECT_MISTAKE("--image", "i", "--mount", "/h:/c:readable");
    EXPECT_MISTAKE("--image", "i", "--mount", "/h:/c:writable:x");
    EXPECT_MISTAKE("--image", "i", "--mount", ":/c");
    EXPECT_MISTAKE("--image", "i", "--mount", "/h:/c:suid=allow");
    EXPECT_MISTAKE("--image", "i", "--mount", "/h:/c:writable,suid=maybe");
    EXPECT_MISTAKE("--image", "i", "--copy", "/h:/c:writable");
    EXPECT_MISTAKE("--image", "i", "--port", "80");
    EXPECT_MISTAKE("--image", "i", "--port", "80:80/icmp");
    EXPECT_MISTAKE("--image", "i", "--port", "80:65536");
    EXPECT_MISTAKE("--image", "i", "--port", "x:80");
    EXPECT_MISTAKE("--image", "i", "--network", "host");
    EXPECT_MISTAKE("--yaml-file", "/nowhere/at/all");
}
