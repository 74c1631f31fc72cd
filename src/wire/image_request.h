/*
 * image_request.h: the requests of agentix.v1.ImageService; the rules of sandbox_request.h hold
 * here too. ListImages and PruneImages have nothing to say.
 */
#ifndef AGX_WIRE_IMAGE_REQUEST_H
#define AGX_WIRE_IMAGE_REQUEST_H

#include "base/buf.h"

/* {Pull,Inspect,Remove}ImageRequest: *ret_image is what the image is called by, and owned.
 * -AGX_INVALID_ARGUMENT also where it is empty. agx_id_encode() writes them. */
int agx_image_ref_decode(struct agx_str bytes, char **ret_image,
                         struct agx_error **err) AGX_MUST_CHECK;

/* ImportImageRequest. Its bytes are many: both texts are borrowed of the message. */
struct agx_import_request {
    struct agx_str name, data;
};

int agx_import_request_decode(struct agx_import_request *q, struct agx_str bytes,
                              struct agx_error **err) AGX_MUST_CHECK;
/* `name` may be NULL. */
int agx_import_request_encode(struct agx_buf *out, const char *name,
                              struct agx_str data) AGX_MUST_CHECK;

#endif
