/* probe_kernel.c: calls and files that reach the host's kernel. No argument. */
#include "tests/security/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/personality.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <unistd.h>

static bool bpf_map(const char *unused)
{
    union bpf_attr a = {
        .map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1
    };

    (void)unused;
    return probe_say(syscall(SYS_bpf, BPF_MAP_CREATE, &a, sizeof(a)) >= 0, "bpf");
}

static bool keyring(const char *unused)
{
    (void)unused;
    return probe_say(syscall(SYS_add_key, "user", "agx-probe", "x", 1, -1 /* thread */) >= 0,
                     "add_key");
}

static bool keyctl_call(const char *unused)
{
    (void)unused;
    return probe_say(syscall(SYS_keyctl, 0 /* GET_KEYRING_ID */, -3 /* session */, 1) >= 0,
                     "keyctl");
}

static bool userfault(const char *unused)
{
    (void)unused;
    return probe_say(syscall(SYS_userfaultfd, O_CLOEXEC) >= 0, "userfaultfd");
}

static bool perf(const char *unused)
{
    struct perf_event_attr a = { .type = PERF_TYPE_SOFTWARE,
                                 .size = sizeof(a),
                                 .config = PERF_COUNT_SW_CPU_CLOCK };

    (void)unused;
    return probe_say(syscall(SYS_perf_event_open, &a, 0, -1, -1, 0) >= 0, "perf_event_open");
}

static bool io_uring(const char *unused)
{
    char params[120] = { 0 };

    (void)unused;
    return probe_say(probe_considered(syscall(SYS_io_uring_setup, 1, params)), "io_uring_setup");
}

/* One counter of requests, fs.aio-nr, is for the whole host. */
static bool async_io(const char *unused)
{
    aio_context_t context = 0;

    (void)unused;
    return probe_say(syscall(SYS_io_setup, 1, &context) >= 0, "io_setup");
}

static bool module(const char *unused)
{
    (void)unused;
    return probe_say(probe_considered(syscall(SYS_init_module, "x", 1UL, "")), "init_module");
}

static bool module_file(const char *unused)
{
    (void)unused;
    return probe_say(probe_considered(syscall(SYS_finit_module, -1, "", 0)), "finit_module");
}

static bool kexec(const char *unused)
{
    (void)unused;
    return probe_say(probe_considered(syscall(SYS_kexec_load, 0UL, 17UL, NULL, 0UL)), "kexec_load");
}

static bool sets_time(const char *unused)
{
    struct timex t = { .modes = ADJ_OFFSET_SINGLESHOT, .offset = 0 };

    (void)unused;
    return probe_say(adjtimex(&t) >= 0, "adjtimex");
}

static bool swap(const char *unused)
{
    (void)unused;
    return probe_say(probe_considered(syscall(SYS_swapon, "/probe-none", 0)), "swapon");
}

static bool accounting(const char *unused)
{
    (void)unused;
    return probe_say(probe_considered(syscall(SYS_acct, "/probe-none")), "acct");
}

static bool kernel_log(const char *unused)
{
    char line[64];

    (void)unused;
    return probe_say(klogctl(3 /* READ_ALL */, line, sizeof(line)) >= 0, "syslog");
}

/* The right is asked for before the numbers that make sure that somebody means it. */
static bool reboots(const char *unused)
{
    (void)unused;
    return probe_say(probe_considered(syscall(SYS_reboot, 0, 0, 0, NULL)), "reboot");
}

/* Ports of the machine's devices; to give up what we have not got needs no right. */
static bool ports(const char *unused)
{
    (void)unused;
    return probe_say(syscall(SYS_ioperm, 0x80UL, 1UL, 1) == 0, "ioperm");
}

/* Every file that anybody opens, and the last word on it. */
static bool watches_files(const char *unused)
{
    (void)unused;
    return probe_say(syscall(SYS_fanotify_init, 4 /* CLASS_CONTENT */, O_RDONLY) >= 0,
                     "fanotify_init");
}

/* A page at address 0, and memory that is executable unasked: half of many an attack. */
static bool weakens_memory(const char *unused)
{
    (void)unused;
    return probe_say(personality(MMAP_PAGE_ZERO | READ_IMPLIES_EXEC) >= 0, "personality");
}

/* The other table of system calls, of which a filter by number knows nothing. */
static bool calls_as_32_bit(const char *unused)
{
    int status = 0;
    pid_t pid = fork();

    (void)unused;
    if (pid == 0) {
        long r = 20; /* getpid there */

        __asm__ volatile("int $0x80" : "+a"(r) : : "memory", "r8", "r9", "r10", "r11");
        _exit(r > 0 ? 0 : 1);
    }
    errno = ENOSYS;
    return probe_say(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0, "int 0x80");
}

