/*
 * credit.h: the flow control of one direction of a call (docs/design/runtime-protocol.md, 2.1). The
 * sender of items counts what it has `used` of what its peer has `granted`; the receiver counts
 * what its user has `taken` and grants more. All are totals since the call began, so a message that
 * is lost or comes twice does no harm.
 */
#ifndef AGX_CODEC_CREDIT_H
#define AGX_CODEC_CREDIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The credit that each direction of a call begins with. An unread stream stays below 64 KiB with
 * it, including what the server adds to each item. */
#define AGX_CREDIT_ITEMS 64
#define AGX_CREDIT_BYTES 49152
/* The items that a client allows from its first grant on. A call whose items are read deserves
 * fewer wake-ups than one for each 32 items. */
#define AGX_CREDIT_ITEMS_GROWN 256

struct agx_credit {
    uint64_t n, bytes; /* an item counts with the length of its raw msgpack */
};

/* The credit that is implied when a call begins; no message grants it. */
#define AGX_CREDIT_INIT                                                                            \
    {                                                                                              \
        AGX_CREDIT_ITEMS, AGX_CREDIT_BYTES                                                         \
    }

static inline void agx_credit_count(struct agx_credit *used, size_t bytes)
{
    used->n++;
    used->bytes += bytes;
}

/* May one more item be sent? Its length does not matter: one larger than the window goes too. */
static inline bool agx_credit_left(const struct agx_credit *granted, const struct agx_credit *used)
{
    return used->n < granted->n && used->bytes < granted->bytes;
}

/* A credit has come. Totals only grow: false means that it is an older one, without news. */
static inline bool agx_credit_raise(struct agx_credit *granted, uint64_t n, uint64_t bytes)
{
    bool more = n > granted->n || bytes > granted->bytes;

    granted->n = n > granted->n ? n : granted->n;
    granted->bytes = bytes > granted->bytes ? bytes : granted->bytes;
    return more;
}

/* Is half of the window used up? `items` is the window from the first grant on. */
static inline bool agx_credit_due(const struct agx_credit *granted, const struct agx_credit *taken,
                                  uint64_t items)
{
    uint64_t window = granted->n == AGX_CREDIT_ITEMS ? AGX_CREDIT_ITEMS : items;

    return granted->n <= taken->n + window / 2 ||
           granted->bytes <= taken->bytes + AGX_CREDIT_BYTES / 2;
}

/* Opens the whole window again. */
static inline void agx_credit_grant(struct agx_credit *granted, const struct agx_credit *taken,
                                    uint64_t items)
{
    granted->n = taken->n + items;
    granted->bytes = taken->bytes + AGX_CREDIT_BYTES;
}

#endif
