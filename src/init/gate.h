/*
 * gate.h: `agentix-init --gate FD PROGRAM ARGUMENT...`: a program that starts when the daemon has
 * recorded its process, and never if the daemon ends before.
 */
#ifndef AGX_INIT_GATE_H
#define AGX_INIT_GATE_H

/* Waits for GO, then becomes the program: argv[0] is its path. */
_Noreturn void agx_gate_run(int report_fd, char **argv);

#endif
