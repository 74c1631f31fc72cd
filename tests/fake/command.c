/*
 * command.c: the commands that the fake world simulates. It runs no process.
 *
 *     true, false, exit N, echo WORDS, pwd, env NAME     at once
 *     print N, yes                                       N bytes; lines without end
 *     cat                                                copies its input until that ends
 *     sleep D                                            a duration, or seconds
 *     stubborn                                           ignores TERM
 *     forker                                             its leader ends, another process continues
 *     sh -c "A; B; C"                                    one after the other
 *
 * Any other command ends with 127 and a message, or with 126 if it is a path that ends in a slash.
 */
#include "tests/fake/world_exec.h"

#include "base/mem.h"

#include "base/banned.h"

enum {
    CHUNK = 64 << 10,
    CHUNKS_A_TURN = 16, /* of `print`: a turn takes about a millisecond */
    YES_EVERY_MS = 1,
    WAITS = -1, /* the step continues */
};

/* ---- words ---- */

static void add_step(struct world_exec *e, const struct agx_words *words)
{
    if (agx_words_copy(&e->steps[e->n_steps++], words, NULL) < 0)
        abort();
}

static void parse_list(struct world_exec *e, struct agx_str text)
{
    struct agx_str part, all = text;
    size_t n = 0;

    while (agx_str_split(&all, ';', &part))
        n++;
    e->steps = agx_alloc((n + 1) * sizeof(e->steps[0]));
    while (agx_str_split(&text, ';', &part)) {
        _cleanup_(agx_words_done) struct agx_words words = { 0 };

        for (struct agx_str word; (word = agx_fake_word(&part)).len > 0;) {
            if (agx_words_add(&words, word, NULL) < 0)
                abort();
        }
        if (words.len > 0)
            add_step(e, &words);
    }
}

void world_command_parse(struct world_exec *e, const struct agx_words *argv)
{
    if (argv->len >= 3 && strcmp(argv->items[0], "sh") == 0 && strcmp(argv->items[1], "-c") == 0) {
        parse_list(e, agx_str_from(argv->items[2]));
        return;
    }
    e->steps = agx_alloc(sizeof(e->steps[0]));
    add_step(e, argv);
}

/* ---- output ---- */

static void print(struct world_log *l, struct agx_str text)
{
    if (l->open)
        agx_caplog_append(&l->log, text);
}

static void print_cstr(struct world_log *l, const char *text)
{
    print(l, agx_str_from(text));
}

/* Lines of 64 bytes with their number, so that a test can identify a position in the output. */
static size_t fill(char *out, size_t size, uint64_t at)
{
    size_t n = 0;

    while (n < size) {
        char line[65];
        size_t skip = (size_t)((at + n) % 64), take;

        (void)snprintf(line, sizeof(line), "%063llu\n", (unsigned long long)((at + n) / 64));
        take = AGX_MIN(64 - skip, size - n);
        memcpy(out + n, line + skip, take);
        n += take;
    }
    return n;
}

/* ---- steps: an exit code, or WAITS ---- */

typedef int (*step_fn)(struct world_exec *e, const struct agx_words *words);

static const char *argument(const struct agx_words *words)
{
    return words->len > 1 ? words->items[1] : "";
}

static void step_ended(struct world_exec *e, int code)
{
    e->timer = world_timer_stop(e->timer);
    e->reads_input = e->ignores_term = false;
    e->step_code = code;
    e->step++;
    world_command_run(e);
}

static void on_slept(void *user)
{
    step_ended(user, 0);
}

static void on_print(void *user)
{
    struct world_exec *e = user;
    static char bytes[CHUNK];
    uint64_t at;

    e->timer = world_timer_stop(e->timer);
    for (int i = 0; i < CHUNKS_A_TURN && e->left > 0; i++) {
        size_t n = (size_t)AGX_MIN(e->left, sizeof(bytes));

        at = e->out.open ? e->out.log.index.total : 0;
        print(&e->out, agx_str_bytes(bytes, fill(bytes, n, at)));
        e->left -= n;
    }
    if (e->left > 0)
        e->timer = world_after(e->sandbox->world, 0, on_print, e);
    else
        step_ended(e, 0);
}

static void on_yes(void *user)
{
    struct world_exec *e = user;
    static char bytes[CHUNK];

    if (bytes[0] == '\0') {
        for (size_t i = 0; i < sizeof(bytes); i++)
            bytes[i] = i % 2 == 0 ? 'y' : '\n';
    }
    world_timer_stop(e->timer);
    print(&e->out, agx_str_bytes(bytes, sizeof(bytes)));
    e->timer = world_after(e->sandbox->world, YES_EVERY_MS, on_yes, e);
}

