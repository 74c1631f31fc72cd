/* imagefile_internal.h: what the files of imagefile share. */
#ifndef AGX_IMAGE_IMAGEFILE_INTERNAL_H
#define AGX_IMAGE_IMAGEFILE_INTERNAL_H

#include "base/map.h"
#include "image/imagefile.h"

/* A file of the tar. */
struct member {
    uint64_t offset, size; /* of its header; of its content */
    char *link;            /* a link's target; NULL: a file */
};

struct index {
    const struct agx_imagefile_params *p;
    struct agx_map members; /* name -> struct member */
    int fd;                 /* the file that offsets refer to */
    bool is_packed;
    char digest[AGX_DIGEST_SIZE]; /* of the uncompressed tar */
    uint64_t size;                /* of the file */
};

/* The member of that name, with links followed; NULL: none. */
const struct member *index_find(const struct index *x, struct agx_str name);

/* The content of a JSON member, with a NUL at its end. The caller frees it. */
int index_text(const struct index *x, struct agx_str name, char **ret_text,
               struct agx_error **err) AGX_MUST_CHECK;

/* Adds an image to the archive; borrowed until the next call. */
int imagefile_add(struct agx_imagefile *a, struct agx_imagefile_image **ret_image,
                  struct agx_error **err) AGX_MUST_CHECK;

/* Sets the image's configuration, and makes as many empty layers as that names. */
int imagefile_set_config(struct agx_imagefile_image *i, char **take_config,
                         struct agx_error **err) AGX_MUST_CHECK;

/* Sets a layer's place. `digest` may be NULL. */
int imagefile_set_layer(const struct index *x, struct agx_imagefile_layer *l, struct agx_str name,
                        const char *digest, struct agx_error **err) AGX_MUST_CHECK;

/* Each returns 1: it is such an archive and was read; 0: it is not. */
int imagefile_read_docker(struct agx_imagefile *a, const struct index *x,
                          struct agx_error **err) AGX_MUST_CHECK;
int imagefile_read_oci(struct agx_imagefile *a, const struct index *x,
                       struct agx_error **err) AGX_MUST_CHECK;

#endif
