#include "core/ignore.h"
#include "tests/support/test.h"

static bool glob(const char *pattern, const char *path)
{
    _cleanup_(agx_ignore_freep) struct agx_ignore *i = NULL;
    char *items[] = { (char *)pattern };
    const struct agx_words words = { items, 1 };

    ASSERT_OK(agx_ignore_new_globs(&words, &i, NULL));
    return agx_ignore_matches(i, agx_str_from(path), false);
}

/* A path that ends in '/' is a directory. */
static bool line(const char *content, const char *path)
{
    _cleanup_(agx_ignore_freep) struct agx_ignore *i = NULL;
    struct agx_str s = agx_str_from(path);
    bool is_dir = s.len > 0 && s.ptr[s.len - 1] == '/';

    s.len -= is_dir;
    ASSERT_OK(agx_ignore_new_lines(agx_str_from(content), &i, NULL));
    return agx_ignore_matches(i, s, is_dir);
}

TEST(glob_matches_the_whole_path_or_its_last_component)
{
    ASSERT_TRUE(glob("*.pyc", "a.pyc"));
    ASSERT_TRUE(glob("*.pyc", "deep/down/a.pyc"));
    ASSERT_TRUE(glob("node_modules", "web/node_modules"));
    ASSERT_TRUE(glob("web/*/x", "web/y/x"));
    ASSERT_TRUE(glob("*", "a"));
    ASSERT_TRUE(glob("*", ".hidden"));
    ASSERT_FALSE(glob("node_modules", "node_modules/a"));
    ASSERT_FALSE(glob("web/*", "web/y/x"));
    ASSERT_FALSE(glob("*.pyc", "a.py"));
    ASSERT_FALSE(glob("**/x", "a/b/x/y"));
    ASSERT_FALSE(glob("a**b", "ab/c"));
    ASSERT_FALSE(glob("build/", "build"));
}

TEST(glob_query_mark_and_classes_take_one_character_of_text)
{
    ASSERT_TRUE(glob("?", "a"));
    ASSERT_TRUE(glob("?", "ü"));
    ASSERT_TRUE(glob("[à-ÿ]x", "üx"));
    ASSERT_TRUE(glob("?", "\xff"));
    ASSERT_TRUE(glob("[a-c]1", "b1"));
    ASSERT_TRUE(glob("[^a-c]1", "d1"));
    ASSERT_TRUE(glob("[\\]x]", "]"));
    ASSERT_TRUE(glob("[!a]", "!"));
    ASSERT_TRUE(glob("a\\*b", "a*b"));
    ASSERT_FALSE(glob("a\\*b", "aab"));
    ASSERT_FALSE(glob("??", "ü"));
    ASSERT_FALSE(glob("[^a-c]1", "b1"));
    ASSERT_FALSE(glob("a?b", "a/b"));
    ASSERT_FALSE(glob("a[^x]b", "a/b"));
}

TEST(glob_that_is_malformed_or_empty_names_nothing)
{
    ASSERT_FALSE(glob("", "a"));
    ASSERT_FALSE(glob("[", "["));
    ASSERT_FALSE(glob("[]", "[]"));
    ASSERT_FALSE(glob("[]a]", "]"));
    ASSERT_FALSE(glob("[a-]", "a"));
    ASSERT_FALSE(glob("[-a]", "a"));
    ASSERT_FALSE(glob("[^]", "a"));
    ASSERT_FALSE(glob("[a", "a"));
    ASSERT_FALSE(glob("a\\", "a"));
    ASSERT_FALSE(glob("*[", "a"));
    ASSERT_FALSE(glob("!a", "b"));
    ASSERT_FALSE(glob("a", ""));
}

TEST(gitignore_line_floats_unless_it_begins_with_a_slash)
{
    ASSERT_TRUE(line("venv", "venv"));
    ASSERT_TRUE(line("venv", "a/b/venv"));
    ASSERT_TRUE(line("venv", "a/venv/bin/python"));
    ASSERT_TRUE(line("a/b", "x/a/b"));
    ASSERT_TRUE(line("/venv", "venv"));
    ASSERT_TRUE(line("/venv", "venv/bin/python"));
    ASSERT_FALSE(line("/venv", "a/venv"));
    ASSERT_FALSE(line("venv", "venv2"));
    ASSERT_FALSE(line("venv", "my-venv"));
    ASSERT_FALSE(line("/", "a"));
}

