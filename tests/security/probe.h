/*
 * probe.h: attempts to get out of a sandbox, or to see too much of what is outside.
 *
 *     probe NAME [ARGUMENT]     exit 0: it succeeded; 1: it was refused; 2: no such attempt
 *
 * Each attempt succeeds where no guard stops it: the test runs it there first (as root, in
 * temporary namespaces), and only then in a sandbox. It changes things only inside namespaces that
 * end with the test.
 */
#ifndef AGX_TESTS_SECURITY_PROBE_H
#define AGX_TESTS_SECURITY_PROBE_H

#include <stdbool.h>
#include <stddef.h>

/* True: it succeeded. What it found, or why not, is a line on standard output. */
typedef bool (*probe_fn)(const char *argument);

struct probe {
    const char *name;
    probe_fn run;
};

/* Each ends with a name of NULL. */
extern const struct probe probes_files[];
extern const struct probe probes_kernel[];
extern const struct probe probes_init[];
extern const struct probe probes_net[];
extern const struct probe probes_ipc[];
extern const struct probe probes_hogs[];
extern const struct probe probes_suid[];

/* Prints what came of it; returns `succeeded`. errno is said where it did not. */
bool probe_say(bool succeeded, const char *what);

/* True when the file can be opened and, for reading, has at least a byte. */
bool probe_reads(const char *path);
bool probe_opens_to_write(const char *path);

/* Of a call whose arguments are no good: did the kernel look at them? It would have taken better
 * ones. */
bool probe_considered(long result);

#endif
