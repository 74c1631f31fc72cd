/*
 * fuzz_ignore.c: the input is patterns, a NUL and a path. A match ends for any patterns; a pattern
 * that is the path with every character escaped matches that path.
 */
#include "core/ignore.h"
#include "tests/support/fuzz.h"

#include <string.h>

enum { PATH_SIZE = 1000 };

static void try_globs(struct agx_str patterns, struct agx_str path)
{
    _cleanup_(agx_ignore_freep) struct agx_ignore *i = NULL;
    struct agx_words words = { 0 };
    struct agx_str part;

    while (agx_str_split(&patterns, '\n', &part))
        FUZZ_CHECK(agx_words_add(&words, part, NULL) == 0);
    FUZZ_CHECK(agx_ignore_new_globs(&words, &i, NULL) == 0);
    (void)agx_ignore_matches(i, path, true);
    agx_words_done(&words);
}

static void try_lines(struct agx_str patterns, struct agx_str path)
{
    _cleanup_(agx_ignore_freep) struct agx_ignore *i = NULL;

    FUZZ_CHECK(agx_ignore_new_lines(patterns, &i, NULL) == 0);
    (void)agx_ignore_matches(i, path, false);
    (void)agx_ignore_matches(i, path, true);
}

static void name_itself(struct agx_str path)
{
    _cleanup_(agx_ignore_freep) struct agx_ignore *glob = NULL, *lines = NULL;
    char text[2 * PATH_SIZE + 1], *items[] = { text };
    const struct agx_words words = { items, 1 };
    size_t n = 0;

    for (size_t i = 0; i < path.len; i++) {
        text[n++] = '\\';
        text[n++] = path.ptr[i];
    }
    text[n] = '\0';
    FUZZ_CHECK(agx_ignore_new_globs(&words, &glob, NULL) == 0);
    FUZZ_CHECK(agx_ignore_matches(glob, path, false));
    if (memchr(path.ptr, '\n', path.len) || strchr(" \r/", path.ptr[path.len - 1]))
        return; /* these mean something at the end of a line */
    FUZZ_CHECK(agx_ignore_new_lines(agx_str_bytes(text, n), &lines, NULL) == 0);
    FUZZ_CHECK(agx_ignore_matches(lines, path, false));
    FUZZ_CHECK(agx_ignore_matches(lines, path, true));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct agx_str patterns = agx_str_bytes(data, size), path;
    size_t nul = agx_str_find(patterns, '\0');

    if (nul == size || size > 8192)
        return 0;
    path = agx_str_skip(patterns, nul + 1);
    patterns.len = nul;
    path.len = AGX_MIN(agx_str_find(path, '\0'), (size_t)PATH_SIZE);
    try_globs(patterns, path);
    try_lines(patterns, path);
    if (path.len > 0)
        name_itself(path);
    return 0;
}
