/*
 * nsset_server.h: `agentix-init --nssets FD [SETTING=VALUE...]`: makes user namespaces, and network
 * namespaces that belong to them, for later sandboxes. The daemon's descriptors keep them alive;
 * the process that made them stays until their ids are mapped.
 */
#ifndef AGX_INIT_NSSET_SERVER_H
#define AGX_INIT_NSSET_SERVER_H

/* Makes a namespace set for each GO, until the socket ends or one fails. `settings`: below
 * /proc/sys, of the network ("net/..."); ends with NULL. */
_Noreturn void agx_nsset_serve(int report_fd, char *const *settings);

#endif
