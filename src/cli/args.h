/*
 * args.h: one parser for the command lines of all subcommands: a table says which options there are
 * and where their values go.
 *
 *     const struct agx_arg table[] = {
 *         { "json", 0, AGX_ARG_FLAG, &json, NULL },
 *         { "label", 0, AGX_ARG_PAIR, &labels, NULL },
 *     };
 *
 * --name VALUE and --name=VALUE, -x VALUE and -xVALUE; options and words may stand in any order;
 * what follows `--` is a command and never looked at. --help and -h are known to all.
 */
#ifndef AGX_CLI_ARGS_H
#define AGX_CLI_ARGS_H

#include "base/error.h"
#include "cli/command.h"

enum agx_arg_kind {
    AGX_ARG_FLAG,     /* bool *: it takes no value */
    AGX_ARG_TEXT,     /* const char **: borrowed of argv; of several the last */
    AGX_ARG_WORD,     /* struct agx_words *: one more of a list */
    AGX_ARG_PAIR,     /* struct agx_pairs *: KEY=VALUE */
    AGX_ARG_DURATION, /* int64_t *: nanoseconds, 0 or more */
    AGX_ARG_NUMBER,   /* uint64_t * */
    AGX_ARG_CALL,     /* anything: `call` is given it */
};

struct agx_arg {
    const char *name;
    char letter; /* 0: none */
    enum agx_arg_kind kind;
    void *into;
    int (*call)(void *into, const char *value, struct agx_error **err);
};

enum { AGX_ARGS_WORDS_MAX = 2 };

/* What is no option; all borrowed of argv. */
struct agx_args {
    const char *words[AGX_ARGS_WORDS_MAX];
    size_t words_len;
    bool dashes; /* `--` was there */
    char **rest; /* what follows it */
    size_t rest_len;
};

/* What a subcommand takes. */
struct agx_args_want {
    const struct agx_arg *table;
    size_t count;
    size_t min, max; /* words */
};

/* AGX_EXIT_GOING, or the exit status after the help or the mistake was printed. */
int agx_args_read(struct agx_args *a, const struct agx_cli *cli, int argc, char **argv,
                  const struct agx_arg *table, size_t count);

/* The same, and words that are not there or too many, or a command where none may be, are a
 * mistake, too. */
int agx_args_take(struct agx_args *a, const struct agx_cli *cli, int argc, char **argv,
                  const struct agx_args_want *want);

#endif
