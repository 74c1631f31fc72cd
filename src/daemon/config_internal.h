/* config_internal.h: the table of keys, for the code that reads and prints configurations. */
#ifndef AGX_DAEMON_CONFIG_INTERNAL_H
#define AGX_DAEMON_CONFIG_INTERNAL_H

#include "daemon/config.h"

enum agx_config_kind {
    AGX_CONFIG_FLAG,
    AGX_CONFIG_COUNT,
    AGX_CONFIG_SIZE,   /* bytes */
    AGX_CONFIG_SPAN,   /* a time, stored in units of unit_ns */
    AGX_CONFIG_CHOICE, /* one of `words`, stored as its index */
    AGX_CONFIG_TEXT,   /* char *, owned */
    AGX_CONFIG_UIDS,
};

struct agx_config_key {
    const char *name; /* "log.level"; keys of one section are adjacent */
    enum agx_config_kind kind;
    size_t offset, width; /* of the number in struct agx_config, 1, 4 or 8 bytes */
    uint64_t min, max;
    uint64_t unit_ns;
    const char *const *words; /* ends with NULL */
    const char *preset;       /* the default of a text; NULL: empty */
    const char *means;        /* a line or two, for --print-config */
};

extern const struct agx_config_key agx_config_keys[];
extern const size_t agx_config_keys_len;

/* A key's numeric value, for any width. */
uint64_t agx_config_number(const struct agx_config *c, const struct agx_config_key *k);

#endif
