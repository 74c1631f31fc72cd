/* initproto.h: builds packets of agentix-init in a buffer of the test. */
#ifndef AGX_TESTS_INITPROTO_H
#define AGX_TESTS_INITPROTO_H

#include "base/macros.h"
#include "codec/initproto.h"
#include "tests/support/test.h"

struct test_words {
    uint8_t bytes[4096];
    struct agx_init_list list;
};

/* Encodes a NULL-terminated list of C strings as in a packet. */
static inline struct agx_init_list test_words(struct test_words *w, const char *const *words)
{
    size_t at = 0;

    w->list = (struct agx_init_list){ 0 };
    for (; words && *words; words++) {
        at += agx_init_word_put(w->bytes + at, sizeof(w->bytes) - at, agx_str_from(*words));
        ASSERT_TRUE(at <= sizeof(w->bytes));
        w->list.count++;
    }
    w->list.bytes = agx_str_bytes(w->bytes, at);
    return w->list;
}

#define TEST_WORDS(w, ...) test_words((w), (const char *const[]){ __VA_ARGS__, NULL })

#endif
