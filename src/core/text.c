/* text.c: owned strings; without memory each function leaves its object unchanged. */
#include "core/text.h"

#include "base/banned.h"
#include "base/limits.h"

int agx_text_cut(struct agx_str s, size_t max)
{
    if (s.len <= max)
        return (int)s.len;
    while (max > 0 && ((unsigned char)s.ptr[max] & 0xc0) == 0x80)
        max--;
    return (int)max;
}

struct agx_str agx_text_printable(struct agx_str s, size_t max)
{
    s.len = (size_t)agx_text_cut(s, max);
    for (size_t i = 0; i < s.len; i++)
        if ((unsigned char)s.ptr[i] < ' ' || s.ptr[i] == 0x7f)
            s.len = i;
    return s;
}

int agx_text_set(char **slot, const char *value, struct agx_error **err)
{
    char *copy = NULL;

    if (value && *value) {
        copy = strdup(value);
        if (!copy)
            return agx_error_no_memory(err);
    }
    free(*slot);
    *slot = copy;
    return 0;
}

int agx_text_grow(void **items, size_t len, size_t size, struct agx_error **err)
{
    void *more;

    if ((len & (len - 1)) != 0)
        return 0; /* it was grown at the last power of two */
    more = realloc(*items, (len > 0 ? 2 * len : 1) * size);
    if (!more)
        return agx_error_no_memory(err);
    *items = more;
    return 0;
}

int agx_words_add(struct agx_words *w, struct agx_str word, struct agx_error **err)
{
    char *copy;
    int r;

    if (w->len >= AGX_WORDS_MAX)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "a list has more than %d entries",
                             AGX_WORDS_MAX);
    r = agx_text_grow((void **)&w->items, w->len, sizeof(*w->items), err);
    if (r < 0)
        return r;
    copy = agx_str_dup(word);
    if (!copy)
        return agx_error_no_memory(err);
    w->items[w->len++] = copy;
    return 0;
}

bool agx_words_has(const struct agx_words *w, const char *word)
{
    for (size_t i = 0; i < w->len; i++)
        if (strcmp(w->items[i], word) == 0)
            return true;
    return false;
}

bool agx_words_eq(const struct agx_words *a, const struct agx_words *b)
{
    if (a->len != b->len)
        return false;
    for (size_t i = 0; i < a->len; i++)
        if (strcmp(a->items[i], b->items[i]) != 0)
            return false;
    return true;
}

int agx_words_copy(struct agx_words *to, const struct agx_words *from, struct agx_error **err)
{
    for (size_t i = 0; i < from->len; i++) {
        int r = agx_words_add(to, agx_str_from(from->items[i]), err);

        if (r < 0) {
            agx_words_done(to);
            return r;
        }
    }
    return 0;
}

void agx_words_done(struct agx_words *w)
{
    if (!w)
        return;
    for (size_t i = 0; i < w->len; i++)
        free(w->items[i]);
    free(w->items);
    *w = (struct agx_words){ 0 };
}
