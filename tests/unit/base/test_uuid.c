#include "base/uuid.h"
#include "tests/support/test.h"

TEST(uuid_is_version_4_of_the_right_variant_in_lower_case)
{
    for (int n = 0; n < 200; n++) {
        char id[AGX_UUID_TEXT_SIZE];

        ASSERT_OK(agx_uuid_new(id, NULL));
        ASSERT_UINT(36, strlen(id));
        for (int i = 0; i < 36; i++) {
            bool dash = i == 8 || i == 13 || i == 18 || i == 23;

            ASSERT_NOT_NULL(strchr(dash ? "-" : "0123456789abcdef", id[i]));
        }
        ASSERT_INT('4', id[14]);
        ASSERT_NOT_NULL(strchr("89ab", id[19]));
    }
}

TEST(uuid_of_two_calls_differ)
{
    char a[AGX_UUID_TEXT_SIZE], b[AGX_UUID_TEXT_SIZE];

    ASSERT_OK(agx_uuid_new(a, NULL));
    ASSERT_OK(agx_uuid_new(b, NULL));
    ASSERT_TRUE(strcmp(a, b) != 0);
}

TEST(random_bytes_fill_more_than_the_kernel_gives_at_once)
{
    static unsigned char bytes[1 << 20];
    size_t zeros = 0;

    ASSERT_OK(agx_random_bytes(bytes, sizeof(bytes), NULL));
    for (size_t i = sizeof(bytes) - 4096; i < sizeof(bytes); i++)
        zeros += bytes[i] == 0;
    ASSERT_TRUE(zeros < 200);
    ASSERT_OK(agx_random_bytes(NULL, 0, NULL));
}
