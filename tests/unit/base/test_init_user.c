#include "base/user.h"
#include "tests/support/test.h"

#include <stdio.h>

static const struct agx_str passwd = AGX_STR("# comment\n"
                                             "root:x:0:0:root:/root:/bin/sh\n"
                                             "short:x:1\n"
                                             "bad:x:many:1::/bad:\n"
                                             "agbox:x:1000:1000::/home/agbox:/bin/sh\n"
                                             "nohome:x:7:8:::\n"
                                             "1234:x:50:51::/named:/bin/sh");
static const struct agx_str group = AGX_STR("root:x:0:\n"
                                            "docker:x:99:someone,agbox\n"
                                            "audio:x:63:agbox\n"
                                            "video:x:44:agbox2\n"
                                            "broken\n"
                                            "agbox:x:1000:\n");

static struct agx_user find(struct agx_str spec)
{
    static struct agx_user u;

    ASSERT_NULL(agx_user_find(spec, passwd, group, &u));
    return u;
}

TEST(user_by_name_has_his_groups_and_home)
{
    struct agx_user u = find(AGX_STR("agbox"));

    ASSERT_INT(1000, u.uid);
    ASSERT_INT(1000, u.gid);
    ASSERT_STR(AGX_STR("/home/agbox"), u.home);
    ASSERT_INT(3, u.n_groups);
    ASSERT_INT(1000, u.groups[0]);
    ASSERT_INT(99, u.groups[1]);
    ASSERT_INT(63, u.groups[2]);
}

TEST(user_by_number_is_the_named_one_when_there_is_one)
{
    ASSERT_STR(AGX_STR("/home/agbox"), find(AGX_STR("1000")).home);
    ASSERT_INT(3, find(AGX_STR("1000")).n_groups);
    ASSERT_INT(4321, find(AGX_STR("4321")).uid);
    ASSERT_INT(0, find(AGX_STR("4321")).gid);
    ASSERT_STR(AGX_STR("/"), find(AGX_STR("4321")).home);
    ASSERT_INT(50, find(AGX_STR("1234")).uid);
}

TEST(group_of_the_spec_is_the_only_one)
{
    struct agx_user u = find(AGX_STR("agbox:docker"));

    ASSERT_INT(99, u.gid);
    ASSERT_INT(1, u.n_groups);
    ASSERT_INT(5, find(AGX_STR("agbox:5")).gid);
    ASSERT_INT(99, find(AGX_STR(":docker")).gid);
    ASSERT_INT(0, find(AGX_STR(":docker")).uid);
}

TEST(user_joins_further_groups_once)
{
    static struct agx_user u, many;

    u = find(AGX_STR("agbox"));
    ASSERT_TRUE(agx_user_join(&u, AGX_STR("44,99,105,44")));
    ASSERT_INT(5, u.n_groups);
    ASSERT_INT(44, u.groups[3]);
    ASSERT_INT(105, u.groups[4]);
    ASSERT_FALSE(agx_user_join(&u, AGX_STR("video")));
    ASSERT_FALSE(agx_user_join(&u, AGX_STR("1,,2")));
    ASSERT_FALSE(agx_user_join(&u, AGX_STR("")));
    many.n_groups = AGX_USER_GROUPS_MAX;
    ASSERT_FALSE(agx_user_join(&many, AGX_STR("7")));
}

TEST(numbers_are_listed_in_whole_lines_of_either_file)
{
    ASSERT_TRUE(agx_user_listed(passwd, 0));
    ASSERT_TRUE(agx_user_listed(passwd, 50)); /* the last line has no end */
    ASSERT_FALSE(agx_user_listed(passwd, 51));
    ASSERT_TRUE(agx_user_listed(group, 44));
    ASSERT_FALSE(agx_user_listed(group, 1));
    ASSERT_FALSE(agx_user_listed(AGX_STR(""), 0));
}

TEST(unknown_names_are_refused_and_so_are_numbers_that_are_none)
{
    static struct agx_user u;

    ASSERT_CSTR("no such user", agx_user_find(AGX_STR("nobody"), passwd, group, &u));
    ASSERT_CSTR("no such user", agx_user_find(AGX_STR("bad"), passwd, group, &u));
    ASSERT_CSTR("no such user", agx_user_find(AGX_STR("-1"), passwd, group, &u));
    ASSERT_CSTR("no such user", agx_user_find(AGX_STR("4294967295"), passwd, group, &u));
    ASSERT_CSTR("no such group", agx_user_find(AGX_STR("agbox:none"), passwd, group, &u));
    ASSERT_CSTR("no such user", agx_user_find(AGX_STR("agbox"), AGX_STR(""), group, &u));
}

TEST(home_that_is_empty_is_the_root)
{
    ASSERT_STR(AGX_STR("/"), find(AGX_STR("nohome")).home);
}

TEST(user_in_more_groups_than_fit_is_refused)
{
    static char many[AGX_USER_GROUPS_MAX * 32];
    static struct agx_user u;
    size_t len = 0;

    for (int i = 0; i < AGX_USER_GROUPS_MAX; i++)
        len += (size_t)snprintf(many + len, sizeof(many) - len, "g%d:x:%d:agbox\n", i, 2000 + i);
    ASSERT_CSTR("too many groups",
                agx_user_find(AGX_STR("agbox"), passwd, agx_str_bytes(many, len), &u));
}

TEST(file_that_is_none_reads_as_empty)
{
    ASSERT_INT(0, agx_user_read_file("/nonexistent").len);
    ASSERT_INT(0, agx_user_read_file("/dev/zero").len);
    ASSERT_INT(0, agx_user_read_file("/").len);
    ASSERT_TRUE(agx_user_read_file("/etc/passwd").len > 0);
}
