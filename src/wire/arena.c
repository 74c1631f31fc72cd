/* arena.c: blocks that double in size and are freed together. */
#include "wire/arena.h"

#include "base/macros.h"

#include "base/banned.h"

enum { ALIGN = _Alignof(max_align_t), BLOCK_MIN = 16 << 10, BLOCK_MAX = 1 << 20 };

struct agx_arena_block {
    struct agx_arena_block *next;
    size_t size;
    _Alignas(max_align_t) uint8_t bytes[];
};

void agx_arena_init(struct agx_arena *a, size_t max)
{
    /* `first` is not cleared: that would cost more than most messages. */
    a->at = a->first;
    a->left = sizeof(a->first);
    a->budget = max;
    a->exhausted = false;
    a->blocks = NULL;
}

static bool add_block(struct agx_arena *a, size_t n)
{
    size_t size = a->blocks ? AGX_MIN(2 * a->blocks->size, (size_t)BLOCK_MAX) : BLOCK_MIN;
    struct agx_arena_block *block;

    size = AGX_MIN(AGX_MAX(size, n), a->budget);
    block = size >= n ? malloc(sizeof(*block) + size) : NULL;
    if (!block) {
        a->exhausted = true;
        return false;
    }
    block->next = a->blocks;
    block->size = size;
    a->blocks = block;
    a->budget -= size;
    a->at = block->bytes;
    a->left = size;
    return true;
}

void *agx_arena_alloc(struct agx_arena *a, size_t n)
{
    size_t rounded = (n + ALIGN - 1) / ALIGN * ALIGN;
    void *p;

    if (n > SIZE_MAX / 2) {
        a->exhausted = true;
        return NULL;
    }
    if (rounded > a->left && !add_block(a, rounded))
        return NULL;
    p = a->at;
    a->at += rounded;
    a->left -= rounded;
    return p;
}

void agx_arena_done(struct agx_arena *a)
{
    while (a->blocks) {
        struct agx_arena_block *block = a->blocks;

        a->blocks = block->next;
        free(block);
    }
    agx_arena_init(a, 0);
}