static bool new_namespaces(const char *unused)
{
    int status = 0;
    pid_t pid = fork();

    (void)unused;
    if (pid == 0)
        _exit(unshare(CLONE_NEWUSER) == 0 ? 0 : 1);
    return probe_say(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0,
                     "unshare a user namespace");
}

/* The same by the call whose flags a filter cannot see. */
static bool clones_namespace(const char *unused)
{
    struct clone_args a = { .flags = CLONE_NEWUSER, .exit_signal = SIGCHLD };
    int status = 0;
    pid_t pid = (pid_t)syscall(SYS_clone3, &a, sizeof(a));

    (void)unused;
    if (pid == 0)
        _exit(0);
    return probe_say(pid > 0 && waitpid(pid, &status, 0) == pid, "clone3 into a user namespace");
}

static bool joins_namespace(const char *unused)
{
    int fd = open("/proc/1/ns/net", O_RDONLY | O_CLOEXEC);

    (void)unused;
    return probe_say(fd >= 0 && setns(fd, 0) == 0, "setns");
}

static bool names_host(const char *unused)
{
    char name[65] = "probe";

    (void)unused;
    return probe_say(sethostname(name, strlen(name)) == 0, "sethostname");
}

static bool capabilities(const char *unused)
{
    /* Those that a container of an ordinary engine has: CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL,
     * SETGID, SETUID, SETPCAP, NET_BIND_SERVICE, NET_RAW, SYS_CHROOT, MKNOD, AUDIT_WRITE, SETFCAP.
     */
    static const unsigned long long usual = 0xa80425fbULL;
    unsigned long long bounding = 0;
    char line[256];
    FILE *f = fopen("/proc/self/status", "re");

    (void)unused;
    while (f && fgets(line, sizeof(line), f))
        (void)sscanf(line, "CapBnd: %llx", &bounding);
    if (f)
        (void)fclose(f);
    errno = EPERM;
    return probe_say((bounding & ~usual) != 0, "a capability beyond the usual");
}

static bool sysrq(const char *unused)
{
    (void)unused;
    return probe_opens_to_write("/proc/sysrq-trigger");
}

static bool core_pattern(const char *unused)
{
    (void)unused;
    return probe_opens_to_write("/proc/sys/kernel/core_pattern");
}

static bool sysctl_net(const char *unused)
{
    (void)unused;
    return probe_opens_to_write("/proc/sys/net/ipv4/ip_forward");
}

static bool kernel_memory(const char *unused)
{
    (void)unused;
    return probe_reads("/proc/kcore");
}

static bool timers(const char *unused)
{
    (void)unused;
    return probe_reads("/proc/timer_list");
}

static bool uevent(const char *unused)
{
    (void)unused;
    return probe_opens_to_write("/sys/kernel/uevent_helper") ||
           probe_opens_to_write("/sys/class/net/lo/mtu") ||
           probe_opens_to_write("/sys/power/state");
}

/* What runs on the host when the last process of a cgroup ends. */
static bool release_agent(const char *unused)
{
    static const char *const places[] = {
        "/sys/fs/cgroup/release_agent",        "/sys/fs/cgroup/pids/release_agent",
        "/sys/fs/cgroup/memory/release_agent", "/sys/fs/cgroup/cgroup.procs",
        "/sys/fs/cgroup/unified/cgroup.procs", "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/pids/cgroup.procs"
    };

    (void)unused;
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        if (probe_opens_to_write(places[i]))
            return true;
    }
    return false;
}

const struct probe probes_kernel[] = {
    { "bpf", bpf_map },
    { "add-key", keyring },
    { "keyctl", keyctl_call },
    { "userfaultfd", userfault },
    { "perf", perf },
    { "io-uring", io_uring },
    { "aio", async_io },
    { "init-module", module },
    { "finit-module", module_file },
    { "kexec", kexec },
    { "adjtimex", sets_time },
    { "swapon", swap },
    { "acct", accounting },
    { "kernel-log", kernel_log },
    { "reboot", reboots },
    { "ioperm", ports },
    { "fanotify", watches_files },
    { "personality", weakens_memory },
    { "32-bit-call", calls_as_32_bit },
    { "user-namespace", new_namespaces },
    { "clone3", clones_namespace },
    { "setns", joins_namespace },
    { "hostname", names_host },
    { "capabilities", capabilities },
    { "sysrq", sysrq },
    { "core-pattern", core_pattern },
    { "sysctl", sysctl_net },
    { "kcore", kernel_memory },
    { "timer-list", timers },
    { "sysfs", uevent },
    { "cgroup", release_agent },
    { NULL, NULL },
};
