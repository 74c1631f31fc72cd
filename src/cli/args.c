/* args.c: the command lines of subcommands. */
#include "cli/args.h"

#include "base/duration.h"
#include "base/str.h"
#include "core/pairs.h"

#include <stdio.h>
#include <string.h>

#include "base/banned.h"

/* The current option; `given` is its spelling on the command line, for messages. */
struct option {
    const struct agx_arg *arg;
    const char *given;
    const char *value; /* the value in the same word; NULL: none */
};

static const struct agx_arg *by_name(const struct agx_arg *table, size_t count, const char *name,
                                     size_t len)
{
    for (size_t i = 0; i < count; i++) {
        if (strlen(table[i].name) == len && memcmp(table[i].name, name, len) == 0)
            return &table[i];
    }
    return NULL;
}

static const struct agx_arg *by_letter(const struct agx_arg *table, size_t count, char letter)
{
    for (size_t i = 0; i < count; i++) {
        if (table[i].letter == letter)
            return &table[i];
    }
    return NULL;
}

static struct option args_find(const struct agx_arg *table, size_t count, const char *word)
{
    struct option o = { .given = word };

    if (word[1] == '-') {
        size_t len = strcspn(word + 2, "=");

        o.arg = by_name(table, count, word + 2, len);
        o.value = word[2 + len] == '=' ? word + 2 + len + 1 : NULL;
    } else {
        o.arg = by_letter(table, count, word[1]);
        o.value = word[2] ? word + 2 : NULL;
    }
    return o;
}

static int set_pair(struct agx_pairs *pairs, const char *value, struct agx_error **err)
{
    size_t key = strcspn(value, "=");

    if (value[key] != '=' || key == 0)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "expected KEY=VALUE, got '%s'", value);
    return agx_pairs_set(pairs, agx_str_bytes(value, key), agx_str_from(value + key + 1), err);
}

static int set_duration(int64_t *into, const char *value, struct agx_error **err)
{
    int r = agx_duration_parse(agx_str_from(value), into, err);

    if (r < 0)
        return r;
    if (*into < 0)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "'%s' is negative", value);
    return 0;
}

static int set_number(uint64_t *into, const char *value, struct agx_error **err)
{
    if (agx_parse_u64(agx_str_from(value), UINT64_MAX, into))
        return 0;
    return agx_error_set(err, AGX_INVALID_ARGUMENT, "expected a number, got '%s'", value);
}

static int args_set(const struct agx_arg *arg, const char *value, struct agx_error **err)
{
    switch (arg->kind) {
    case AGX_ARG_FLAG:
        *(bool *)arg->into = true;
        return 0;
    case AGX_ARG_TEXT:
        *(const char **)arg->into = value;
        return 0;
    case AGX_ARG_WORD:
        return agx_words_add(arg->into, agx_str_from(value), err);
    case AGX_ARG_PAIR:
        return set_pair(arg->into, value, err);
    case AGX_ARG_DURATION:
        return set_duration(arg->into, value, err);
    case AGX_ARG_NUMBER:
        return set_number(arg->into, value, err);
    default:
        return arg->call(arg->into, value, err);
    }
}

/* Sets the option's value, which may be the next word: then advances *at. */
static int args_take(const struct agx_cli *cli, const struct option *o, int argc, char **argv,
                     int *at)
{
    struct agx_error *err = NULL;
    const char *value = o->value;
    char text[512];
    int status;

    if (o->arg->kind == AGX_ARG_FLAG) {
        if (value)
            return agx_cli_mistake(cli, "'%s': --%s takes no value", o->given, o->arg->name);
    } else if (!value) {
        if (*at + 1 >= argc)
            return agx_cli_mistake(cli, "--%s needs a value", o->arg->name);
        value = argv[++*at];
    }
    if (args_set(o->arg, value, &err) >= 0)
        return AGX_EXIT_GOING;
    status =
        agx_cli_mistake(cli, "--%s: %s", o->arg->name, agx_error_format(err, text, sizeof(text)));
    agx_error_free(err);
    return status;
}

static int take_option(const struct agx_cli *cli, int argc, char **argv, int *at,
                       const struct agx_arg *table, size_t count)
{
    const char *word = argv[*at];
    struct option o = args_find(table, count, word);

    if (!o.arg && (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)) {
        agx_cli_help(cli);
        return AGX_EXIT_OK;
    }
    if (!o.arg)
        return agx_cli_mistake(cli, "unknown option '%.*s'", (int)strcspn(word, "="), word);
    return args_take(cli, &o, argc, argv, at);
}

int agx_args_read(struct agx_args *a, const struct agx_cli *cli, int argc, char **argv,
                  const struct agx_arg *table, size_t count)
{
    int status = AGX_EXIT_GOING;

    *a = (struct agx_args){ 0 };
    for (int at = 1; at < argc && status == AGX_EXIT_GOING; at++) {
        if (strcmp(argv[at], "--") == 0) {
            a->dashes = true;
            a->rest = argv + at + 1;
            a->rest_len = (size_t)(argc - at - 1);
            break;
        }
        if (argv[at][0] == '-' && argv[at][1])
            status = take_option(cli, argc, argv, &at, table, count);
        else if (a->words_len == AGX_ARGS_WORDS_MAX)
            status = agx_cli_mistake(cli, "unexpected argument '%s'", argv[at]);
        else
            a->words[a->words_len++] = argv[at];
    }
    return status;
}

static int expect(const struct agx_args *a, const struct agx_cli *cli, size_t min, size_t max)
{
    if (a->words_len < min)
        return agx_cli_mistake(cli, min == 1 ? "an argument is missing" : "arguments are missing");
    if (a->words_len > max)
        return agx_cli_mistake(cli, "unexpected argument '%s'", a->words[max]);
    if (a->dashes)
        return agx_cli_mistake(cli, "no command is allowed after '--'");
    return AGX_EXIT_GOING;
}

int agx_args_take(struct agx_args *a, const struct agx_cli *cli, int argc, char **argv,
                  const struct agx_args_want *want)
{
    int status = agx_args_read(a, cli, argc, argv, want->table, want->count);

    return status == AGX_EXIT_GOING ? expect(a, cli, want->min, want->max) : status;
}
