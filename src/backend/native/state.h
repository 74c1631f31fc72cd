/*
 * state.h: what is on disk of one sandbox: all that a daemon has to know that did not make it.
 *
 * The record is boxes/<id>/state.json. Everything else of a sandbox is either in the spec, which
 * comes with each request, or can be asked of the kernel.
 */
#ifndef AGX_BACKEND_NATIVE_STATE_H
#define AGX_BACKEND_NATIVE_STATE_H

#include "backend/native/proc.h"
#include "base/json.h"
#include "core/spec.h"
#include "core/subnet.h"
#include "core/text.h"

/* The primary, or a companion. */
struct agx_native_part_state {
    char *image;      /* its id: a resume takes the same one, whatever its name means by then */
    char *user, *cwd; /* whom commands run as, and where; NULL: root, "/" */
    struct agx_native_proc init;  /* its PID 1 */
    struct agx_native_proc names; /* who asks for names for it */
    char *dns;                    /* and whom; NULL: it asks itself */
    uint32_t id_base;             /* of its 65,536 ids; 0: none was given yet */
    bool oom;                     /* its last run ended for want of memory */
};

struct agx_native_state {
    char *sandbox_id;
    bool made; /* its copies are in and its main process was started; else it is to be made again */
    int32_t network;              /* enum agx_network of the spec */
    char *interface;              /* of the host, while it runs; NULL: it has none */
    struct agx_subnet subnet;     /* of `interface` */
    struct agx_words egress;      /* its list with the addresses that its names had */
    struct agx_words sources;     /* what it showed of the host when it was made: binds.h */
    struct agx_words hosts;       /* and their lines for the hosts file: "name:address" */
    struct agx_native_proc ports; /* who forwards its ports */
    struct agx_port *forwards;    /* and which these are */
    size_t n_forwards;
    struct agx_native_part_state *parts; /* the primary is the first */
    size_t n_parts;
};

/* A record with so many parts, all empty. */
int agx_native_state_init(struct agx_native_state *s, const char *sandbox_id, size_t n_parts,
                          struct agx_error **err) AGX_MUST_CHECK;
/* Accepts NULL. */
void agx_native_state_done(struct agx_native_state *s);

/* `to` is overwritten; nothing is to be freed on failure. */
int agx_native_state_copy(struct agx_native_state *to, const struct agx_native_state *from,
                          struct agx_error **err) AGX_MUST_CHECK;

/* These are the ports that are forwarded, and no others. */
int agx_native_state_set_ports(struct agx_native_state *s, const struct agx_port *ports, size_t n,
                               struct agx_error **err) AGX_MUST_CHECK;

/* As JSON. */
int agx_native_state_print(const struct agx_native_state *s, struct agx_buf *out,
                           struct agx_error **err) AGX_MUST_CHECK;
/* -AGX_INVALID_ARGUMENT for what is no record of that sandbox. Nothing is to be freed then. */
int agx_native_state_parse(struct agx_native_state *ret, const char *sandbox_id,
                           struct agx_str text, struct agx_error **err) AGX_MUST_CHECK;

#endif
