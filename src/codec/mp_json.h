/*
 * mp_json.h: msgpack values as JSON text and back, for people and command lines.
 *
 * Values that JSON cannot express become an object with one member whose name begins with '$':
 *
 *     bin, and str that is not UTF-8   {"$bytes":"<base64>"}
 *     NaN and the infinities           {"$float":"nan"}, "inf", "-inf"
 *     extension 1, an array            {"$ndarray":{"dtype":"<f8","shape":[2],"data":"<base64>"}}
 *     other extensions                 {"$ext":[<type>,"<base64>"]}
 *
 * A model (extension 2) becomes its fields. Keys that are not text become text, as Python's json
 * does: 1 is "1", nil is "null". Back from JSON, $bytes and $float are converted; all other objects
 * are plain maps.
 */
#ifndef AGX_CODEC_MP_JSON_H
#define AGX_CODEC_MP_JSON_H

#include "codec/mp_reader.h"
#include "codec/mp_writer.h"

/* Appends the next value of `r`, without blanks. On failure `out` and `r` are unchanged. */
int agx_mp_to_json(struct agx_mp_reader *r, struct agx_buf *out,
                   struct agx_error **err) AGX_MUST_CHECK;

/*
 * Appends `json`, one value, as msgpack. Integers must fit into 64 bits, else -AGX_OUT_OF_RANGE. On
 * failure `out` is unchanged. Containers have msgpack's longest header, because their size is not
 * known before their end.
 */
int agx_mp_from_json(struct agx_buf *out, struct agx_str json, unsigned depth_max,
                     struct agx_error **err) AGX_MUST_CHECK;

#endif
