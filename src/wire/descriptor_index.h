/*
 * descriptor_index.h: which .proto file declares a name, read from serialized FileDescriptorSets
 * made by the build (protoc --descriptor_set_out). Not for a peer's bytes.
 */
#ifndef AGX_WIRE_DESCRIPTOR_INDEX_H
#define AGX_WIRE_DESCRIPTOR_INDEX_H

#include "base/error.h"
#include "base/map.h"

struct agx_descriptors {
    struct agx_map files;   /* name of a file -> struct agx_descriptor_file, owned */
    struct agx_map symbols; /* full name -> the file that declares it */
    const char **services;  /* full names, in the order of their files; owned */
    size_t service_count;
    struct agx_descriptor_file *all;
};

void agx_descriptors_init(struct agx_descriptors *d);

/* Adds the files of a set, skipping known ones. `set` must outlive `d`. */
int agx_descriptors_add(struct agx_descriptors *d, struct agx_str set,
                        struct agx_error **err) AGX_MUST_CHECK;

/* A serialized FileDescriptorProto, by the file's name or by the name of a service, method, message
 * or enum in it. ptr NULL: none. */
struct agx_str agx_descriptors_by_name(const struct agx_descriptors *d, struct agx_str name);
struct agx_str agx_descriptors_by_symbol(const struct agx_descriptors *d, struct agx_str symbol);

void agx_descriptors_done(struct agx_descriptors *d);

#endif
