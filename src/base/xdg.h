/*
 * xdg.h: where our programs find each other and keep their files: the XDG base directories, or the
 * system's directories for root when the variables are not set.
 *
 *     RUNTIME  $XDG_RUNTIME_DIR   root: /run       others: none
 *     DATA     $XDG_DATA_HOME     root: /var/lib   others: $HOME/.local/share
 *     CONFIG   $XDG_CONFIG_HOME   root: /etc       others: $HOME/.config
 *
 * A variable that is empty counts as not set. The environment is an argument: main() reads it.
 */
#ifndef AGX_BASE_XDG_H
#define AGX_BASE_XDG_H

#include "base/error.h"

#include <sys/types.h>

/* Values of the environment; each may be NULL. All borrowed. */
struct agx_xdg {
    const char *runtime_dir, *data_home, *config_home; /* XDG_* */
    const char *home;                                  /* HOME */
    const char *socket;                                /* AGENTIX_SOCKET */
    uid_t uid;                                         /* the program's user */
};

enum agx_xdg_base { AGX_XDG_RUNTIME, AGX_XDG_DATA, AGX_XDG_CONFIG };

/*
 * The path `below` in that directory ("agentix/agentixd.sock"); *ret_path is owned. Touches no
 * files. -AGX_FAILED_PRECONDITION if there is no such directory; the message says what to set.
 * -AGX_INVALID_ARGUMENT for one that is not absolute.
 */
int agx_xdg_path(const struct agx_xdg *x, enum agx_xdg_base base, const char *below,
                 char **ret_path, struct agx_error **err) AGX_MUST_CHECK;

/* The daemon's socket: AGENTIX_SOCKET, or agentix/agentixd.sock in RUNTIME. */
int agx_xdg_socket(const struct agx_xdg *x, char **ret_path, struct agx_error **err) AGX_MUST_CHECK;

#endif
