/*
 * text.h: owned strings and lists of strings.
 *
 * An absent string is NULL and equals the empty one: proto3 does not distinguish them.
 */
#ifndef AGX_CORE_TEXT_H
#define AGX_CORE_TEXT_H

#include "base/error.h"
#include "base/str.h"

/* The string, never NULL. */
static inline const char *agx_text(const char *s)
{
    return s ? s : "";
}

/* Both absent, or the same characters. */
static inline bool agx_text_eq(const char *a, const char *b)
{
    return strcmp(agx_text(a), agx_text(b)) == 0;
}

/* Replaces *slot with a copy; an empty or absent `value` becomes NULL. On failure *slot is
 * unchanged.
 */
int agx_text_set(char **slot, const char *value, struct agx_error **err) AGX_MUST_CHECK;

/* For "%.*s" in a message: up to `max` bytes of UTF-8, cut at a character boundary. */
int agx_text_cut(struct agx_str s, size_t max);

/* For foreign text in a message: as agx_text_cut(), and only up to the first control character,
 * because a terminal could interpret it. */
struct agx_str agx_text_printable(struct agx_str s, size_t max);

/*
 * Makes room for one more element of `size` bytes in an array of `len`, which may be NULL. An array
 * grows when its length is a power of two, so it needs no field for its capacity. Every such array
 * has a maximum in base/limits.h.
 */
int agx_text_grow(void **items, size_t len, size_t size, struct agx_error **err) AGX_MUST_CHECK;

struct agx_words {
    char **items; /* owned, as is each string; strings may be empty, never NULL */
    size_t len;
};

/* Adds a copy. -AGX_RESOURCE_EXHAUSTED past AGX_WORDS_MAX. */
int agx_words_add(struct agx_words *w, struct agx_str word, struct agx_error **err) AGX_MUST_CHECK;
bool agx_words_has(const struct agx_words *w, const char *word);
bool agx_words_eq(const struct agx_words *a, const struct agx_words *b);
/* `to` is zeroed or empty; it stays empty on failure. */
int agx_words_copy(struct agx_words *to, const struct agx_words *from,
                   struct agx_error **err) AGX_MUST_CHECK;
/* Empties it. Accepts NULL. */
void agx_words_done(struct agx_words *w);

#endif
