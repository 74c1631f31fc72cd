/*
 * state.h: the record of one sandbox on disk: all that a later daemon needs to know.
 *
 * It is boxes/<id>/state.json. Everything else about a sandbox is in the spec, which comes with
 * each request, or can be read from the kernel.
 */
#ifndef AGX_BACKEND_NATIVE_STATE_H
#define AGX_BACKEND_NATIVE_STATE_H

#include "backend/proc.h"
#include "base/json.h"
#include "core/spec.h"
#include "core/subnet.h"
#include "core/text.h"

/* The primary, or a companion. */
struct agx_native_part_state {
    char *image;      /* its id: a resume uses the same image, whatever its name means by then */
    char *user, *cwd; /* of its commands; NULL: root, "/" */
    struct agx_native_proc init;  /* its PID 1 */
    struct agx_native_proc names; /* forwarder of its name lookups */
    char *dns;                    /* server which that asks; NULL: it asks servers itself */
    uint32_t id_base;             /* first of its 65,536 ids; 0: none yet */
    bool oom;                     /* its last run was ended by the OOM killer */
};

struct agx_native_state {
    char *sandbox_id;
    bool made;       /* its copies are in and its main process was started; else it must be created
                * again */
    int32_t network; /* enum agx_network of the spec */
    char *interface; /* of the host, while it runs; NULL: none */
    struct agx_subnet subnet;     /* of `interface` */
    struct agx_words egress;      /* its list, with the addresses of its names */
    struct agx_words sources;     /* the host files that it was created with: binds.h */
    struct agx_words hosts;       /* lines of the hosts file for those names: "name:address" */
    struct agx_native_proc ports; /* forwarder of its ports */
    struct agx_port *forwards;    /* the ports that it forwards */
    size_t n_forwards;
    struct agx_native_part_state *parts; /* the primary comes first */
    size_t n_parts;
};

/* A record with that many parts, all empty. */
int agx_native_state_init(struct agx_native_state *s, const char *sandbox_id, size_t n_parts,
                          struct agx_error **err) AGX_MUST_CHECK;
/* Accepts NULL. */
void agx_native_state_done(struct agx_native_state *s);

/* Overwrites `to`; a failure leaves nothing to free. */
int agx_native_state_copy(struct agx_native_state *to, const struct agx_native_state *from,
                          struct agx_error **err) AGX_MUST_CHECK;

/* Sets the forwarded ports, replacing all earlier ones. */
int agx_native_state_set_ports(struct agx_native_state *s, const struct agx_port *ports, size_t n,
                               struct agx_error **err) AGX_MUST_CHECK;

/* As JSON. */
int agx_native_state_print(const struct agx_native_state *s, struct agx_buf *out,
                           struct agx_error **err) AGX_MUST_CHECK;
/* -AGX_INVALID_ARGUMENT for text that is not a record of that sandbox; there is nothing to free
 * then. */
int agx_native_state_parse(struct agx_native_state *ret, const char *sandbox_id,
                           struct agx_str text, struct agx_error **err) AGX_MUST_CHECK;

#endif
