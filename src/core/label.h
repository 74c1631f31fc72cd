/* label.h: labels are pairs without meaning to us; a selector's pairs must all be present. */
#ifndef AGX_CORE_LABEL_H
#define AGX_CORE_LABEL_H

#include "core/pairs.h"

/* True if the labels have every pair of the selector; an empty selector matches all. */
bool agx_label_match(const struct agx_pairs *labels, const struct agx_pairs *selector);

/* For deletes, which must not match everything by mistake: -AGX_INVALID_ARGUMENT if empty. */
int agx_label_check_selector(const struct agx_pairs *selector,
                             struct agx_error **err) AGX_MUST_CHECK;

#endif
