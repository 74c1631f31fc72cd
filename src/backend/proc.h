/*
 * proc.h: identifies processes that outlive the daemon, so that it finds them again and never
 * mistakes another for one. A pid is reused; a pid with its start time and the kernel's boot id is
 * not.
 */
#ifndef AGX_BACKEND_PROC_H
#define AGX_BACKEND_PROC_H

#include "base/buf.h"
#include "base/error.h"
#include "base/uuid.h"

#include <stdint.h>
#include <sys/types.h>

struct agx_native_proc {
    pid_t pid;                     /* 0: none */
    uint64_t start;                /* field 22 of /proc/<pid>/stat: ticks since the boot */
    char boot[AGX_UUID_TEXT_SIZE]; /* boot id of the kernel it runs on */
};

/* For a process that we hold by a pidfd, or a child that was not reaped: its pid cannot be reused.
 * -AGX_NOT_FOUND when it is gone. */
int agx_native_proc_note(struct agx_native_proc *ret, pid_t pid,
                         struct agx_error **err) AGX_MUST_CHECK;

/* Opens a pidfd of it. -AGX_NOT_FOUND when it has ended, or when `p` is empty. */
int agx_native_proc_open(const struct agx_native_proc *p, struct agx_error **err) AGX_MUST_CHECK;

/* Saves one process to a file of its own, with a line of text about it. The file is replaced as a
 * whole, and is on disk on return. */
int agx_native_proc_save(int dir_fd, const char *file, const struct agx_native_proc *p,
                         struct agx_str about, struct agx_error **err) AGX_MUST_CHECK;

/* False: the file is missing or unreadable. `about` may be NULL. */
bool agx_native_proc_load(int dir_fd, const char *file, struct agx_native_proc *ret,
                          struct agx_buf *about);

/* Kills it and waits for its end, whether it is our child or not; takes the pidfd. Blocks
 * briefly. */
void agx_native_proc_end(int pidfd);

#endif
