#include "base/limits.h"
#include "core/label.h"
#include "tests/support/pairs.h"
#include "tests/support/test.h"

#include <stdio.h>

static void set(struct agx_pairs *p, const char *key, const char *value)
{
    ASSERT_OK(agx_pairs_set(p, agx_str_from(key), agx_str_from(value), NULL));
}

TEST(pairs_set_keeps_the_keys_in_order_and_once)
{
    struct agx_pairs p = { 0 };

    set(&p, "b", "2");
    set(&p, "a", "1");
    set(&p, "ab", "3");
    set(&p, "", "none");
    set(&p, "b", "4");
    ASSERT_UINT(4, p.len);
    ASSERT_CSTR("", p.items[0].key);
    ASSERT_CSTR("a", p.items[1].key);
    ASSERT_CSTR("ab", p.items[2].key);
    ASSERT_CSTR("b", p.items[3].key);
    ASSERT_CSTR("4", agx_pairs_get(&p, "b"));
    ASSERT_CSTR("none", agx_pairs_get(&p, ""));
    ASSERT_NULL(agx_pairs_get(&p, "c"));
    agx_pairs_done(&p);
    ASSERT_UINT(0, p.len);
}

TEST(pairs_set_past_the_limit_is_resource_exhausted_but_replacing_is_not)
{
    struct agx_pairs p = { 0 };
    char key[16];

    for (int i = 0; i < AGX_PAIRS_MAX; i++) {
        (void)snprintf(key, sizeof(key), "%d", i);
        set(&p, key, "v");
    }
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_pairs_set(&p, AGX_STR("more"), AGX_STR(""), NULL));
    set(&p, "7", "other");
    ASSERT_UINT(AGX_PAIRS_MAX, p.len);
    agx_pairs_done(&p);
}

TEST(pairs_merge_lets_the_later_win)
{
    struct agx_pairs p = { 0 }, over = { 0 }, want = { 0 };

    set(&p, "a", "1");
    set(&p, "b", "2");
    set(&over, "b", "3");
    set(&over, "c", "4");
    ASSERT_OK(agx_pairs_merge(&p, &over, NULL));
    set(&want, "a", "1");
    set(&want, "b", "3");
    ASSERT_FALSE(test_pairs_eq(&want, &p));
    set(&want, "c", "4");
    ASSERT_TRUE(test_pairs_eq(&want, &p));
    set(&want, "c", "5");
    ASSERT_FALSE(test_pairs_eq(&want, &p));
    agx_pairs_done(&p);
    agx_pairs_done(&over);
    agx_pairs_done(&want);
}

TEST(label_match_wants_every_pair_of_the_selector)
{
    struct agx_pairs labels = { 0 }, selector = { 0 };

    ASSERT_TRUE(agx_label_match(&labels, &selector));
    set(&selector, "team", "a");
    ASSERT_FALSE(agx_label_match(&labels, &selector));
    set(&labels, "app", "x");
    set(&labels, "team", "a");
    set(&labels, "zone", "1");
    ASSERT_TRUE(agx_label_match(&labels, &selector));
    set(&selector, "zone", "2");
    ASSERT_FALSE(agx_label_match(&labels, &selector));
    set(&selector, "zone", "1");
    ASSERT_TRUE(agx_label_match(&labels, &selector));
    set(&selector, "zz", "1");
    ASSERT_FALSE(agx_label_match(&labels, &selector));
    agx_pairs_done(&labels);
    agx_pairs_done(&selector);
}

TEST(label_selector_that_is_empty_is_refused_where_all_would_be_taken)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_pairs selector = { 0 };

    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_label_check_selector(&selector, &err));
    ASSERT_MESSAGE(err, "label_selector must not be empty");
    set(&selector, "a", "");
    ASSERT_OK(agx_label_check_selector(&selector, NULL));
    agx_pairs_done(&selector);
}

TEST(words_copy_and_compare)
{
    struct agx_words a = { 0 }, b = { 0 };

    ASSERT_OK(agx_words_add(&a, AGX_STR("one"), NULL));
    ASSERT_OK(agx_words_add(&a, AGX_STR(""), NULL));
    ASSERT_FALSE(agx_words_eq(&a, &b));
    ASSERT_OK(agx_words_copy(&b, &a, NULL));
    ASSERT_TRUE(agx_words_eq(&a, &b));
    ASSERT_TRUE(agx_words_has(&b, ""));
    ASSERT_FALSE(agx_words_has(&b, "two"));
    agx_words_done(&a);
    agx_words_done(&b);
}

TEST(text_of_nothing_is_absent)
{
    char *slot = NULL;

    ASSERT_OK(agx_text_set(&slot, "", NULL));
    ASSERT_NULL(slot);
    ASSERT_TRUE(agx_text_eq(slot, ""));
    ASSERT_OK(agx_text_set(&slot, "a", NULL));
    ASSERT_CSTR("a", agx_text(slot));
    ASSERT_OK(agx_text_set(&slot, NULL, NULL));
    ASSERT_NULL(slot);
}

TEST(text_displayed_ends_before_what_a_terminal_would_obey)
{
    ASSERT_STR(AGX_STR("abc"), agx_text_printable(AGX_STR("abc"), 10));
    ASSERT_STR(AGX_STR("ab"), agx_text_printable(AGX_STR("abc"), 2));
    ASSERT_STR(AGX_STR("a"), agx_text_printable(AGX_STR("a\x1b[2Jb"), 10));
    ASSERT_STR(AGX_STR(""), agx_text_printable(AGX_STR("\x7f"), 10));
    ASSERT_STR(AGX_STR("\xc3\xa4"), agx_text_printable(AGX_STR("\xc3\xa4"), 10));
    ASSERT_STR(AGX_STR(""), agx_text_printable((struct agx_str){ 0 }, 10));
}

TEST(text_cut_leaves_no_half_character)
{
    ASSERT_INT(3, agx_text_cut(AGX_STR("abc"), 3));
    ASSERT_INT(2, agx_text_cut(AGX_STR("abc"), 2));
    ASSERT_INT(1, agx_text_cut(AGX_STR("a\xe2\x82\xac"), 2));
    ASSERT_INT(1, agx_text_cut(AGX_STR("a\xe2\x82\xac"), 3));
    ASSERT_INT(4, agx_text_cut(AGX_STR("a\xe2\x82\xac"), 4));
    ASSERT_INT(0, agx_text_cut(AGX_STR(""), 0));
}
