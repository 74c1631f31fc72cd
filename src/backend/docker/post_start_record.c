/* post_start_record.c: notes as JSON. Not synced: what the disk forgets when the machine ends, ends
 * with the containers anyway. */
#include "backend/docker/post_start_record.h"

#include "base/fd.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/path.h"
#include "core/ident.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/banned.h"

#define TOP "afters"

enum { DIR_MAX = AGX_IDENT_MAX + 16, PLACE_MAX = 32 };

void agx_post_start_record_done(struct agx_post_start_record *n)
{
    free(n->container);
    agx_pairs_done(&n->envs);
    agx_words_done(&n->commands);
    *n = (struct agx_post_start_record){ 0 };
}

/* The directory of a sandbox, made when `makes`. */
static int open_dir(const char *state_dir, const char *sandbox_id, bool makes,
                    struct agx_error **err)
{
    _cleanup_close_ int state_fd = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char dir[DIR_MAX];

    if (state_fd < 0)
        return agx_error_errno(err, errno, "open '%s'", state_dir);
    (void)snprintf(dir, sizeof(dir), TOP "/%s", sandbox_id);
    return makes ? agx_path_mkdirs(state_fd, dir, 0700, err)
                 : agx_path_open(state_fd, dir, O_RDONLY | O_DIRECTORY, 0, err);
}

/* ---- writing ---- */

static json_t *envs_json(const struct agx_pairs *envs)
{
    json_t *all = json_object();

    for (size_t i = 0; i < envs->len; i++)
        (void)json_object_set_new(all, envs->items[i].key, json_string(envs->items[i].value));
    return all;
}

static json_t *commands_json(const struct agx_words *words)
{
    json_t *all = json_array();

    for (size_t i = 0; i < words->len; i++)
        (void)json_array_append_new(all, json_string(words->items[i]));
    return all;
}

static json_t *note_json(const struct agx_post_start_record *n)
{
    return json_pack("{s:s, s:b, s:I, s:o, s:o, s:I, s:b}", "container", n->container,
                     "healthcheck", (int)n->has_healthcheck, "budget_ms", (json_int_t)n->budget_ms,
                     "envs", envs_json(&n->envs), "commands", commands_json(&n->commands), "next",
                     (json_int_t)n->next, "begun", (int)n->begun);
}

int agx_post_start_record_write(const char *state_dir, const char *sandbox_id, size_t place,
                                const struct agx_post_start_record *n, struct agx_error **err)
{
    _cleanup_close_ int dir = open_dir(state_dir, sandbox_id, true, err), fd = -1;
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(AGX_JSON_MAX);
    _cleanup_json_ json_t *note = note_json(n);
    char name[PLACE_MAX], fresh[PLACE_MAX];
    int r;

    if (dir < 0)
        return dir;
    if (!note)
        return agx_error_no_memory(err);
    (void)snprintf(name, sizeof(name), "%zu", place);
    (void)snprintf(fresh, sizeof(fresh), "%zu.new", place);
    r = agx_json_write(note, &text, err);
    if (r == 0)
        r = fd = agx_path_open(dir, fresh, O_WRONLY | O_CREAT | O_TRUNC, 0600, err);
    if (r >= 0)
        r = agx_fd_write_all(fd, agx_buf_peek(&text), err);
    if (r == 0 && renameat(dir, fresh, dir, name) < 0)
        r = agx_error_errno(err, errno, "rename '" TOP "/%s/%s'", sandbox_id, fresh);
    return r;
}

/* ---- reading ---- */

static int read_envs(json_t *from, struct agx_pairs *to, struct agx_error **err)
{
    const char *key;
    json_t *value;
    int r = 0;

    json_object_foreach(from, key, value)
    {
        if (r == 0)
            r = agx_pairs_set(to, agx_str_from(key),
                              agx_str_from(agx_text(json_string_value(value))), err);
    }
    return r;
}

static int read_commands(const json_t *from, struct agx_words *to, struct agx_error **err)
{
    const json_t *value;
    size_t i;
    int r = 0;

    json_array_foreach(from, i, value)
    {
        if (r == 0)
            r = agx_words_add(to, agx_str_from(agx_text(json_string_value(value))), err);
    }
    return r;
}

