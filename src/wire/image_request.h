/*
 * image_request.h: the requests of agentix.v1.ImageService; the rules of sandbox_request.h apply
 * here too. ListImages and PruneImages have no fields.
 */
#ifndef AGX_WIRE_IMAGE_REQUEST_H
#define AGX_WIRE_IMAGE_REQUEST_H

#include "base/buf.h"

/* {Pull,Inspect,Remove}ImageRequest: *ret_image is the image's name or id, and owned.
 * -AGX_INVALID_ARGUMENT also if it is empty. agx_id_encode() writes them. */
int agx_image_ref_decode(struct agx_str bytes, char **ret_image,
                         struct agx_error **err) AGX_MUST_CHECK;

/* ImportImageRequest. Both are borrowed from the message, because the data is large. */
struct agx_import_request {
    struct agx_str name, data;
};

int agx_import_request_decode(struct agx_import_request *q, struct agx_str bytes,
                              struct agx_error **err) AGX_MUST_CHECK;
/* `name` may be NULL. */
int agx_import_request_encode(struct agx_buf *out, const char *name,
                              struct agx_str data) AGX_MUST_CHECK;

#endif
