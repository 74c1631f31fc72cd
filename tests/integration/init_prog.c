/*
 * init_prog.c: the program in test images: prints what it sees, and tries what it should not be
 * able to do. It is built with several libcs.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif

#define SAY(...) ((void)fprintf(stdout, __VA_ARGS__), (void)fflush(stdout))

static int say_id(void)
{
    gid_t groups[64];
    char cwd[256];
    int n = getgroups(64, groups);

    SAY("uid=%d gid=%d groups=", (int)getuid(), (int)getgid());
    for (int i = 0; i < n; i++)
        SAY("%s%d", i ? "," : "", (int)groups[i]);
    SAY(" cwd=%s home=%s session=%d\n", getcwd(cwd, sizeof(cwd)), getenv("HOME"),
        getsid(0) == getpid());
    return 0;
}

/* Every way from a process of the sandbox to what PID 1 holds. */
static int attack(void)
{
    static const char *const paths[] = { "/proc/1/fd/3", "/proc/1/environ", "/proc/1/mem",
                                         "/proc/1/exe", "/proc/1/cwd" };
    int pidfd = (int)syscall(SYS_pidfd_open, 1, 0), open_ways = 0;

    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        char target[256];

        if (open(paths[i], O_RDONLY) >= 0 || readlink(paths[i], target, sizeof(target)) >= 0) {
            SAY("%s can be opened\n", paths[i]);
            open_ways++;
        }
    }
    for (int fd = 0; fd < 16; fd++) {
        if (syscall(SYS_pidfd_getfd, pidfd, fd, 0) >= 0 || errno != EPERM) {
            SAY("descriptor %d: %s\n", fd, strerror(errno));
            open_ways++;
        }
    }
    if (ptrace(PTRACE_ATTACH, 1, 0, 0) == 0 || errno != EPERM) {
        SAY("PID 1 can be traced: %s\n", strerror(errno));
        open_ways++;
    }
    SAY("%d ways\n", open_ways);
    return open_ways;
}

/* Forks until it cannot, and stays. */
static _Noreturn void bomb(void)
{
    int n = 0;

    for (;;) {
        pid_t pid = fork();

        if (pid < 0)
            break;
        if (pid == 0) {
            for (;;)
                pause();
        }
        n++;
    }
    SAY("%d\n", n);
    for (;;)
        pause();
}

/* Which session keyring it has: 0 is KEYCTL_GET_KEYRING_ID, -3 this session's. */
static int say_keyring(void)
{
    SAY("%ld\n", syscall(SYS_keyctl, 0, -3, 0));
    return 0;
}

/* Orphans that end at once: PID 1 has to reap them all. */
static int storm(int n)
{
    for (int i = 0; i < n; i++) {
        pid_t pid = fork();

        if (pid == 0) {
            if (fork() >= 0)
                _exit(0);
            _exit(1);
        }
        if (pid > 0)
            (void)waitpid(pid, NULL, 0);
    }
    return 0;
}

/* Orphans that all end at the same moment: when the pipe that they read from is closed. */
static int burst(int n)
{
    int fds[2];
    char byte;

    if (pipe(fds) < 0)
        return 1;
    for (int i = 0; i < n; i++) {
        pid_t pid = fork();

        if (pid < 0)
            return 2;
        if (pid == 0) {
            (void)setsid();
            (void)close(fds[1]);
            _exit(read(fds[0], &byte, 1) == 0 ? 0 : 1);
        }
    }
    return 0;
}

/* How many processes of the sandbox are dead and not reaped. */
static int zombies(void)
{
    int n = 0;

    for (int pid = 2; pid < 32768; pid++) {
        char path[64], line[256] = "";
        FILE *f;

        (void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
        f = fopen(path, "r");
        if (!f)
            continue;
        if (fgets(line, sizeof(line), f) && strstr(line, ") Z "))
            n++;
        (void)fclose(f);
    }
    SAY("%d\n", n);
    return 0;
}

static void on_term(int signo)
{
    (void)signo;
    _exit(42);
}

/* `ready`: a file that it makes once TERM finds it so; may be NULL. */
static _Noreturn void wait_for_term(const char *ready)
{
    (void)signal(SIGTERM, on_term);
    SAY("waiting\n");
    if (ready)
        (void)close(open(ready, O_WRONLY | O_CREAT, 0600));
    for (;;)
        pause();
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";

    if (strcmp(what, "id") == 0)
        return say_id();
    if (strcmp(what, "attack") == 0)
        return attack();
    if (strcmp(what, "bomb") == 0)
        bomb();
    if (strcmp(what, "storm") == 0)
        return storm(argc > 2 ? (int)strtol(argv[2], NULL, 10) : 0);
    if (strcmp(what, "burst") == 0)
        return burst(argc > 2 ? (int)strtol(argv[2], NULL, 10) : 0);
    if (strcmp(what, "keyring") == 0)
        return say_keyring();
    if (strcmp(what, "zombies") == 0)
        return zombies();
    if (strcmp(what, "term") == 0)
        wait_for_term(argc > 2 ? argv[2] : NULL);
    if (strcmp(what, "kill1") == 0)
        return kill(1, SIGSTOP) | kill(1, SIGKILL) | kill(1, SIGSEGV);
    if (strcmp(what, "exit") == 0)
        return argc > 2 ? (int)strtol(argv[2], NULL, 10) : 0;
    if (strcmp(what, "fifo") == 0)
        return argc > 2 && (unlink(argv[2]) | mkfifo(argv[2], 0600)) == 0 ? 0 : 1;
    return 99;
}
