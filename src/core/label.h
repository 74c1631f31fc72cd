/* label.h: labels are pairs that mean nothing to us; a selector is pairs that must all be there. */
#ifndef AGX_CORE_LABEL_H
#define AGX_CORE_LABEL_H

#include "core/pairs.h"

/* Every pair of the selector is among the labels; an empty selector matches all. */
bool agx_label_match(const struct agx_pairs *labels, const struct agx_pairs *selector);

/* For what must not take all by mistake (deleting): -AGX_INVALID_ARGUMENT when it is empty. */
int agx_label_check_selector(const struct agx_pairs *selector,
                             struct agx_error **err) AGX_MUST_CHECK;

#endif
