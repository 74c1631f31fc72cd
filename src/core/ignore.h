/*
 * ignore.h: which paths a list of patterns names: exclude patterns and the lines of a .gitignore.
 *
 * Both are dialects that existing clients know (agbox.md 6.5), each simpler than git's own:
 *
 *     globs       `*` and `?` stay within a component, `[a-z]`, `[^a-z]`, `\` takes the next
 *                 character as it is. Tried on the whole path and on its last component. A pattern
 *                 that is empty or malformed names nothing.
 *     .gitignore  a line each; `#` comments; `!` takes back (the last line that matches counts); a
 *                 leading `/` ties to the root, everything else floats; a trailing `/` names
 *                 directories alone; `*` stays within a component, `**` does not; `?` is itself.
 *                 What names a directory names everything beneath it.
 *
 * A match takes time in proportion to the lengths of pattern and path, whatever the pattern.
 */
#ifndef AGX_CORE_IGNORE_H
#define AGX_CORE_IGNORE_H

#include "core/text.h"

struct agx_ignore;

int agx_ignore_new_globs(const struct agx_words *globs, struct agx_ignore **ret_ignore,
                         struct agx_error **err) AGX_MUST_CHECK;

/* The content of the file. -AGX_RESOURCE_EXHAUSTED past AGX_WORDS_MAX lines that count. */
int agx_ignore_new_lines(struct agx_str content, struct agx_ignore **ret_ignore,
                         struct agx_error **err) AGX_MUST_CHECK;

/* `path` is relative, with no `/` at its ends. One of PATH_MAX bytes or more matches nothing. */
bool agx_ignore_matches(const struct agx_ignore *i, struct agx_str path, bool is_dir);

/* Accepts NULL; returns NULL. */
struct agx_ignore *agx_ignore_free(struct agx_ignore *i);

static inline void agx_ignore_freep(struct agx_ignore **i)
{
    *i = agx_ignore_free(*i);
}

#endif
