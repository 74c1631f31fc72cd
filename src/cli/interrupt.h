/*
 * interrupt.h: SIGINT and SIGTERM as a readable descriptor, for poll(2): the signals do not end a
 * command that must clean up first.
 */
#ifndef AGX_CLI_INTERRUPT_H
#define AGX_CLI_INTERRUPT_H

#include "base/error.h"

#include <signal.h>

/* Blocks the two signals from now on; *ret_fd becomes readable when one comes. */
int agx_interrupt_open(int *ret_fd, struct agx_error **err) AGX_MUST_CHECK;

/* Reads a received signal; 0: none. */
int agx_interrupt_take(int fd);

/* The set of the two signals, for unblocking them for a while. */
void agx_interrupt_set(sigset_t *ret);

#endif
