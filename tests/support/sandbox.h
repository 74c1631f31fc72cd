/*
 * sandbox.h: init as PID 1 of its own namespaces, in a root file system that a test made, with the
 * capabilities that Docker leaves a container.
 */
#ifndef AGX_TESTS_SANDBOX_H
#define AGX_TESTS_SANDBOX_H

#include "tests/support/init.h"

enum test_image {
    TEST_IMAGE_SCRATCH, /* init, and one static program: no shell, no files, no /etc */
    TEST_IMAGE_BUSYBOX,
    TEST_IMAGE_GLIBC,
    TEST_IMAGE_MUSL,
};

struct test_sandbox {
    char root[64];
    bool user_namespace;
    const char *cgroup_tasks; /* init writes its pid into this file; NULL: none */
};

/* Makes a root with this image: /prog is tests/integration/init_prog.c. Skips if a program is not
 * installed. */
void test_sandbox_make(struct test_sandbox *s, enum test_image image);
void test_sandbox_remove(struct test_sandbox *s);

/*
 * Moves this process to a new mount namespace with the same root; call it once. In a chroot a new
 * namespace is not enough: there / is not a mount point, so it cannot be made private, and the
 * kernel refuses a user namespace to a process that is not at the root of its mounts. Entering its
 * own namespace with setns() brings the process to the true root; a copy of the former root is then
 * mounted over it.
 */
void test_sandbox_own_mounts(void);

/* Starts init there, without the link. `args`: see agentix-init; may be NULL. */
void test_sandbox_boot(struct test_sandbox *s, struct test_init *t, const char *const *args);
void test_sandbox_boot_stdio(struct test_sandbox *s, struct test_init *t, const char *const *args,
                             int in_fd, int out_fd);

/* The path of a file of the root, from its path inside. */
void test_sandbox_write(const struct test_sandbox *s, const char *path, const char *text);

#endif
