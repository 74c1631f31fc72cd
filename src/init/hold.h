/*
 * hold.h: `agentix-init --hold FD`: a process of an ordinary user that does nothing but keep
 * namespaces alive: those that the daemon enters, and out of which all sandboxes come.
 */
#ifndef AGX_INIT_HOLD_H
#define AGX_INIT_HOLD_H

/* MADE in the user namespace; after GO, with ids mapped, READY in a mount and a network namespace
 * of its own. Then it stays, whoever ends. */
_Noreturn void agx_hold_run(int report_fd);

#endif
