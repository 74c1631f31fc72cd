/*
 * sandbox.h: init as PID 1 of namespaces of its own, in a root that a test made, with the
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
    const char *cgroup_tasks; /* a file that it writes itself into; NULL: none */
};

/* A root with that image: /prog is tests/integration/init_prog.c. Skips what is not installed. */
void test_sandbox_make(struct test_sandbox *s, enum test_image image);
void test_sandbox_remove(struct test_sandbox *s);

/*
 * Moves this process to a mount namespace of its own whose root is the root that it has now; once.
 * In a chroot that takes more than a new namespace: there / is no mount point, so that it cannot be
 * made private, and the kernel makes no user namespace for who is not at the root of its mounts.
 * Entering one's own namespace once more leads to its true root; a copy of the root from before is
 * put over it.
 */
void test_sandbox_own_mounts(void);

/* Starts init there. The link is not made. `args`: see agentix-init; may be NULL. */
void test_sandbox_boot(struct test_sandbox *s, struct test_init *t, const char *const *args);
void test_sandbox_boot_stdio(struct test_sandbox *s, struct test_init *t, const char *const *args,
                             int in_fd, int out_fd);

/* A file of the root, by its path inside. */
void test_sandbox_write(const struct test_sandbox *s, const char *path, const char *text);

#endif
