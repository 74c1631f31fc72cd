/*
 * ident.h: ids of sandboxes and execs, as clients may choose them.
 *
 * Letters, digits, '-' and '_', a letter or digit at both ends, 4 to 200 characters: safe in file
 * names, engine object names and host names. Without a chosen id the daemon generates a UUID, which
 * is a valid id too. An accepted id is reserved for ever.
 */
#ifndef AGX_CORE_IDENT_H
#define AGX_CORE_IDENT_H

#include "base/error.h"
#include "base/str.h"

#define AGX_IDENT_MIN 4
#define AGX_IDENT_MAX 200
#define AGX_LABEL_MAX 63 /* DNS limit */

/* -AGX_INVALID_ARGUMENT with a message that begins with the field's name ("sandbox_id"). */
int agx_ident_check(const char *field, struct agx_str id, struct agx_error **err) AGX_MUST_CHECK;

/* Whether it is a DNS label: letters, digits and '-', a letter or digit at both ends. */
bool agx_ident_is_label(struct agx_str s);

#endif
