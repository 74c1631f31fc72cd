#include "base/list.h"
#include "tests/support/test.h"

#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/banned.h"

struct item {
    char name;
    struct agx_list_node before; /* of another list: `node` is not at the start */
    struct agx_list_node node;
};

static struct item items[] = { { .name = 'a' }, { .name = 'b' }, { .name = 'c' }, { .name = 'd' } };

static void fill(struct agx_list *l, size_t n)
{
    memset(l, 0, sizeof(*l));
    for (size_t i = 0; i < AGX_ARRAY_LEN(items); i++)
        items[i].node = items[i].before = (struct agx_list_node){ 0 };
    for (size_t i = 0; i < n; i++)
        agx_list_push_back(l, &items[i].node);
}

/* The names in their order; the way back gives the same. */
static const char *names(const struct agx_list *l)
{
    static char text[8];
    const struct agx_list_node *back = l->ends.prev;
    size_t n = 0;

    AGX_LIST_FOR_EACH (struct item, it, l, node)
        text[n++] = it->name;
    text[n] = '\0';
    while (n-- > 0) {
        ASSERT_INT(text[n], container_of(back, struct item, node)->name);
        back = back->prev;
    }
    ASSERT_TRUE(agx_list_is_empty(l) ? !back : back == &l->ends);
    return text;
}

static bool is_zero(const void *p, size_t len)
{
    static const char zero[sizeof(struct agx_list)];

    return memcmp(p, zero, len) == 0;
}

TEST(list_of_zeroes_is_empty_and_its_walks_end_at_once)
{
    struct agx_list l = { 0 };

    ASSERT_TRUE(agx_list_is_empty(&l));
    ASSERT_NULL(AGX_LIST_FIRST(&l, struct item, node));
    ASSERT_NULL(AGX_LIST_TAKE(&l, struct item, node));
    ASSERT_CSTR("", names(&l));
}

TEST(list_push_at_either_end_keeps_the_order)
{
    struct agx_list l;

    fill(&l, 0);
    agx_list_push_front(&l, &items[1].node);
    agx_list_push_back(&l, &items[2].node);
    agx_list_push_front(&l, &items[0].node);
    agx_list_push_back(&l, &items[3].node);
    ASSERT_CSTR("abcd", names(&l));
    ASSERT_TRUE(AGX_LIST_FIRST(&l, struct item, node) == &items[0]);
    ASSERT_TRUE(AGX_LIST_NEXT(&l, &items[0], node) == &items[1]);
    ASSERT_NULL(AGX_LIST_NEXT(&l, &items[3], node));
}

TEST(list_insert_before_puts_it_in_front_of_that_one)
{
    struct agx_list l;

    fill(&l, 2);
    agx_list_insert_before(&items[1].node, &items[2].node);
    agx_list_insert_before(&items[0].node, &items[3].node);
    ASSERT_CSTR("dacb", names(&l));
}

TEST(list_remove_takes_out_first_middle_and_last)
{
    struct agx_list l;

    fill(&l, 4);
    agx_list_remove(&items[1].node);
    ASSERT_CSTR("acd", names(&l));
    agx_list_remove(&items[0].node);
    ASSERT_CSTR("cd", names(&l));
    agx_list_remove(&items[3].node);
    ASSERT_CSTR("c", names(&l));
    agx_list_remove(&items[2].node);
    ASSERT_CSTR("", names(&l));
}

TEST(list_emptied_and_node_removed_are_all_zero)
{
    struct agx_list l;

    fill(&l, 2);
    agx_list_remove(&items[0].node);
    ASSERT_FALSE(agx_list_has(&items[0].node));
    ASSERT_TRUE(agx_list_has(&items[1].node));
    ASSERT_TRUE(is_zero(&items[0].node, sizeof(items[0].node)));
    agx_list_remove(&items[1].node);
    ASSERT_TRUE(is_zero(&l, sizeof(l)));
}

TEST(list_remove_of_a_node_in_no_list_does_nothing)
{
    struct agx_list l;

    fill(&l, 3);
    agx_list_remove(&items[3].node);
    agx_list_remove(&items[1].node);
    agx_list_remove(&items[1].node);
    ASSERT_CSTR("ac", names(&l));
    agx_list_push_back(&l, &items[1].node);
    ASSERT_CSTR("acb", names(&l));
}

