/* image.h: what the files of ImageService share. */
#ifndef AGX_DAEMON_SERVICE_IMAGE_H
#define AGX_DAEMON_SERVICE_IMAGE_H

#include "base/log.h"
#include "daemon/service/service_internal.h"
#include "image/images.h"
#include "wire/image_wire.h"

/* Appends an image to an answer. */
int agx_service_put_image(struct agx_buf *out, const struct agx_image *i) AGX_MUST_CHECK;

/* Handlers that have a file of their own. */
void agx_service_pull_image(void *service, struct agx_grpc_call *call, struct agx_str request);
void agx_service_import_image(void *service, struct agx_grpc_call *call, struct agx_str request);

#endif
