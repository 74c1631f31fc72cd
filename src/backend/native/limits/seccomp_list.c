/*
 * seccomp_list.c: the system calls that a sandbox may make.
 *
 * The rule: what an ordinary program does to its own files, memory, processes and sockets is
 * allowed, even where it needs a capability that a sandbox has in its own user namespace. Not
 * allowed is what acts on the whole host, makes namespaces or mounts, or is a large and young part
 * of the kernel that programs can do without. For a few, seccomp.c decides by their arguments:
 * clone, unshare, personality, prlimit64, socket.
 */
#include "backend/native/limits/seccomp_internal.h"

#include "base/macros.h"

#include "base/banned.h"

const char agx_seccomp_allowed[] =
    /* files by name */
    "access chdir chmod chown chroot creat execve execveat faccessat faccessat2 fchdir fchmod "
    "fchmodat fchmodat2 fchown fchownat futimesat getcwd lchown link linkat lstat mkdir mkdirat "
    "mknod mknodat name_to_handle_at newfstatat open openat openat2 readlink readlinkat rename "
    "renameat renameat2 rmdir stat statfs statx symlink symlinkat truncate umask unlink unlinkat "
    "utime utimensat utimes "
    /* open files */
    "close close_range copy_file_range dup dup2 dup3 fadvise64 fallocate fcntl fdatasync flock "
    "fstat fstatfs fsync ftruncate getdents getdents64 ioctl lseek pipe pipe2 pread64 preadv "
    "preadv2 pwrite64 pwritev pwritev2 read readahead readv sendfile splice sync sync_file_range "
    "syncfs tee vmsplice write writev "
    "fgetxattr flistxattr fremovexattr fsetxattr getxattr lgetxattr listxattr llistxattr "
    "lremovexattr lsetxattr removexattr setxattr "
    /* waiting for files, and for other things */
    "epoll_create epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 epoll_wait eventfd eventfd2 "
    "inotify_add_watch inotify_init inotify_init1 inotify_rm_watch poll ppoll pselect6 select "
    "signalfd signalfd4 timerfd_create timerfd_gettime timerfd_settime "
    /* memory */
    "brk cachestat get_mempolicy madvise map_shadow_stack mbind membarrier memfd_create "
    "memfd_secret mincore mlock mlock2 mlockall mmap mprotect mremap msync munlock munlockall "
    "munmap pkey_alloc pkey_free pkey_mprotect process_madvise process_mrelease remap_file_pages "
    "set_mempolicy set_mempolicy_home_node "
    /* processes and threads; ptrace of others as far as the kernel permits: same user, and not
     * agentix-init, which is not dumpable */
    "arch_prctl exit exit_group fork get_robust_list get_thread_area getcpu getpgid getpgrp getpid "
    "getppid getpriority getsid gettid ioprio_get ioprio_set kill pidfd_open pidfd_send_signal "
    "prctl process_vm_readv process_vm_writev ptrace restart_syscall rseq sched_get_priority_max "
    "sched_get_priority_min sched_getaffinity sched_getattr sched_getparam sched_getscheduler "
    "sched_rr_get_interval sched_setaffinity sched_setattr sched_setparam sched_setscheduler "
    "sched_yield set_robust_list set_thread_area set_tid_address setpgid setpriority setsid tgkill "
    "tkill vfork wait4 waitid "
    "futex futex_requeue futex_wait futex_waitv futex_wake "
    /* signals */
    "pause rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend "
    "rt_sigtimedwait rt_tgsigqueueinfo sigaltstack "
    /* users, limits, and giving up privileges */
    "capget capset getegid geteuid getgid getgroups getresgid getresuid getrlimit getrusage getuid "
    "landlock_add_rule landlock_create_ruleset landlock_restrict_self seccomp setfsgid setfsuid "
    "setgid setgroups setregid setresgid setresuid setreuid setrlimit setuid "
    /* time; setting it takes a capability over the host */
    "adjtimex alarm clock_adjtime clock_getres clock_gettime clock_nanosleep getitimer "
    "gettimeofday nanosleep setitimer time timer_create timer_delete timer_getoverrun "
    "timer_gettime timer_settime times "
    /* communication */
    "accept accept4 bind connect getpeername getsockname getsockopt listen recvfrom recvmmsg "
    "recvmsg sendmmsg sendmsg sendto setsockopt shutdown socketpair "
    "mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedsend mq_unlink msgctl msgget msgrcv "
    "msgsnd semctl semget semop semtimedop shmat shmctl shmdt shmget "
    /* the rest */
    "getrandom sysinfo uname";

const struct agx_seccomp_refusal agx_seccomp_refusals[] = {
    /* Mounts: hidden and read-only paths stay so. */
    { "fsconfig fsmount fsopen fspick mount mount_setattr move_mount open_tree pivot_root umount2",
      EPERM },
    /* Other namespaces; for new ones, the flags of clone and unshare decide. */
    { "setns", EPERM },
    /* Keys are not namespaced. */
    { "add_key keyctl request_key", EPERM },
    /* Code in the kernel, and what the kernel knows of others. */
    { "bpf create_module delete_module finit_module init_module kexec_file_load kexec_load "
      "lookup_dcookie perf_event_open syslog",
      EPERM },
    /* Files opened without a path: the way out of more than one container. */
    { "fanotify_init fanotify_mark open_by_handle_at", EPERM },
    /* Page faults that a process delays on purpose have won races against the kernel. */
    { "userfaultfd", EPERM },
    /* The whole host. */
    { "acct clock_settime ioperm iopl quotactl quotactl_fd reboot setdomainname sethostname "
      "settimeofday swapoff swapon vhangup",
      EPERM },
    /* Other processes' pages, files and secrets, beyond what ptrace allows. */
    { "kcmp migrate_pages move_pages pidfd_getfd", EPERM },
    /* Segments for 16-bit programs. */
    { "modify_ldt", EPERM },
    /* A filter cannot see the flags of clone3, which are in memory. */
    { "clone3", ENOSYS },
    /* They run system calls that the filter does not see. */
    { "io_uring_enter io_uring_register io_uring_setup", ENOSYS },
    /* The kernel has one counter of requests (fs.aio-nr) for the whole host, and one sandbox could
     * take them all. Programs use threads where the kernel has no such calls. */
    { "io_cancel io_destroy io_getevents io_pgetevents io_setup io_submit", ENOSYS },
};

const size_t agx_seccomp_n_refusals = AGX_ARRAY_LEN(agx_seccomp_refusals);
