/*
 * file_layout.h: the file layout: the paths of the daemon's own files, and in compatibility mode
 * those where clients of agents-sandbox look. This module touches no files.
 */
#ifndef AGX_DAEMON_FILE_LAYOUT_H
#define AGX_DAEMON_FILE_LAYOUT_H

#include "base/xdg.h"

#include <stdbool.h>

/* Owned strings, all absolute. */
struct agx_file_layout {
    char *socket;
    char *lock;        /* beside the socket */
    char *run_dir;     /* of both */
    bool run_dir_ours; /* false when AGENTIX_SOCKET names the socket: keep its mode */
    char *data_dir;    /* parent of the next five */
    char *store_dir;
    char *images_dir;
    char *shifted_images_dir; /* ids shifted for an ordinary user's sandboxes: base/idmap.h */
    char *exec_log_dir;
    char *log_file;
    char *config_file; /* may be missing */
};

/* Fails as agx_xdg_path() does; `p` is empty then. */
int agx_file_layout_init(struct agx_file_layout *p, const struct agx_xdg *x,
                         struct agx_error **err) AGX_MUST_CHECK;
/* Accepts NULL. */
void agx_file_layout_done(struct agx_file_layout *p);

/* The paths of agents-sandbox. */
struct agx_file_layout_agbox {
    char *run_dir, *socket, *lock;
    char *exec_log_dir;
    char *config_file; /* its config.toml, which we do not read */
};

/* As agx_file_layout_init(), but without special paths for root. */
int agx_file_layout_agbox_init(struct agx_file_layout_agbox *p, const struct agx_xdg *x,
                               struct agx_error **err) AGX_MUST_CHECK;
/* Accepts NULL. */
void agx_file_layout_agbox_done(struct agx_file_layout_agbox *p);

#endif
