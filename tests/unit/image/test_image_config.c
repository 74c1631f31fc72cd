/* An image's configuration. */
#include "image/image.h"
#include "tests/support/test.h"

#include <stdio.h>

TEST(image_config_has_an_absolute_working_directory_or_none)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        { "{'WorkingDir': 'app'}", "/app" },
        { "{'WorkingDir': 'srv/app/'}", "/srv/app/" },
        { "{'WorkingDir': './app'}", "/./app" },
        { "{'WorkingDir': '../app'}", "/../app" },
        { "{'WorkingDir': '/srv'}", "/srv" },
        { "{'WorkingDir': '/'}", "/" },
        { "{'WorkingDir': ''}", NULL },
        { "{'WorkingDir': null}", NULL },
        { "{}", NULL },
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(cases); i++) {
        struct agx_image_config c;
        char text[128];

        (void)snprintf(text, sizeof(text), "{'rootfs': {}, 'config': %s}", cases[i].text);
        for (char *at = text; *at; at++)
            *at = *at == '\'' ? '"' : *at;
        ASSERT_OK(agx_image_config_parse(&c, agx_str_from(text), NULL));
        if (cases[i].want)
            ASSERT_CSTR(cases[i].want, c.workdir);
        else
            ASSERT_NULL(c.workdir);
        agx_image_config_done(&c);
    }
}
