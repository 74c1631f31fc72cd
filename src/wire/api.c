/* api.c: the descriptors that the build embeds in the program. */
#include "wire/api.h"

#include "base/banned.h"

/* Made by tools/embed. */
extern const unsigned char agx_api_descriptors[];
extern const size_t agx_api_descriptors_len;

struct agx_str agx_api_descriptor_set(void)
{
    return agx_str_bytes(agx_api_descriptors, agx_api_descriptors_len);
}
