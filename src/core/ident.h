/*
 * ident.h: ids of sandboxes and execs as callers may choose them.
 *
 * Letters, digits, '-' and '_', a letter or digit at both ends, 4 to 200 characters: safe in file
 * names, in names of engine objects and in host names. Whoever chooses none gets a UUID, which is
 * one too. An id is reserved for ever once it was accepted.
 */
#ifndef AGX_CORE_IDENT_H
#define AGX_CORE_IDENT_H

#include "base/error.h"
#include "base/str.h"

#define AGX_IDENT_MIN 4
#define AGX_IDENT_MAX 200

/* -AGX_INVALID_ARGUMENT with a message that begins with the field's name ("sandbox_id"). */
int agx_ident_check(const char *field, struct agx_str id, struct agx_error **err) AGX_MUST_CHECK;

#endif
