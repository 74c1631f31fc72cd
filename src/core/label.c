/* label.c: both sides are sorted, so one pass is enough. */
#include "core/label.h"

#include "base/banned.h"

bool agx_label_match(const struct agx_pairs *labels, const struct agx_pairs *selector)
{
    size_t at = 0;

    for (size_t i = 0; i < selector->len; i++) {
        int order = 1;

        while (at < labels->len &&
               (order = strcmp(labels->items[at].key, selector->items[i].key)) < 0)
            at++;
        if (at == labels->len || order != 0 ||
            strcmp(labels->items[at].value, selector->items[i].value) != 0)
            return false;
    }
    return true;
}

int agx_label_check_selector(const struct agx_pairs *selector, struct agx_error **err)
{
    if (selector->len == 0)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "label_selector must not be empty");
    return 0;
}
