/* images_internal.h: what the files of the store share. */
#ifndef AGX_IMAGE_IMAGES_INTERNAL_H
#define AGX_IMAGE_IMAGES_INTERNAL_H

#include "base/buf.h"
#include "base/list.h"
#include "base/map.h"
#include "base/uuid.h"
#include "image/blob.h"
#include "image/ingest.h"
#include "loop/job.h"

struct layer_op;

/*
 *   (absent) --claimed--> MAKING --published--> THERE --unused--> GOING --> (absent)
 *                           +------ failed ---> (absent)
 *
 * An operation that needs a layer which is MAKING or GOING waits, and looks again after that.
 */
enum layer_state { LAYER_MAKING, LAYER_THERE, LAYER_GOING };

struct layer {
    char diff_id[AGX_DIGEST_SIZE];
    enum layer_state state;
    unsigned refs; /* images and ingests that use it */
    uint64_t size;
    struct agx_list waiters; /* of struct layer_op */
};

/*
 * A change on disk. Changes run one at a time, in the order of their requests, so that refs.json
 * always matches the memory. `begin` runs when the change's turn comes: it sets the fields below to
 * what must be done on disk. The job does that in the order of the fields; a crash in between
 * leaves files that nothing refers to.
 */
struct change {
    struct agx_job job;
    struct agx_list_node node; /* in `changes` or `held` of the store */
    struct agx_images *s;
    int (*begin)(struct change *c, struct agx_error **err);
    /* Updates the memory, or undoes what begin did there; owns `error`, and frees the change. */
    void (*end)(struct change *c, struct agx_error *error);
    struct agx_error *error; /* of begin: the job then does nothing */
    /* Files to write, by path; NULL: none. */
    char *config_path, *config_text, *manifest_path, *manifest_text;
    struct agx_buf refs;      /* refs.json; empty: unchanged */
    struct agx_words removed; /* paths of files to remove */
    struct agx_words moved;   /* names in layers/ to move to tmp/; then their names there */
};

struct agx_images {
    struct agx_loop *loop;
    struct agx_images_config config;
    char *dir;
    int dirfd, tmpfd;
    struct agx_pool *unpack_pool, *spool_pool, *index_pool; /* NULL: the store is stopping */
    struct agx_map images; /* id -> struct agx_image, a reference */
    struct agx_map names;  /* name -> the same, none */
    struct agx_map layers; /* diff id -> struct layer */
    struct agx_image *scratch;
    struct agx_list changes; /* of struct change, in the order of their turns */
    bool changing;           /* one is under way */
    unsigned holds;          /* while there are any, removals wait: */
    struct agx_list held;    /* they stand here, in their order */
    unsigned users;          /* spools, ingests, imports and removals */
    bool stopping;
    unsigned pools_left;
    agx_done_fn stopped;
    void *stopped_user;
    struct agx_error *stop_error;
};

/* Like agx_job_start(), on a pool of the store: -AGX_UNAVAILABLE when that is stopping. */
int images_job(struct agx_job *j, struct agx_pool *pool, struct agx_error **err) AGX_MUST_CHECK;

/* Runs fn(user) on the loop, never inside this call, and keeps the loop running until then. */
void images_later(struct agx_images *s, void (*fn)(void *user), void *user);

/* Releases one of `users`. */
void images_release(struct agx_images *s);

/* ---- images_load.c ---- */

/* Reads the disk into memory, and removes or moves to tmp/ whatever nothing refers to. */
int images_load(struct agx_images *s, struct agx_error **err) AGX_MUST_CHECK;

/* Makes an image from its parts, whose layers all exist; it has no names. The caller owns it. */
int images_make(struct agx_images *s, struct agx_str config, const char *digest,
                struct agx_image **ret_image, struct agx_error **err) AGX_MUST_CHECK;

/* Adds the image to the memory, which takes over the reference and holds its layers. */
int images_put(struct agx_images *s, struct agx_image *i, struct agx_error **err) AGX_MUST_CHECK;
/* Removes it; the reference is the caller's. Its layers are released. */
void images_take(struct agx_images *s, struct agx_image *i);