TEST(gitignore_line_with_a_slash_at_its_end_names_directories)
{
    ASSERT_TRUE(line("venv/", "venv/"));
    ASSERT_TRUE(line("venv/", "a/venv/"));
    ASSERT_TRUE(line("venv/", "venv/bin/python"));
    ASSERT_TRUE(line("venv", "venv/"));
    ASSERT_FALSE(line("venv/", "venv"));
}

TEST(gitignore_stars_stay_in_a_component_and_double_stars_do_not)
{
    ASSERT_TRUE(line("*.so", "a/b.so"));
    ASSERT_TRUE(line("/a/*/c", "a/b/c"));
    ASSERT_FALSE(line("/a/*/c", "a/b/x/c"));
    ASSERT_FALSE(line("/*.so", "a/b.so"));
    ASSERT_TRUE(line("**/c", "c"));
    ASSERT_TRUE(line("**/c", "a/b/c"));
    ASSERT_TRUE(line("/**/c", "a/b/c"));
    ASSERT_TRUE(line("/a/**/c", "a/c"));
    ASSERT_TRUE(line("/a/**/c", "a/b/x/c"));
    ASSERT_FALSE(line("/a/**/c", "b/a/c"));
    ASSERT_FALSE(line("/a/**/c", "ac"));
    ASSERT_TRUE(line("/a/**", "a/b/c"));
    ASSERT_FALSE(line("/a/**", "b/a"));
    ASSERT_TRUE(line("*.py[cod]", "x/y.pyc"));
    ASSERT_FALSE(line("*.py[cod]", "x/y.py"));
}

TEST(gitignore_query_mark_is_itself)
{
    ASSERT_TRUE(line("a?", "a?"));
    ASSERT_FALSE(line("a?", "ab"));
}

TEST(gitignore_last_line_that_matches_counts)
{
    ASSERT_FALSE(line("*.so\n!keep.so\n", "keep.so"));
    ASSERT_TRUE(line("*.so\n!keep.so\n", "a.so"));
    ASSERT_TRUE(line("*.so\n!keep.so\nkeep.so", "keep.so"));
    ASSERT_TRUE(line("!a\na", "a"));
}

TEST(gitignore_comments_blanks_and_malformed_lines_are_passed_over)
{
    ASSERT_FALSE(line("#a\n\n   \n!\n", "a"));
    ASSERT_FALSE(line("#a", "#a"));
    ASSERT_TRUE(line("\\#a", "#a"));
    ASSERT_TRUE(line("\\!a", "!a"));
    ASSERT_TRUE(line("a  \r\n", "a"));
    ASSERT_TRUE(line("  a", "a"));
    ASSERT_TRUE(line("[\nb\\\na", "a"));
    ASSERT_FALSE(line("", "a"));
}

TEST(pattern_of_many_stars_is_decided_at_once)
{
    char pattern[2001], path[2001], deep[2001];

    for (size_t i = 0; i < 2000; i += 2) {
        memcpy(pattern + i, "*a", 2);
        memcpy(path + i, "aa", 2);
        memcpy(deep + i, "a/", 2);
    }
    pattern[2000] = path[2000] = '\0';
    path[1999] = 'b';
    deep[1999] = '\0';
    ASSERT_FALSE(glob(pattern, path));
    memcpy(pattern, "**/a/**/a/**/a/**/a/**/a/**/a/**/b", 35);
    ASSERT_FALSE(line(pattern, deep));
}

TEST(path_that_is_too_long_matches_nothing)
{
    char path[5000];

    memset(path, 'a', sizeof(path));
    path[sizeof(path) - 1] = '\0';
    ASSERT_FALSE(glob("*", path));
    ASSERT_FALSE(line("*", path));
    path[4095] = '\0';
    ASSERT_TRUE(glob("*", path));
    ASSERT_TRUE(line("*", path));
}
