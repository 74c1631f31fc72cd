/* spec_wire_internal.h: CreateSpec and its parts, used in requests, handles and records. */
#ifndef AGX_WIRE_SPEC_WIRE_INTERNAL_H
#define AGX_WIRE_SPEC_WIRE_INTERNAL_H

#include "core/spec.h"
#include "wire/pack_internal.h"
#include "wire/unpack_internal.h"

#include "agbox_v1_service.pb-c.h"

/* Fills in an initialised message. */
void agx_spec_pack(struct agx_pack *p, Agbox__V1__CreateSpec *m, const struct agx_spec *s);

/* Companions as an array of pointers; with or without their environments. */
Agbox__V1__CompanionContainerSpec **
agx_companions_pack(struct agx_pack *p, const struct agx_spec *s, bool envs, size_t *ret_n);

/* `s` must be initialised; the caller frees its content, also after a failure. */
int agx_spec_unpack(struct agx_unpack *u, const Agbox__V1__CreateSpec *m,
                    struct agx_spec *s) AGX_MUST_CHECK;

/* Adds companions to a spec that has none. */
int agx_companions_unpack(struct agx_unpack *u, size_t n,
                          Agbox__V1__CompanionContainerSpec *const *items,
                          struct agx_spec *s) AGX_MUST_CHECK;

/* NULL: no healthcheck. */
Agbox__V1__HealthcheckConfig *agx_healthcheck_pack(struct agx_pack *p,
                                                   const struct agx_healthcheck *h);
/* `h` must be empty; the caller frees its content, also after a failure. */
int agx_healthcheck_unpack(struct agx_unpack *u, const Agbox__V1__HealthcheckConfig *m,
                           struct agx_healthcheck *h) AGX_MUST_CHECK;

#endif
