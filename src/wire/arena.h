/* arena.h: memory for one message, freed as a whole. */
#ifndef AGX_WIRE_ARENA_H
#define AGX_WIRE_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Enough for ordinary messages; may be on the stack. */
#define AGX_ARENA_FIRST 4096

struct agx_arena_block;

struct agx_arena {
    uint8_t *at; /* free bytes of the newest block */
    size_t left;
    size_t budget;  /* for further blocks */
    bool exhausted; /* an allocation was refused */
    struct agx_arena_block *blocks;
    _Alignas(max_align_t) uint8_t first[AGX_ARENA_FIRST];
};

/* It allocates at most `max` bytes in addition to the first block. */
void agx_arena_init(struct agx_arena *a, size_t max);
/* Aligned for anything, not zeroed; NULL when the budget or the memory is used up. */
void *agx_arena_alloc(struct agx_arena *a, size_t n);
void agx_arena_done(struct agx_arena *a);

#endif
