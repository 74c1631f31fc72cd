/*
 * hold.h: `agentix-init --hold FD`: an ordinary user's process that only keeps namespaces alive:
 * those that the daemon enters and that all sandboxes are children of.
 */
#ifndef AGX_INIT_HOLD_H
#define AGX_INIT_HOLD_H

/* Sends MADE in the user namespace; after GO, with ids mapped, READY in its own mount and network
 * namespace. Then it stays until it is killed. */
_Noreturn void agx_hold_run(int report_fd);

#endif
