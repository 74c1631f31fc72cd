/* Notes of what companions still have to do. */
#include "backend/docker/post_start_record.h"

#include "tests/support/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64];

static void open_dir(void)
{
    (void)snprintf(dir, sizeof(dir), "/tmp/agx-after-XXXXXX");
    ASSERT_NOT_NULL(mkdtemp(dir));
}

static void close_dir(void)
{
    char command[128];

    (void)snprintf(command, sizeof(command), "rm -rf %s", dir);
    ASSERT_INT(0, system(command));
}

static void make(struct agx_post_start_record *n)
{
    *n = (struct agx_post_start_record){ .has_healthcheck = true, .budget_ms = 1500, .next = 1 };
    ASSERT_OK(agx_text_set(&n->container, "c1", NULL));
    ASSERT_OK(agx_pairs_set(&n->envs, AGX_STR("WORD"), AGX_STR("a \"b\"\n"), NULL));
    ASSERT_OK(agx_words_add(&n->commands, AGX_STR("echo one"), NULL));
    ASSERT_OK(agx_words_add(&n->commands, AGX_STR(""), NULL));
    n->begun = true;
}

static void put(const char *name, const char *text)
{
    char path[160];
    FILE *f;

    (void)snprintf(path, sizeof(path), "%s/afters/web-1/%s", dir, name);
    f = fopen(path, "we");
    ASSERT_NOT_NULL(f);
    ASSERT_TRUE(fputs(text, f) >= 0);
    ASSERT_INT(0, fclose(f));
}

TEST(a_note_is_read_as_it_was_written)
{
    struct agx_post_start_record n, back = { 0 };

    open_dir();
    make(&n);
    ASSERT_OK(agx_post_start_record_write(dir, "web-1", 3, &n, NULL));
    n.next = 2;
    ASSERT_OK(
        agx_post_start_record_write(dir, "web-1", 3, &n, NULL)); /* takes the place of the first */
    ASSERT_OK(agx_post_start_record_read(dir, "web-1", 3, &back, NULL));
    ASSERT_CSTR("c1", back.container);
    ASSERT_TRUE(back.has_healthcheck && back.begun);
    ASSERT_UINT(1500, back.budget_ms);
    ASSERT_UINT(2, back.next);
    ASSERT_CSTR("a \"b\"\n", agx_pairs_get(&back.envs, "WORD"));
    ASSERT_UINT(2, back.commands.len);
    ASSERT_CSTR("echo one", back.commands.items[0]);
    agx_post_start_record_done(&n);
    agx_post_start_record_done(&back);
    close_dir();
}

TEST(a_note_that_is_not_there_or_damaged_is_an_error_and_nothing_is_kept_of_it)
{
    static const char *const texts[] = {
        "",
        "{\"container\":",
        "{\"container\":\"c1\"}",
        "[]",
        "{\"container\":\"c1\",\"healthcheck\":true,\"budget_ms\":-1,\"envs\":{},\"commands\":[],"
        "\"next\":0,\"begun\":false}",
        "{\"container\":\"c1\",\"healthcheck\":true,\"budget_ms\":1,\"envs\":{},\"commands\":[],"
        "\"next\":5000,\"begun\":false}",
    };
    struct agx_post_start_record n = { 0 };

    open_dir();
    ASSERT_INT(-AGX_NOT_FOUND, agx_post_start_record_read(dir, "web-1", 0, &n, NULL));
    make(&n);
    ASSERT_OK(agx_post_start_record_write(dir, "web-1", 0, &n, NULL));
    agx_post_start_record_done(&n);
    for (size_t i = 0; i < AGX_ARRAY_LEN(texts); i++) {
        put("0", texts[i]);
        ASSERT_TRUE(agx_post_start_record_read(dir, "web-1", 0, &n, NULL) < 0);
        ASSERT_NULL(n.container);
    }
    close_dir();
}

TEST(a_note_whose_place_is_behind_its_commands_is_over)
{
    struct agx_post_start_record n = { 0 };

    open_dir();
    make(&n);
    ASSERT_OK(agx_post_start_record_write(dir, "web-1", 0, &n, NULL));
    agx_post_start_record_done(&n);
    put("0", "{\"container\":\"c1\",\"healthcheck\":false,\"budget_ms\":1,\"envs\":{},"
             "\"commands\":[\"true\"],\"next\":9,\"begun\":false}");
    ASSERT_OK(agx_post_start_record_read(dir, "web-1", 0, &n, NULL));
    ASSERT_UINT(n.commands.len, n.next);
    agx_post_start_record_done(&n);
    close_dir();
}

static void on_note(void *user, const char *sandbox_id, size_t place)
{
    char *text = user;
    size_t len = strlen(text);

    (void)snprintf(text + len, 64 - len, "%s/%zu ", sandbox_id, place);
}

TEST(each_note_is_found_until_its_sandbox_is_purged)
{
    struct agx_post_start_record n = { 0 };
    char text[64] = "";

    open_dir();
    agx_post_start_record_each(dir, on_note, text);
    ASSERT_CSTR("", text);
    make(&n);
    ASSERT_OK(agx_post_start_record_write(dir, "web-1", 7, &n, NULL));
    ASSERT_OK(agx_post_start_record_write(dir, "old-1", 0, &n, NULL));
    ASSERT_OK(agx_post_start_record_purge(dir, "old-1", NULL));
    ASSERT_OK(agx_post_start_record_purge(dir, "none", NULL));
    put("7.new", "half a");
    agx_post_start_record_each(dir, on_note, text);
    ASSERT_CSTR("web-1/7 ", text);
    agx_post_start_record_done(&n);
    close_dir();
}
