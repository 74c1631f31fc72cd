/*
 * nest.h: `agentix-init --nests FD [SETTING=VALUE...]`: user namespaces and network namespaces that
 * belong to them, made for sandboxes that do not exist yet. They live by the daemon's descriptors;
 * the process that made them is there until their ids are mapped.
 */
#ifndef AGX_INIT_NEST_H
#define AGX_INIT_NEST_H

/* A nest for each GO, until the socket ends or one could not be made. `settings`: below /proc/sys,
 * of the network ("net/..."); ends with NULL. */
_Noreturn void agx_nests_run(int report_fd, char *const *settings);

#endif
