/*
 * fault.h: makes the n-th allocation fail. A fault test program is linked with --wrap for malloc,
 * calloc, realloc, strdup and vasprintf (see tests/fault/meson.build), so that every allocation of
 * our code calls these functions.
 *
 *     FAULT_EACH_ALLOCATION {
 *         r = agx_thing_do(...);          // runs repeatedly: the 1st, 2nd, ... allocation fails
 *         ASSERT_TRUE(r == 0 || r == -AGX_RESOURCE_EXHAUSTED);
 *         ... release everything: under ASan a leak on an error path is a finding ...
 *     }
 *
 * The loop ends after the first round in which no allocation failed; that round must have
 * succeeded.
 */
#ifndef AGX_TESTS_FAULT_H
#define AGX_TESTS_FAULT_H

#include <stdbool.h>

/* Makes the n-th allocation from now on fail, once; 0: none. */
void agx_fault_arm(unsigned n);
/* Whether the armed failure has happened. Disarms it. */
bool agx_fault_disarm(void);
/* Whether the failure has happened in the current round. */
bool agx_fault_hit(void);

#define FAULT_EACH_ALLOCATION                                                                      \
    for (unsigned fault_n_ = 1, fault_go_ = 1; fault_go_ && (agx_fault_arm(fault_n_), true);       \
         fault_go_ = agx_fault_disarm(), fault_n_++)

#endif
