/*
 * interrupt.h: SIGINT and SIGTERM as something to read, beside what else is waited for: a command
 * that has to clean up, or to say goodbye, is not ended by them.
 */
#ifndef AGX_CLI_INTERRUPT_H
#define AGX_CLI_INTERRUPT_H

#include "base/error.h"

#include <signal.h>

/* Blocks the two signals from now on; *ret_fd becomes readable when one comes. */
int agx_interrupt_open(int *ret_fd, struct agx_error **err) AGX_MUST_CHECK;

/* The one that came; 0: none did. */
int agx_interrupt_take(int fd);

/* The two, for who unblocks them for a while. */
void agx_interrupt_set(sigset_t *ret);

#endif