static int post_start_record_parse(const json_t *note, struct agx_post_start_record *n,
                                   struct agx_error **err)
{
    json_t *envs = NULL, *commands = NULL;
    int64_t budget = 0, next = 0;
    struct agx_str container;
    int r;

    if ((r = agx_json_get_str(note, "container", &container, err)) < 0 ||
        (r = agx_json_get_bool(note, "healthcheck", &n->has_healthcheck, err)) < 0 ||
        (r = agx_json_get_int(note, "budget_ms", 0, INT64_MAX, &budget, err)) < 0 ||
        (r = agx_json_get_object(note, "envs", &envs, err)) < 0 ||
        (r = agx_json_get_array(note, "commands", &commands, err)) < 0 ||
        (r = agx_json_get_int(note, "next", 0, AGX_PAIRS_MAX, &next, err)) < 0 ||
        (r = agx_json_get_bool(note, "begun", &n->begun, err)) < 0 ||
        (r = agx_text_set(&n->container, container.ptr, err)) < 0 ||
        (r = read_envs(envs, &n->envs, err)) < 0 ||
        (r = read_commands(commands, &n->commands, err)) < 0)
        return r;
    n->budget_ms = (uint64_t)budget;
    n->next = AGX_MIN((size_t)next, n->commands.len);
    return 0;
}

int agx_post_start_record_read(const char *state_dir, const char *sandbox_id, size_t place,
                               struct agx_post_start_record *ret, struct agx_error **err)
{
    _cleanup_close_ int dir = open_dir(state_dir, sandbox_id, false, err);
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(AGX_JSON_MAX);
    _cleanup_json_ json_t *note = NULL;
    struct agx_post_start_record n = { 0 };
    char name[PLACE_MAX];
    int r = dir;

    (void)snprintf(name, sizeof(name), "%zu", place);
    if (r >= 0)
        r = agx_fd_read_file(dir, name, &text, err);
    if (r == 0)
        r = agx_json_parse(agx_buf_peek(&text), AGX_JSON_MAX, AGX_DEPTH_MAX, &note, err);
    if (r == 0)
        r = post_start_record_parse(note, &n, err);
    if (r < 0) {
        agx_post_start_record_done(&n);
        return r;
    }
    *ret = n;
    return 0;
}

/* ---- all of them ---- */

int agx_post_start_record_purge(const char *state_dir, const char *sandbox_id,
                                struct agx_error **err)
{
    _cleanup_close_ int state_fd = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char dir[DIR_MAX];

    if (state_fd < 0)
        return agx_error_errno(err, errno, "open '%s'", state_dir);
    (void)snprintf(dir, sizeof(dir), TOP "/%s", sandbox_id);
    return agx_path_remove_tree(state_fd, dir, err);
}

/* A directory to read, or NULL. Takes `fd`, which may be none. */
static DIR *read_dir(int fd)
{
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    if (!dir)
        agx_closep(&fd);
    return dir;
}

static void each_of(int top, const char *sandbox_id, agx_post_start_record_fn found, void *user)
{
    DIR *dir = read_dir(openat(top, sandbox_id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    const struct dirent *e;

    while (dir && (e = readdir(dir))) {
        uint64_t place;

        if (agx_parse_u64(agx_str_from(e->d_name), AGX_PAIRS_MAX, &place))
            found(user, sandbox_id, (size_t)place);
    }
    if (dir)
        (void)closedir(dir);
}

void agx_post_start_record_each(const char *state_dir, agx_post_start_record_fn found, void *user)
{
    _cleanup_close_ int state_fd = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir =
        state_fd < 0 ? NULL : read_dir(openat(state_fd, TOP, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const struct dirent *e;

    while (dir && (e = readdir(dir))) {
        if (agx_ident_check("sandbox_id", agx_str_from(e->d_name), NULL) == 0)
            each_of(dirfd(dir), e->d_name, found, user);
    }
    if (dir)
        (void)closedir(dir);
}
