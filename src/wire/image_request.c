/* image_request.c: the requests of agentix.v1.ImageService. */
#include "wire/image_request.h"

#include "wire/field.h"
#include "wire/pack_internal.h"
#include "wire/unpack_internal.h"

#include "agentix_v1_image.pb-c.h"

#include "base/banned.h"

/* Field numbers of ImportImageRequest. */
enum { NAME_FIELD = 1, DATA_FIELD = 2 };

int agx_image_ref_decode(struct agx_str bytes, char **ret_image, struct agx_error **err)
{
    Agentix__V1__InspectImageRequest *m; /* the others differ only in their names */
    struct agx_unpack u;
    int r;

    agx_unpack_init(&u, AGX_INVALID_ARGUMENT, err);
    r = agx_unpack_message(&u, &agentix__v1__inspect_image_request__descriptor, bytes, &m);
    if (r == 0)
        r = m->image[0] ? agx_unpack_id(&u, m->image, ret_image)
                        : agx_unpack_fault(&u, "image", "is required");
    agx_unpack_done(&u);
    return r;
}

int agx_import_request_decode(struct agx_import_request *q, struct agx_str bytes,
                              struct agx_error **err)
{
    struct agx_field field;
    int r = agx_unpack_check(&agentix__v1__import_image_request__descriptor, bytes,
                             AGX_INVALID_ARGUMENT, err);

    *q = (struct agx_import_request){ { NULL, 0 }, { NULL, 0 } };
    if (r < 0)
        return r;
    while (agx_field_next(&bytes, &field)) { /* this reaches the end: the bytes were checked */
        if (field.type == AGX_FIELD_BYTES && field.number == NAME_FIELD)
            q->name = field.bytes;
        else if (field.type == AGX_FIELD_BYTES && field.number == DATA_FIELD)
            q->data = field.bytes;
    }
    return 0;
}

int agx_import_request_encode(struct agx_buf *out, const char *name, struct agx_str data)
{
    Agentix__V1__ImportImageRequest m = AGENTIX__V1__IMPORT_IMAGE_REQUEST__INIT;

    m.name = agx_pack_text(name);
    m.data = (ProtobufCBinaryData){ data.len, (uint8_t *)data.ptr };
    return agx_pack_plain(&m.base, out);
}
