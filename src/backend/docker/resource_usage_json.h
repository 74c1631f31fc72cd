/* resource_usage_json.h: resource usage from the engine's figures for a container. Missing and
 * malformed figures are left out. */
#ifndef AGX_BACKEND_DOCKER_RESOURCE_USAGE_JSON_H
#define AGX_BACKEND_DOCKER_RESOURCE_USAGE_JSON_H

#include "base/json.h"
#include "core/resource_usage.h"

/* The answer of GET /containers/<id>/stats. Limits are not taken from it: without one, an engine
 * reports the host's memory. */
void agx_docker_usage_stats(const json_t *stats, struct agx_resource_usage *use);

/* The answer of GET /containers/<id>/json?size=true: its writable layer. */
void agx_docker_usage_size(const json_t *container, struct agx_resource_usage *use);

#endif
