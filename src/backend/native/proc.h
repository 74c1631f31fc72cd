/*
 * proc.h: processes that outlive the daemon, so that it finds them again and takes no other for
 * them. A number comes back to another process; a number with its start and the kernel's boot does
 * not.
 */
#ifndef AGX_BACKEND_NATIVE_PROC_H
#define AGX_BACKEND_NATIVE_PROC_H

#include "base/buf.h"
#include "base/error.h"
#include "base/uuid.h"

#include <stdint.h>
#include <sys/types.h>

struct agx_native_proc {
    pid_t pid;                     /* 0: there is none */
    uint64_t start;                /* field 22 of /proc/<pid>/stat: ticks since the boot */
    char boot[AGX_UUID_TEXT_SIZE]; /* of the kernel that it runs on */
};

/* Of a process that we hold by a pidfd, or that is our child and not waited for: its number is its
 * own. -AGX_NOT_FOUND when it is gone. */
int agx_native_proc_note(struct agx_native_proc *ret, pid_t pid,
                         struct agx_error **err) AGX_MUST_CHECK;

/* A pidfd of it. -AGX_NOT_FOUND when it has ended, also when there is none in it. */
int agx_native_proc_open(const struct agx_native_proc *p, struct agx_error **err) AGX_MUST_CHECK;

/* One process in a file of its own, with a line of text about it. The file is replaced as a whole,
 * and on disk when this returns. */
int agx_native_proc_save(int dir_fd, const char *file, const struct agx_native_proc *p,
                         struct agx_str about, struct agx_error **err) AGX_MUST_CHECK;

/* False: there is none that could be read. `about` may be NULL. */
bool agx_native_proc_load(int dir_fd, const char *file, struct agx_native_proc *ret,
                          struct agx_buf *about);

/* Kills it and waits for its end, our child or not; takes the pidfd. Blocks, shortly. */
void agx_native_proc_end(int pidfd);

#endif
