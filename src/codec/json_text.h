/* json_text.h: reads and writes the escapes in JSON strings. */
#ifndef AGX_CODEC_JSON_TEXT_H
#define AGX_CODEC_JSON_TEXT_H

#include "base/buf.h"

/*
 * Reads the escape that `s` begins with (s.ptr[0] is the backslash). Returns its length in bytes
 * and the character that it stands for, or 0 when it is malformed. A surrogate pair is one escape
 * of 12 bytes; half of a pair is malformed, because no UTF-8 can stand for it.
 */
size_t agx_json_text_escape(struct agx_str s, uint32_t *ret_char);

/* Appends the UTF-8 text that `inner` (a JSON string without its quotes) stands for. */
int agx_json_text_unquote(struct agx_buf *out, struct agx_str inner,
                          struct agx_error **err) AGX_MUST_CHECK;

/* Appends `text` (UTF-8) as a JSON string in its quotes. */
int agx_json_text_quote(struct agx_buf *out, struct agx_str text) AGX_MUST_CHECK;

#endif
