/* utf8.h: is this text? */
#ifndef AGX_BASE_UTF8_H
#define AGX_BASE_UTF8_H

#include "base/str.h"

/* Well-formed UTF-8 (RFC 3629): no overlong form, no surrogate, nothing past U+10FFFF. NUL is
 * allowed. */
bool agx_utf8_valid(struct agx_str s);

#endif