TEST(list_take_empties_it_from_its_front)
{
    struct agx_list l;

    fill(&l, 3);
    for (size_t i = 0; i < 3; i++) {
        ASSERT_TRUE(AGX_LIST_TAKE(&l, struct item, node) == &items[i]);
        ASSERT_FALSE(agx_list_has(&items[i].node));
    }
    ASSERT_TRUE(agx_list_is_empty(&l));
}

TEST(list_walk_may_remove_and_overwrite_the_current_element)
{
    struct agx_list l;
    size_t n = 0;

    fill(&l, 4);
    AGX_LIST_FOR_EACH (struct item, it, &l, node) {
        if (it->name == 'c')
            continue;
        agx_list_remove(&it->node);
        memset(&it->node, 0xff, sizeof(it->node)); /* as if it were freed */
        n++;
    }
    ASSERT_UINT(3, n);
    ASSERT_CSTR("c", names(&l));
}

TEST(list_walk_that_reads_the_next_late_survives_that_the_next_goes)
{
    struct agx_list l;
    size_t n = 0;

    fill(&l, 4);
    for (struct item *it = AGX_LIST_FIRST(&l, struct item, node); it;
         it = AGX_LIST_NEXT(&l, it, node), n++) {
        if (it->name == 'b')
            agx_list_remove(&items[2].node);
    }
    ASSERT_UINT(3, n);
    ASSERT_CSTR("abd", names(&l));
}

TEST(list_move_appends_all_and_leaves_the_other_empty)
{
    struct agx_list from, to = { 0 };

    fill(&from, 2);
    agx_list_move(&to, &from);
    ASSERT_TRUE(is_zero(&from, sizeof(from)));
    ASSERT_CSTR("ab", names(&to));
    agx_list_push_back(&from, &items[2].node);
    agx_list_push_back(&from, &items[3].node);
    agx_list_move(&to, &from);
    ASSERT_CSTR("abcd", names(&to));
    agx_list_move(&to, &from);
    ASSERT_CSTR("abcd", names(&to));
    for (size_t i = 0; i < 4; i++)
        agx_list_remove(&items[i].node); /* from the list that they are in now */
    ASSERT_TRUE(agx_list_is_empty(&to));
}

TEST(list_object_with_two_nodes_is_in_two_lists)
{
    struct agx_list l, other = { 0 };

    fill(&l, 2);
    agx_list_push_front(&other, &items[0].before);
    agx_list_push_front(&other, &items[1].before);
    agx_list_remove(&items[0].node);
    ASSERT_CSTR("b", names(&l));
    ASSERT_TRUE(AGX_LIST_FIRST(&other, struct item, before) == &items[1]);
    ASSERT_TRUE(AGX_LIST_NEXT(&other, &items[1], before) == &items[0]);
}

/* Misuse. */

static void push_twice(struct agx_list *l)
{
    agx_list_push_back(l, &items[0].node);
}

static void push_into_a_second_list(struct agx_list *l)
{
    static struct agx_list other;

    (void)l;
    agx_list_push_front(&other, &items[0].node);
}

static void insert_before_one_in_no_list(struct agx_list *l)
{
    (void)l;
    agx_list_insert_before(&items[3].node, &items[2].node);
}

static void next_of_one_in_no_list(struct agx_list *l)
{
    (void)agx_list_next(l, &items[3].node);
}

static void move_to_itself(struct agx_list *l)
{
    agx_list_move(l, l);
}

TEST(list_misuse_is_caught_by_an_assertion)
{
    static void (*const misuse[])(struct agx_list *) = { push_twice, push_into_a_second_list,
                                                         insert_before_one_in_no_list,
                                                         next_of_one_in_no_list, move_to_itself };

#ifdef NDEBUG
    SKIP("built without assertions");
#endif
    for (size_t i = 0; i < AGX_ARRAY_LEN(misuse); i++) {
        const struct rlimit none = { 0 };
        struct agx_list l;
        int status;
        pid_t pid = fork();

        ASSERT_TRUE(pid >= 0);
        if (pid == 0) {
            (void)setrlimit(RLIMIT_CORE, &none);
            (void)close(STDERR_FILENO);
            fill(&l, 2);
            misuse[i](&l);
            _exit(0);
        }
        ASSERT_INT(pid, waitpid(pid, &status, 0));
        ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    }
}
