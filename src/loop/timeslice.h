/* timeslice.h: shortens the process' CPU time slice. */
#ifndef AGX_LOOP_TIMESLICE_H
#define AGX_LOOP_TIMESLICE_H

/*
 * Requests short time slices for this process and its children. A process that sleeps and wakes a
 * thousand times a second needs the CPU soon, not long: beside a process that computes, a call
 * would otherwise wait for the end of that one's slice (4 ms) at each wake-up. The share of the CPU
 * stays the same. No effect on kernels before 6.12.
 */
void agx_timeslice_shorten(void);

#endif