/* Writes refs.json from memory; with `also`, if not NULL, as if that image had `name`. */
int images_write_refs(struct agx_images *s, const struct agx_image *also, const char *name,
                      struct agx_buf *out, struct agx_error **err) AGX_MUST_CHECK;

/* Removes a name from its image. */
void images_unname(struct agx_images *s, const char *name);

/* Gives an image a name that no image has. */
int images_name(struct agx_images *s, struct agx_image *i, const char *name,
                struct agx_error **err) AGX_MUST_CHECK;

/* Like agx_images_find(). *ret_name is the full name if it was found by one, owned; else NULL. */
int images_resolve(struct agx_images *s, struct agx_str ref, struct agx_image **ret_image,
                   char **ret_name, struct agx_error **err) AGX_MUST_CHECK;

/* ---- images_remove.c ---- */

/* The waiting removals have their turn now. */
void images_start_held(struct agx_images *s);

/* ---- change.c ---- */

void change_start(struct change *c, struct agx_images *s);
/* Frees the fields that describe the change on disk. */
void change_done(struct change *c);

/* Begins the removal of every unused layer: for `begin`. Adds up their bytes. */
int change_sweep(struct change *c, uint64_t *bytes, struct agx_error **err) AGX_MUST_CHECK;
/* The layers that were GOING are gone; or THERE again if they could not be removed. For `end`. */
void change_swept(struct agx_images *s, bool gone);
/* A change that removes unused layers. */
void images_sweep(struct agx_images *s);

/* Removes these names in tmp/, in the background. Takes the words. */
void images_trash(struct agx_images *s, struct agx_words *take_names);

/* ---- layer.c ---- */

struct layer *layer_find(struct agx_images *s, const char *diff_id);
int layer_add(struct agx_images *s, const char *diff_id, enum layer_state state,
              struct layer **ret_layer, struct agx_error **err) AGX_MUST_CHECK;
/* Removes it from the store and frees it; operations that wait for it look again. */
void layer_drop(struct agx_images *s, struct layer *l);
/* Its state has changed: operations that wait for it look again. */
void layer_wake(struct layer *l);

/* ---- ingest.c, layer_op.c ---- */

struct agx_ingest {
    struct agx_images *s;
    struct layer **held; /* each with a reference */
    size_t n_held;
    struct agx_list ops; /* of struct layer_op: under way */
    unsigned n_busy;     /* operations that use the ingest: it lives until they end */
    bool freed;
};

/* Holds a layer for the ingest. */
int ingest_hold(struct agx_ingest *in, struct layer *l, struct agx_error **err) AGX_MUST_CHECK;
void ingest_begin(struct agx_ingest *in);
/* An operation has ended; the ingest may be gone afterwards. */
void ingest_end(struct agx_ingest *in);

/* Cancels everything in progress. */
void ingest_cancel(struct agx_ingest *in);
/* The canonical form of an image's name; the caller frees it. */
int images_whole_name(struct agx_str text, char **ret_name, struct agx_error **err) AGX_MUST_CHECK;

struct layer_source {
    struct agx_spool *spool; /* or NULL: `place`, whose descriptor lives until the end */
    struct agx_blob_place place;
    const char *digest;  /* of the blob, or NULL */
    const char *diff_id; /* of the tar, or NULL: unknown before it is unpacked */
};

/* Once; without an error *diff_id is the layer's. */
typedef void (*layer_done_fn)(void *user, const char *diff_id, struct agx_error *error);

/* Takes the spool on success. */
int layer_op_start(struct agx_ingest *in, const struct layer_source *source, layer_done_fn done,
                   void *user, struct agx_error **err) AGX_MUST_CHECK;
/* Of an ingest. */
void layer_ops_cancel(struct agx_list *ops);
/* Something has become of the layer that they wait for: none waits for that one any more. */
void layer_ops_wake(struct agx_list *waiters);

/* ---- spool.c ---- */

/* Calls fn(user, error) when all bytes are in the file, or could not be written; the callee owns
 * the error. */
void spool_settle(struct agx_spool *sp, agx_done_fn fn, void *user);
/* Borrowed; only after the spool has settled. */
int spool_fd(const struct agx_spool *sp);

#endif
