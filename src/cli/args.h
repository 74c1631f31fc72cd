/*
 * args.h: a parser for the command lines of all subcommands: a table lists the options and where
 * their values are stored.
 *
 *     const struct agx_arg table[] = {
 *         { "json", 0, AGX_ARG_FLAG, &json, NULL },
 *         { "label", 0, AGX_ARG_PAIR, &labels, NULL },
 *     };
 *
 * Accepts --name VALUE and --name=VALUE, -x VALUE and -xVALUE; options and words may come in any
 * order; a command after `--` is not parsed. All subcommands have --help and -h.
 */
#ifndef AGX_CLI_ARGS_H
#define AGX_CLI_ARGS_H

#include "base/error.h"
#include "cli/command.h"

enum agx_arg_kind {
    AGX_ARG_FLAG,     /* bool *: no value */
    AGX_ARG_TEXT,     /* const char **: borrowed from argv; the last one counts */
    AGX_ARG_WORD,     /* struct agx_words *: appended to a list */
    AGX_ARG_PAIR,     /* struct agx_pairs *: KEY=VALUE */
    AGX_ARG_DURATION, /* int64_t *: nanoseconds, 0 or more */
    AGX_ARG_NUMBER,   /* uint64_t * */
    AGX_ARG_CALL,     /* anything: passed to `call` */
};

struct agx_arg {
    const char *name;
    char letter; /* 0: none */
    enum agx_arg_kind kind;
    void *into;
    int (*call)(void *into, const char *value, struct agx_error **err);
};

enum { AGX_ARGS_WORDS_MAX = 2 };

/* Words that are not options, borrowed from argv. */
struct agx_args {
    const char *words[AGX_ARGS_WORDS_MAX];
    size_t words_len;
    bool dashes; /* there was a `--` */
    char **rest; /* the words after it */
    size_t rest_len;
};

/* What a subcommand accepts. */
struct agx_args_want {
    const struct agx_arg *table;
    size_t count;
    size_t min, max; /* words */
};

/* AGX_EXIT_GOING, or the exit status after printing the help or the mistake. */
int agx_args_read(struct agx_args *a, const struct agx_cli *cli, int argc, char **argv,
                  const struct agx_arg *table, size_t count);

/* The same, and missing or superfluous words, or a command where none is allowed, are mistakes too.
 */
int agx_args_take(struct agx_args *a, const struct agx_cli *cli, int argc, char **argv,
                  const struct agx_args_want *want);

#endif
