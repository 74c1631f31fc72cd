/* image.c: references to images, and pins. */
#include "image/image.h"

#include "base/macros.h"

#include <assert.h>

#include "base/banned.h"

struct agx_image *agx_image_ref(struct agx_image *i)
{
    i->refs++;
    return i;
}

struct agx_image *agx_image_unref(struct agx_image *i)
{
    if (!i || --i->refs > 0)
        return NULL;
    assert(i->pins == 0);
    free(i->id);
    free(i->digest);
    free(i->config_text);
    agx_words_done(&i->names);
    agx_words_done(&i->layers);
    agx_image_config_done(&i->config);
    free(i);
    return NULL;
}

struct agx_image *agx_image_pin(struct agx_image *i)
{
    i->pins++;
    return agx_image_ref(i);
}

struct agx_image *agx_image_unpin(struct agx_image *i)
{
    if (!i)
        return NULL;
    i->pins--;
    return agx_image_unref(i);
}
