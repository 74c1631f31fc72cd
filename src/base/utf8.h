/* utf8.h: validates UTF-8. */
#ifndef AGX_BASE_UTF8_H
#define AGX_BASE_UTF8_H

#include "base/str.h"

/* Well-formed UTF-8 (RFC 3629): no overlong form, no surrogate, nothing past U+10FFFF. NUL is
 * allowed. */
bool agx_utf8_valid(struct agx_str s);

/* Bytes of the first character of `s`, which is not empty; 0 when it is malformed or cut off. */
size_t agx_utf8_sequence(struct agx_str s);

#endif
