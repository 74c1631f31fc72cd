/*
 * unpack_main.c: agentix-unpack: unpacks a tar from standard input into a sandbox.
 *
 *     agentix-unpack --user-ns FD --mnt-ns FD [--into PATH]
 *     agentix-unpack --root DIR [--into PATH]
 *
 * It is a separate process because a process can only be in one user namespace, and must be in the
 * sandbox's so that files can belong to the sandbox's users. Symlinks of the image resolve as they
 * do inside. It exits with 0, or with a line on standard error and the number of the error's code
 * (agentix/error.h) as its status.
 *
 * Of the sandbox's mounts it only holds the root directory. Its own root stays the host's, so that
 * no library or locale file is ever loaded from the sandbox. A child enters the mount namespace,
 * opens the root there, sends it back and exits.
 */
#include "base/fd.h"
#include "base/fdpass.h"
#include "image/unpack.h"

#include <fcntl.h>
#include <getopt.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/banned.h"

struct options {
    int user_ns, mnt_ns;
    const char *root;
    const char *into;
};

static const struct option long_options[] = {
    { "user-ns", required_argument, NULL, 'u' },
    { "mnt-ns", required_argument, NULL, 'm' },
    { "root", required_argument, NULL, 'r' },
    { "into", required_argument, NULL, 'i' },
    { NULL, 0, NULL, 0 },
};

static int take_fd(const char *text, int *ret_fd)
{
    uint64_t n;

    if (!agx_parse_u64(agx_str_from(text), INT32_MAX, &n))
        return -1;
    *ret_fd = (int)n;
    return 0;
}

static int unpack_main_parse(int argc, char **argv, struct options *o, struct agx_error **err)
{
    int c, bad = 0;

    *o = (struct options){ .user_ns = -1, .mnt_ns = -1, .into = "/" };
    opterr = 0;
    while ((c = getopt_long(argc, argv, "", long_options, NULL)) >= 0) {
        if (c == 'u')
            bad |= take_fd(optarg, &o->user_ns);
        else if (c == 'm')
            bad |= take_fd(optarg, &o->mnt_ns);
        else if (c == 'r')
            o->root = optarg;
        else if (c == 'i')
            o->into = optarg;
        else
            bad = -1;
    }
    if (bad || optind < argc || o->into[0] != '/' || (o->user_ns < 0) != (o->mnt_ns < 0) ||
        (o->root != NULL) == (o->mnt_ns >= 0))
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "usage: agentix-unpack (--user-ns FD --mnt-ns FD | --root DIR) "
                             "[--into PATH]");
    return 0;
}

/* ---- the sandbox's root ---- */

/* From here on, files that we make belong to the sandbox's root. */
static int enter_user_ns(int fd, struct agx_error **err)
{
    if (setns(fd, CLONE_NEWUSER) < 0)
        return agx_error_errno(err, errno, "enter the user namespace");
    if (setresgid(0, 0, 0) < 0 || setgroups(0, NULL) < 0 || setresuid(0, 0, 0) < 0)
        return agx_error_errno(err, errno, "become root of the user namespace");
    return 0;
}

static int receive_fd(int sock)
{
    int fd = -1;
    char byte;
    struct agx_fdpass in = { .fds = &fd, .max = 1 };

    (void)agx_fdpass_receive(sock, &byte, sizeof(byte), 0, &in);
    return fd;
}

/* The child, already in the sandbox's user namespace. Its exit status is the errno. */
static _Noreturn void send_root(int mnt_ns, int sock)
{
    int root = -1;

    if (setns(mnt_ns, CLONE_NEWNS) == 0)
        root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0 || agx_fdpass_send(sock, "", 1, &root, 1, 0) < 0)
        _exit(errno);
    _exit(0);
}

static int root_of_mounts(int mnt_ns, struct agx_error **err)
{
    _cleanup_close_ int ours = -1, theirs = -1;
    int pair[2], status = 0, root;
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return agx_error_errno(err, errno, "make a socket");
    ours = pair[0];
    theirs = pair[1];
    /* Only system calls follow in the child, which must have no other thread to enter a mount
     * namespace: fork() of a sanitizer's run-time library would start one. */
    pid = _Fork();
    if (pid < 0)
        return agx_error_errno(err, errno, "fork");
    if (pid == 0)
        send_root(mnt_ns, theirs);
    agx_closep(&theirs);
    theirs = -1;
    root = receive_fd(ours);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (root < 0)
        return agx_error_errno(err,
                               WIFEXITED(status) && WEXITSTATUS(status) ? WEXITSTATUS(status) : EIO,
                               "open the root of the mount namespace");
    return root;
}

static int open_root(const struct options *o, struct agx_error **err)
{
    int fd;

    if (!o->root) {
        fd = enter_user_ns(o->user_ns, err);
        return fd < 0 ? fd : root_of_mounts(o->mnt_ns, err);
    }
    fd = open(o->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? agx_error_errno(err, errno, "open '%s'", o->root) : fd;
}

/* ---- the tar ---- */

static ssize_t read_input(void *user, void *buf, size_t size, struct agx_error **err)
{
    ssize_t n;

    (void)user;
    do
        n = read(STDIN_FILENO, buf, size);
    while (n < 0 && errno == EINTR);
    return n < 0 ? agx_error_errno(err, errno, "read the tar") : n;
}

static int unpack_main_run(int argc, char **argv, struct agx_error **err)
{
    struct agx_unpack_params p = { .read = read_input, .limits = AGX_UNPACK_LIMITS_INIT };
    struct agx_unpack_result result;
    struct options o;
    _cleanup_close_ int root = -1;
    int r = unpack_main_parse(argc, argv, &o, err);

    if (r < 0)
        return r;
    root = open_root(&o, err);
    if (root < 0)
        return root;
    p.into = o.into;
    p.owners = geteuid() == 0;
    return agx_unpack(root, &p, &result, err);
}

int main(int argc, char **argv)
{
    struct agx_error *err = NULL;
    char text[1024];
    int r;

    /* No process in the sandbox may trace the one that holds its root. */
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    r = unpack_main_run(argc, argv, &err);
    if (r < 0)
        (void)fprintf(stderr, "%s\n", agx_error_format(err, text, sizeof(text)));
    agx_error_free(err);
    return -r;
}
