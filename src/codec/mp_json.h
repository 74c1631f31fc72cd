/*
 * mp_json.h: msgpack values as JSON text and back, for people and command lines.
 *
 * What JSON has no form for is an object with one member whose name begins with '$':
 *
 *     bin, and str that is no UTF-8    {"$bytes":"<base64>"}
 *     NaN and the infinities           {"$float":"nan"}, "inf", "-inf"
 *     extension 1, an array            {"$ndarray":{"dtype":"<f8","shape":[2],"data":"<base64>"}}
 *     other extensions                 {"$ext":[<type>,"<base64>"]}
 *
 * A model (extension 2) is its fields. Keys that are no text become text, as Python's json does: 1
 * is "1", nil is "null". Back from JSON, $bytes and $float are read; other objects are maps as they
 * stand.
 */
#ifndef AGX_CODEC_MP_JSON_H
#define AGX_CODEC_MP_JSON_H

#include "codec/mp_reader.h"
#include "codec/mp_writer.h"

/* Appends the next value of `r`, without blanks. On failure `out` is as before and so is `r`. */
int agx_mp_to_json(struct agx_mp_reader *r, struct agx_buf *out,
                   struct agx_error **err) AGX_MUST_CHECK;

/*
 * Appends `json`, one value, as msgpack. Whole numbers must fit into 64 bits: -AGX_OUT_OF_RANGE. On
 * failure `out` is as before. Containers take msgpack's longest header, because their size is known
 * last.
 */
int agx_mp_from_json(struct agx_buf *out, struct agx_str json, unsigned depth_max,
                     struct agx_error **err) AGX_MUST_CHECK;

#endif
