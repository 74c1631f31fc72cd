/* spec_yaml.h: a sandbox's YAML file (`config_yaml`) as a spec, and the two joined. */
#ifndef AGX_CORE_SPEC_YAML_H
#define AGX_CORE_SPEC_YAML_H

#include "core/spec.h"

/*
 * Strict: an unknown key, a key twice, a value of the wrong kind are -AGX_INVALID_ARGUMENT, with
 * the line. Companions come out in the order of their names. Every message begins with "invalid
 * config_yaml". Nothing else is checked here: agx_spec_merge() and agx_spec_accept() follow.
 */
int agx_spec_from_yaml(struct agx_spec *ret, struct agx_str bytes,
                       struct agx_error **err) AGX_MUST_CHECK;

/*
 * All that a request to create a sandbox says about it: its YAML file (empty: none) under its
 * create_spec (NULL: none), joined. agx_spec_accept() checks the whole; that order is the one that
 * clients know. Nothing is to be freed on failure.
 */
int agx_spec_join(struct agx_spec *ret, struct agx_str yaml, const struct agx_spec *create,
                  struct agx_error **err) AGX_MUST_CHECK;

#endif
