/*
 * descriptor.h: which .proto file declares what, read from serialized FileDescriptorSets that the
 * build made (protoc --descriptor_set_out). Not for bytes of a peer.
 */
#ifndef AGX_WIRE_DESCRIPTOR_H
#define AGX_WIRE_DESCRIPTOR_H

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

/* Adds the files of a set; those that are there already are skipped. `set` outlives `d`. */
int agx_descriptors_add(struct agx_descriptors *d, struct agx_str set,
                        struct agx_error **err) AGX_MUST_CHECK;

/* A serialized FileDescriptorProto, by the file's name or by something that it declares: a service,
 * method, message or enum. ptr NULL: there is none. */
struct agx_str agx_descriptors_by_name(const struct agx_descriptors *d, struct agx_str name);
struct agx_str agx_descriptors_by_symbol(const struct agx_descriptors *d, struct agx_str symbol);

void agx_descriptors_done(struct agx_descriptors *d);

#endif
