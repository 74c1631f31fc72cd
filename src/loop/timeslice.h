/* timeslice.h: how long a turn on the CPU we ask for. */
#ifndef AGX_LOOP_TIMESLICE_H
#define AGX_LOOP_TIMESLICE_H

/*
 * Asks for short turns on the CPU, for this process and those that it starts. Who sleeps and wakes
 * a thousand times a second wants to run soon, not long: beside a process that computes, a call
 * otherwise waits for the end of that one's turn (4 ms) at each of its wake-ups. The share of the
 * CPU stays the same. Kernels before 6.12 know no such wish; nothing happens there.
 */
void agx_timeslice_shorten(void);

#endif
