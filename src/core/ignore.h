/*
 * ignore.h: matches paths against a list of patterns: exclude patterns or a .gitignore.
 *
 * Both are dialects that existing clients know (agbox.md 6.5), each simpler than git's own:
 *
 *     globs       `*` and `?` stay within a component, `[a-z]`, `[^a-z]`, `\` escapes the next
 *                 character. Matched against the whole path and its last component. An empty or
 *                 malformed pattern matches nothing.
 *     .gitignore  one pattern per line; `#` comments; `!` negates (the last match counts); a
 *                 leading `/` anchors to the root, others match anywhere; a trailing `/` matches
 *                 only directories; `*` stays within a component, `**` does not; `?` is literal.
 *                 A pattern that matches a directory matches everything beneath it.
 *
 * Matching takes time proportional to the lengths of pattern and path, whatever the pattern.
 */
#ifndef AGX_CORE_IGNORE_H
#define AGX_CORE_IGNORE_H

#include "core/text.h"

struct agx_ignore;

int agx_ignore_new_globs(const struct agx_words *globs, struct agx_ignore **ret_ignore,
                         struct agx_error **err) AGX_MUST_CHECK;

/* Parses the file's content. -AGX_RESOURCE_EXHAUSTED past AGX_WORDS_MAX patterns. */
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
