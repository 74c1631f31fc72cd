/* imagefile_internal.h: what the files of imagefile share. */
#ifndef AGX_IMAGE_IMAGEFILE_INTERNAL_H
#define AGX_IMAGE_IMAGEFILE_INTERNAL_H

#include "base/map.h"
#include "image/imagefile.h"

/* A file of the tar. */
struct member {
    uint64_t offset, size; /* where its header is; of its content */
    char *link;            /* of a link: the name that it stands for; NULL: a file */
};

struct index {
    const struct agx_imagefile_params *p;
    struct agx_map members; /* name -> struct member */
    int fd;                 /* where the offsets count */
    bool is_packed;
    char digest[AGX_DIGEST_SIZE]; /* of the plain tar */
    uint64_t size;                /* of the file */
};

/* The member of that name, behind links too; NULL: there is none. */
const struct member *index_find(const struct index *x, struct agx_str name);

/* The content of a member, which is JSON, with a NUL behind it. The caller frees it. */
int index_text(const struct index *x, struct agx_str name, char **ret_text,
               struct agx_error **err) AGX_MUST_CHECK;

/* Room for one more image in the archive; borrowed until the next. */
int imagefile_add(struct agx_imagefile *a, struct agx_imagefile_image **ret_image,
                  struct agx_error **err) AGX_MUST_CHECK;

/* Gives the image its configuration and as many empty layers as that names. */
int imagefile_set_config(struct agx_imagefile_image *i, char **take_config,
                         struct agx_error **err) AGX_MUST_CHECK;

/* Says where a layer is. `digest` may be NULL. */
int imagefile_set_layer(const struct index *x, struct agx_imagefile_layer *l, struct agx_str name,
                        const char *digest, struct agx_error **err) AGX_MUST_CHECK;

/* Each 1: it is such an archive and has been read; 0: it is none. */
int imagefile_read_docker(struct agx_imagefile *a, const struct index *x,
                          struct agx_error **err) AGX_MUST_CHECK;
int imagefile_read_oci(struct agx_imagefile *a, const struct index *x,
                       struct agx_error **err) AGX_MUST_CHECK;

#endif
