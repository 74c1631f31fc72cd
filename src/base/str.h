/*
 * str.h: a borrowed string: pointer and length, not NUL-terminated. All parsing is done on it.
 */
#ifndef AGX_BASE_STR_H
#define AGX_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct agx_str {
    const char *ptr;
    size_t len;
};

/* A literal (or array) as a borrowed string, without its NUL. */
#define AGX_STR(lit) ((struct agx_str){ "" lit, sizeof(lit) - 1 })
/* For printf("%.*s"). Callers' limits keep the length far below INT_MAX. */
#define AGX_STR_ARG(s) (int)(s).len, (s).ptr

static inline struct agx_str agx_str_from(const char *z)
{
    return (struct agx_str){ z, z ? strlen(z) : 0 };
}

static inline struct agx_str agx_str_bytes(const void *p, size_t n)
{
    return (struct agx_str){ (const char *)p, n };
}

static inline bool agx_str_eq(struct agx_str a, struct agx_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static inline bool agx_str_starts(struct agx_str s, struct agx_str prefix)
{
    return s.len >= prefix.len && (prefix.len == 0 || memcmp(s.ptr, prefix.ptr, prefix.len) == 0);
}

/* `s` without its first `n` bytes (n <= s.len). */
static inline struct agx_str agx_str_skip(struct agx_str s, size_t n)
{
    /* An empty string may have no pointer, and NULL + 0 is undefined in C. */
    return (struct agx_str){ n > 0 ? s.ptr + n : s.ptr, s.len - n };
}

/* Equal, ignoring the case of ASCII letters. */
bool agx_str_eq_nocase(struct agx_str a, struct agx_str b);

/* Compares in constant time, for secrets. The length is not hidden. */
bool agx_str_eq_secret(struct agx_str a, struct agx_str b);

/* Without blanks and tabs at both ends. */
struct agx_str agx_str_trim(struct agx_str s);

/* Offset of the first `c`, or s.len. */
size_t agx_str_find(struct agx_str s, char c);

/*
 * Cuts *rest at the first `sep`: *ret_part is the part before it, *rest the part after it. False
 * when *rest is used up (its ptr is then NULL); an empty string yields one empty part.
 */
bool agx_str_split(struct agx_str *rest, char sep, struct agx_str *ret_part);

/* Owned C string, NULL when there is no memory. A NUL inside `s` ends it early: check before. */
char *agx_str_dup(struct agx_str s);

/* Decimal digits only, no sign, no blanks, at most `max`. False otherwise. */
bool agx_parse_u64(struct agx_str s, uint64_t max, uint64_t *ret);

#endif
