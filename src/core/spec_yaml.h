/* spec_yaml.h: parses a sandbox's YAML file (`config_yaml`), and merges it with create_spec. */
#ifndef AGX_CORE_SPEC_YAML_H
#define AGX_CORE_SPEC_YAML_H

#include "core/spec.h"

/*
 * Strict: an unknown key, a duplicate key or a value of the wrong kind is -AGX_INVALID_ARGUMENT,
 * with the line. Companions are sorted by name. Every message begins with "invalid config_yaml".
 * Nothing else is checked here: agx_spec_merge() and agx_spec_accept() follow.
 */
int agx_spec_from_yaml(struct agx_spec *ret, struct agx_str bytes,
                       struct agx_error **err) AGX_MUST_CHECK;

/*
 * The whole spec of a create request: its YAML file (empty: none) merged with its create_spec
 * (NULL: none). agx_spec_accept() checks the result; clients rely on that order. On failure there
 * is nothing to free.
 */
int agx_spec_join(struct agx_spec *ret, struct agx_str yaml, const struct agx_spec *create,
                  struct agx_error **err) AGX_MUST_CHECK;

#endif