static int step_true(struct world_exec *e, const struct agx_words *words)
{
    (void)e;
    return strcmp(words->items[0], "false") == 0;
}

static int step_exit(struct world_exec *e, const struct agx_words *words)
{
    uint64_t code = 0;

    e->step = e->n_steps; /* of the whole list */
    return agx_parse_u64(agx_str_from(argument(words)), 255, &code) ? (int)code : 2;
}

static int step_echo(struct world_exec *e, const struct agx_words *words)
{
    for (size_t i = 1; i < words->len; i++) {
        print_cstr(&e->out, i > 1 ? " " : "");
        print_cstr(&e->out, words->items[i]);
    }
    print_cstr(&e->out, "\n");
    return 0;
}

static int step_pwd(struct world_exec *e, const struct agx_words *words)
{
    (void)words;
    print_cstr(&e->out, e->cwd && *e->cwd ? e->cwd : "/");
    print_cstr(&e->out, "\n");
    return 0;
}

static int step_env(struct world_exec *e, const struct agx_words *words)
{
    const char *value = agx_pairs_get(&e->env, argument(words));

    if (!value)
        return 1;
    print_cstr(&e->out, value);
    print_cstr(&e->out, "\n");
    return 0;
}

static int step_print(struct world_exec *e, const struct agx_words *words)
{
    if (!agx_parse_u64(agx_str_from(argument(words)), UINT64_C(1) << 40, &e->left))
        return 2;
    e->timer = world_after(e->sandbox->world, 0, on_print, e);
    return WAITS;
}

static int step_yes(struct world_exec *e, const struct agx_words *words)
{
    (void)words;
    e->timer = world_after(e->sandbox->world, 0, on_yes, e);
    return WAITS;
}

static int step_sleep(struct world_exec *e, const struct agx_words *words)
{
    uint64_t ms;

    if (!agx_fake_parse_ms(agx_str_from(argument(words)), &ms))
        return 2;
    e->timer = world_after(e->sandbox->world, ms, on_slept, e);
    return WAITS;
}

/* Copies the input that has arrived to the output; its writers may continue. */
static void take_input(struct world_exec *e)
{
    const struct world_asker writer = e->writer;

    print(&e->out, agx_buf_peek(&e->input));
    agx_buf_clear(&e->input);
    e->writer.link = NULL;
    world_answer_error(&writer, AGX_FAKE_DONE, AGX_OK, "%s", "");
}

static int step_cat(struct world_exec *e, const struct agx_words *words)
{
    (void)words;
    take_input(e);
    e->reads_input = e->input_open;
    return e->reads_input ? WAITS : 0;
}

static int step_stubborn(struct world_exec *e, const struct agx_words *words)
{
    (void)words;
    e->ignores_term = true;
    return WAITS;
}

static int step_forker(struct world_exec *e, const struct agx_words *words)
{
    (void)words;
    e->leader_ended = true;
    e->step_code = 0;
    return WAITS;
}

static int step_unknown(struct world_exec *e, const struct agx_words *words)
{
    const size_t n = strlen(words->items[0]);
    const bool directory = n > 0 && words->items[0][n - 1] == '/';

    print_cstr(&e->err, words->items[0]);
    print_cstr(&e->err, directory ? ": Permission denied\n" : ": not found\n");
    return directory ? 126 : 127;
}

static const struct {
    const char *name;
    step_fn run;
} steps[] = {
    { "true", step_true },   { "false", step_true },        { "exit", step_exit },
    { "echo", step_echo },   { "pwd", step_pwd },           { "env", step_env },
    { "print", step_print }, { "yes", step_yes },           { "sleep", step_sleep },
    { "cat", step_cat },     { "stubborn", step_stubborn }, { "forker", step_forker },
};

static int run_step(struct world_exec *e, const struct agx_words *words)
{
    for (size_t i = 0; i < AGX_ARRAY_LEN(steps); i++) {
        if (strcmp(words->items[0], steps[i].name) == 0)
            return steps[i].run(e, words);
    }
    return step_unknown(e, words);
}

void world_command_run(struct world_exec *e)
{
    while (e->step < e->n_steps) {
        int code = run_step(e, &e->steps[e->step]);

        if (code == WAITS)
            return;
        e->step_code = code;
        e->step++;
    }
    world_exec_end(e, e->step_code);
}

void world_command_input(struct world_exec *e)
{
    if (!e->reads_input)
        return;
    take_input(e);
    if (!e->input_open)
        step_ended(e, 0);
}
