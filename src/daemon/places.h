/*
 * places.h: the daemon's files: its own, and in compatibility mode those where programs of
 * agents-sandbox look. Nothing is made or looked at here.
 */
#ifndef AGX_DAEMON_PLACES_H
#define AGX_DAEMON_PLACES_H

#include "base/xdg.h"

#include <stdbool.h>

/* Owned strings, all absolute. */
struct agx_places {
    char *socket;
    char *lock;        /* beside the socket */
    char *run_dir;     /* of both */
    bool run_dir_ours; /* not so when AGENTIX_SOCKET names the socket: its mode is left alone */
    char *data_dir;    /* of the five that follow */
    char *store_dir;
    char *images_dir;
    char *shifted_images_dir; /* with the ids of an ordinary user's sandboxes: base/idmap.h */
    char *exec_log_dir;
    char *log_file;
    char *config_file; /* may be missing */
};

/* Fails as agx_xdg_path() does; `p` holds nothing then. */
int agx_places_init(struct agx_places *p, const struct agx_xdg *x,
                    struct agx_error **err) AGX_MUST_CHECK;
/* Accepts NULL. */
void agx_places_done(struct agx_places *p);

/* Where agents-sandbox has its own. */
struct agx_places_agbox {
    char *run_dir, *socket, *lock;
    char *exec_log_dir;
    char *config_file; /* its config.toml, which we do not read */
};

/* As agx_places_init(); root is a user like any other there. */
int agx_places_agbox_init(struct agx_places_agbox *p, const struct agx_xdg *x,
                          struct agx_error **err) AGX_MUST_CHECK;
/* Accepts NULL. */
void agx_places_agbox_done(struct agx_places_agbox *p);

#endif
